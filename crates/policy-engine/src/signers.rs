//! Who has to sign policy snapshots, where somebody has to.

use std::sync::Arc;
use std::time::Duration;

use cl_host::life::{Shutdown, Tasks};
use cl_host::trust::Trust;
use cl_model::document::TrustedKeys;
use cl_model::policy::SnapshotSignature;
use cl_model::refusal::Code;
use cl_model::time::UnixTime;
use cl_model::trust::POLICY_SNAPSHOT;

use crate::error::Error;
use crate::store::settings::ActiveTenant;
use crate::store::{Store, StoreError};

/// Time between two looks at the file of trusted keys.
const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// How many activations are read at a time.
const PAGE: usize = 256;

/// The operators' public keys. Whoever holds none of the private ones cannot change a policy, not even
/// with an operator's certificate.
#[derive(Clone)]
pub struct Signers(Arc<Trust>);

/// Why a snapshot's signature does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsigned {
    /// There is none.
    #[error("the snapshot is not signed")]
    Missing,
    /// Its key is not trusted, or not any more.
    #[error("the snapshot's signer is not trusted")]
    Signer,
    /// It does not verify.
    #[error("the snapshot's signature does not verify")]
    Signature,
}

/// Why an engine whose snapshots have to be signed does not start.
#[derive(Debug, thiserror::Error)]
pub enum UnsignedStart {
    /// The active snapshot of a tenant is not signed.
    #[error("the active policy snapshot of tenant {tenant}: {cause}")]
    Active {
        /// The tenant.
        tenant: String,
        /// What is wrong.
        cause: Unsigned,
    },
    /// The stored state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Signers {
    /// Those whose keys have the purpose `policy-snapshot`.
    pub fn new(trust: Arc<Trust>) -> Self {
        Self(trust)
    }

    /// Looks at the keys again from time to time.
    pub(crate) fn watch(&self, shutdown: &Shutdown, tasks: &Tasks) {
        let watch = Arc::clone(&self.0).watch(TRUST_INTERVAL, shutdown.token());
        tasks.spawn("signers", watch);
    }

    /// Checks a signature that is made known now: its key has to be one that signs now.
    pub(crate) fn check_new(
        &self,
        snapshot: &[u8],
        signature: Option<&SnapshotSignature>,
        now: UnixTime,
    ) -> Result<(), Unsigned> {
        let signature = signature.ok_or(Unsigned::Missing)?;
        check(snapshot, signature, &self.0.keys(POLICY_SNAPSHOT, now))
    }

    /// Checks a signature that was made known before: a key that was replaced since still counts, one
    /// that was revoked does not.
    pub(crate) fn check_stored(
        &self,
        snapshot: &[u8],
        signature: Option<&SnapshotSignature>,
        now: UnixTime,
    ) -> Result<(), Unsigned> {
        let signature = signature.ok_or(Unsigned::Missing)?;
        let keys = self.0.verifying_keys(POLICY_SNAPSHOT, now);
        check(snapshot, signature, &keys)
    }

    /// Checks the active snapshot of every tenant.
    pub(crate) fn check_active(
        &self,
        store: &dyn Store,
        now: UnixTime,
    ) -> Result<(), UnsignedStart> {
        let mut after = None;
        loop {
            let (page, next) = store.activations(after, PAGE)?;
            for ActiveTenant { tenant, .. } in page {
                let active = store.active(&tenant)?.ok_or(StoreError::Corrupt)?;
                let stored = store.snapshot(&tenant, active.digest)?;
                let stored = stored.ok_or(StoreError::Corrupt)?;
                let signature = stored.about.signature.as_ref();
                let checked = self.check_stored(&stored.bytes, signature, now);
                checked.map_err(|cause| UnsignedStart::Active {
                    tenant: tenant.as_str().to_owned(),
                    cause,
                })?;
            }
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

fn check(
    snapshot: &[u8],
    signature: &SnapshotSignature,
    keys: &TrustedKeys,
) -> Result<(), Unsigned> {
    let checked = signature.check(snapshot, keys);
    checked.map_err(|refusal| {
        if refusal.code() == Code::UntrustedDocumentKey {
            Unsigned::Signer
        } else {
            Unsigned::Signature
        }
    })
}

impl From<Unsigned> for Error {
    fn from(unsigned: Unsigned) -> Self {
        Self::Unsigned(unsigned)
    }
}
