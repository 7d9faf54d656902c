//! What the gateway keeps: the first use of each idempotency key.

mod kv;

use std::sync::Arc;

use cl_kv::Version;
use cl_model::scalar::Reference;
use ring::digest::{Context, SHA256};

pub use self::kv::KvStore;
use crate::auth::TenantName;
use crate::idempotency::{IdempotencyKey, Record};

/// The port to the gateway's store.
///
/// **Durable when?** When a method has returned `Ok`.
///
/// **Consistent how?** Every change has a precondition, so that of several gateways and calls at
/// the same moment one wins, and the others see [`StoreError::Contended`] and look again.
///
/// **Who retries?** The caller. After [`StoreError::Unavailable`] the change happened whole or not
/// at all.
///
/// Calls block: an async caller moves them to a thread that may.
pub trait Store: Send + Sync {
    /// What is remembered under a place, and which writing that is.
    fn find(&self, place: &Place) -> Result<Option<(Record, Version)>, StoreError>;

    /// Remembers `record`, over the writing `over` or over nothing.
    fn put(
        &self,
        place: &Place,
        record: &Record,
        over: Option<Version>,
    ) -> Result<Version, StoreError>;

    /// Forgets what is remembered, if it is still this writing.
    fn forget(&self, place: &Place, record: &Record, version: Version) -> Result<(), StoreError>;

    /// Forgets up to `limit` records that ended, oldest first, and tells how many entries it went
    /// through.
    fn sweep(&self, now_unix_ms: i64, limit: usize) -> Result<usize, StoreError>;
}

/// Where a key's record is: a tenant, and a digest of principal and key.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    tenant: TenantName,
    digest: [u8; 32],
}

impl Place {
    /// The place of a principal's key. Keys of different principals never meet.
    pub fn of(tenant: &TenantName, principal: &Reference, key: &IdempotencyKey) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"context-layer/idempotency-place/v1\0");
        // The key has no zero byte, so that it ends where the principal begins.
        context.update(key.as_str().as_bytes());
        context.update(b"\0");
        context.update(principal.as_str().as_bytes());
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        Self {
            tenant: tenant.clone(),
            digest,
        }
    }
}

/// Why the store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another call was first.
    #[error("another call was first")]
    Contended,
    /// A record is not what was written.
    #[error("a stored record is damaged")]
    Corrupt,
    /// The store failed; the cause is for the log.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] cl_kv::Error),
}

impl From<cl_kv::Error> for StoreError {
    fn from(error: cl_kv::Error) -> Self {
        use cl_kv::Error;

        match error {
            Error::Conflict { .. } => Self::Contended,
            Error::Corrupt(_) | Error::WrongKey | Error::NoSuchKey(_) => Self::Corrupt,
            Error::Full
            | Error::Locked
            | Error::KeyInUse(_)
            | Error::TooLarge(_)
            | Error::Unavailable(_) => Self::Unavailable(error),
        }
    }
}

/// Calls the store on a thread that may block.
pub(crate) async fn blocking<T, F>(store: &Arc<dyn Store>, call: F) -> Result<T, crate::Error>
where
    T: Send + 'static,
    F: FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
{
    let store = Arc::clone(store);
    match tokio::task::spawn_blocking(move || call(&*store)).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(crate::Error::Internal),
    }
}
