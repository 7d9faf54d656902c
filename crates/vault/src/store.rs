//! What the vault remembers, in two stores that are kept apart.
//!
//! The **key store** knows each subject's slot (a random name) and data key. The **data store** holds
//! everything else, by slot, each value sealed under its subject's data key and then again by the
//! store's own sealing. Whoever has the data store alone, or an old copy of it, has nothing of a
//! subject whose key is destroyed.
//!
//! **Durable when?** When a call that stores something has returned `Ok`.
//!
//! **Consistent how?** Each [`Draft`] is one atomic batch under the precondition that nobody else
//! changed the subject since it was begun. [`StoreError::Conflict`] means that somebody was first
//! and nothing was stored. An erasure counts as a change.
//!
//! **Who retries?** The caller: after a conflict it reads again; after [`StoreError::Unavailable`]
//! the batch is stored whole or not at all, and a repeat of the operation finds out.
//!
//! **What if absent?** `Ok(None)`. A subject whose key is gone is [`StoreError::Erased`].

mod address;
mod cipher;
mod draft;
mod due;
mod erasure;
mod exchange;
mod keys;
mod notice;
mod operation;
mod payload;
mod records;

use std::sync::Arc;

use cl_host::ids::Ids;
use cl_kv::{Engine, Key, Kind, Sealed, Tenant};
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::Reference;

use self::cipher::DataKey;
pub use self::draft::{Draft, EventPage, StoredClaim};
pub use self::due::Due;
pub use self::erasure::{Erased, Erasure, ErasureOrder};
pub use self::keys::Known;
pub use self::notice::{Notice, NoticePage, Party, Reason, Target};
pub use self::operation::{OutboxEntry, OutboxPage, Place};
pub use self::payload::Upload;
pub use self::records::{
    ClaimKey, EventContent, Exchange, StoredEvent, StoredOperation, StoredProposal,
};
use crate::error::Error;

/// The vault's state. Calls block; see [`blocking`].
pub struct Store {
    keys: Sealed<Arc<dyn Engine>>,
    data: Sealed<Arc<dyn Engine>>,
    ids: Arc<dyn Ids>,
}

impl Store {
    /// The state in two stores, each sealed under a key of its own.
    pub fn new(
        keys: Sealed<Arc<dyn Engine>>,
        data: Sealed<Arc<dyn Engine>>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self { keys, data, ids }
    }
}

/// Runs a call to the store on a thread that may block.
pub async fn blocking<T, F>(store: &Arc<Store>, call: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
{
    let store = Arc::clone(store);
    let task = tokio::task::spawn_blocking(move || call(&store));
    match task.await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Error::Internal),
    }
}

/// The random name of a subject in both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot([u8; Self::BYTES]);

impl Slot {
    const BYTES: usize = 16;

    fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        bytes.try_into().map(Self).map_err(|_| StoreError::Corrupt)
    }
}

/// A subject whose data key exists.
pub struct Subject {
    tenant: TenantName,
    slot: Slot,
    key: DataKey,
}

impl Subject {
    /// The slot.
    pub const fn slot(&self) -> Slot {
        self.slot
    }

    /// Seals what an operation of this subject ended with.
    pub fn seal_result(
        &self,
        store: &Store,
        operation_id: &OperationId,
        result: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let place = operation_id.as_str().as_bytes();
        self.key.seal(&*store.ids, place, result)
    }

    /// What an operation of this subject ended with.
    pub fn open_result(
        &self,
        operation_id: &OperationId,
        sealed: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let place = operation_id.as_str().as_bytes();
        Ok(self.key.open(place, sealed)?.to_vec())
    }

    /// The key of a kind of this subject's records, without parts.
    fn key(&self, kind: Kind) -> Result<Key, StoreError> {
        slot_key(&self.tenant, self.slot, kind)
    }
}

fn slot_key(tenant: &TenantName, slot: Slot, kind: Kind) -> Result<Key, StoreError> {
    Ok(tenant_key(tenant, kind)?.public(slot.0))
}

fn tenant_key(tenant: &TenantName, kind: Kind) -> Result<Key, StoreError> {
    let tenant = Tenant::parse(tenant.as_str()).map_err(|_| StoreError::Corrupt)?;
    Ok(tenant.key(kind))
}

/// Names a subject as callers do.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SubjectName {
    /// The tenant.
    pub tenant: TenantName,
    /// The subject's reference.
    pub subject: Reference,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something that was read has changed, or something new is there already.
    #[error("somebody else was first")]
    Conflict,
    /// The subject was erased, or is being erased.
    #[error("the subject is erased")]
    Erased,
    /// The store is away; the cause is for the log.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] cl_kv::Error),
    /// There is no randomness to seal with.
    #[error("no random bytes available")]
    NoRandomness,
    /// What is stored does not read back.
    #[error("a stored record does not verify")]
    Corrupt,
}

impl From<cl_kv::Error> for StoreError {
    fn from(error: cl_kv::Error) -> Self {
        match error {
            cl_kv::Error::Conflict { .. } => Self::Conflict,
            cl_kv::Error::Corrupt(_) | cl_kv::Error::WrongKey => Self::Corrupt,
            cl_kv::Error::Full
            | cl_kv::Error::Locked
            | cl_kv::Error::KeyInUse(_)
            | cl_kv::Error::NoSuchKey(_)
            | cl_kv::Error::TooLarge(_)
            | cl_kv::Error::Unavailable(_) => Self::Unavailable(error),
        }
    }
}

impl From<cl_host::ids::NoRandomness> for StoreError {
    fn from(_: cl_host::ids::NoRandomness) -> Self {
        Self::NoRandomness
    }
}
