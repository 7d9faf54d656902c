//! What the issuer remembers.

mod kept;
mod kv;
mod records;

use std::sync::Arc;

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, BundleId, DecisionId, ProvenanceRef};

pub use self::kv::KvStore;
use crate::core::assembly::Content;
use crate::core::bundle::Bundle;

/// The port to the issuer's own state. Calls block; see [`blocking`].
///
/// **Durable when?** When a call that stores something has returned `Ok`.
///
/// **Consistent how?** Each storing call is one atomic batch under preconditions: what the caller
/// read, by its version, and that what is new is not there yet. [`StoreError::Conflict`] means that
/// somebody else was first and nothing was stored. Nothing else excludes callers, of whatever
/// replica, from each other.
///
/// **Who retries?** The caller: after a conflict it reads again; after
/// [`StoreError::Unavailable`] the batch is stored whole or not at all, and a repeat finds out.
///
/// **What if absent?** `Ok(None)`.
pub trait Store: Send + Sync {
    /// What is known about issuing under a decision.
    fn issue(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
    ) -> Result<Option<StoredIssue>, StoreError>;

    /// Takes a decision for one attempt to issue, in place of what was read.
    fn claim(&self, claim: &Claim<'_>) -> Result<Version, StoreError>;

    /// Gives a taken decision back.
    fn release(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
        claim: Version,
    ) -> Result<(), StoreError>;

    /// Stores that a taken decision never gets a bundle, with the receipt of that.
    fn fail(&self, failed: &Failed) -> Result<(), StoreError>;

    /// Stores a bundle that nobody knows of yet, with its issue receipt; a conflict if a name of it
    /// is barred.
    fn set_aside(&self, new: &NewBundle) -> Result<(), StoreError>;

    /// Whether one of the names is barred.
    fn is_barred(&self, tenant: &TenantName, names: &[Target]) -> Result<bool, StoreError>;

    /// A bundle.
    fn bundle(
        &self,
        tenant: &TenantName,
        id: &BundleId,
    ) -> Result<Option<StoredBundle>, StoreError>;

    /// The content of a bundle; none once nobody can have it.
    fn content(&self, tenant: &TenantName, id: &BundleId) -> Result<Option<Content>, StoreError>;

    /// Stores another state of a bundle.
    fn change(&self, change: &Change<'_>) -> Result<(), StoreError>;

    /// Forgets a bundle, and what is known about its decision.
    fn remove(&self, read: &StoredBundle) -> Result<(), StoreError>;

    /// At most `limit` bundles that carry a name.
    fn find(
        &self,
        tenant: &TenantName,
        target: &Target,
        limit: usize,
    ) -> Result<Vec<BundleId>, StoreError>;

    /// Bars a name until a time, so that no bundle can carry it from now on. The bundles that do are
    /// found after this. Barring twice is fine; a bundle's own name is not barred.
    fn bar(&self, tenant: &TenantName, target: &Target, until: UnixTime) -> Result<(), StoreError>;

    /// Ends bundles, with the receipt of that.
    fn revoke(&self, revocation: &Revocation<'_>) -> Result<(), StoreError>;

    /// The digest of what an operation id was used for.
    fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<Digest>, StoreError>;

    /// At most `limit` bundles that have to be looked at, earliest first.
    fn due(&self, now: UnixTime, limit: usize) -> Result<Vec<Due>, StoreError>;

    /// Forgets a look that is due for a bundle that is gone.
    fn forget(&self, due: &Due) -> Result<(), StoreError>;

    /// Forgets at most `limit` operation ids, bars and attempts to issue whose time has passed, the
    /// earliest first, and says how many were looked at. Those that come back when the machine stops
    /// are forgotten again: this alone need not be durable.
    fn sweep(&self, now: UnixTime, limit: usize) -> Result<usize, StoreError>;

    /// The outbox entry of an operation; none once its receipt is durable.
    fn outstanding(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<OutboxEntry>, StoreError>;

    /// At most `limit` outbox entries of all tenants, in no particular order, after a place.
    fn outbox(&self, after: Option<Place>, limit: usize) -> Result<OutboxPage, StoreError>;

    /// Forgets an outbox entry whose receipt is durable. Forgetting twice is fine.
    fn settle(&self, entry: &OutboxEntry) -> Result<(), StoreError>;

    /// The latest time that was stored.
    fn high_water(&self) -> Result<Option<UnixTime>, StoreError>;

    /// Stores a time, unless a later one is stored.
    fn raise(&self, time: UnixTime) -> Result<(), StoreError>;
}

/// Runs a call to the store on a thread that may block.
pub async fn blocking<T, F>(store: &Arc<dyn Store>, call: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
{
    let store = Arc::clone(store);
    let task = tokio::task::spawn_blocking(move || call(&*store));
    task.await.unwrap_or(Err(StoreError::Panicked))
}

/// A place in the outbox to go on from.
pub type Place = cl_kv::Located;

/// Where issuing under one decision stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Issue {
    /// An attempt has it to itself until this time.
    Taken(UnixTime),
    /// It has a bundle.
    Issued(BundleId),
    /// It never gets one, for this reason.
    Failed(String),
}

/// The same, as it was read.
#[derive(Clone, Debug)]
pub struct StoredIssue {
    /// Where it stands.
    pub issue: Issue,
    /// Which writing was read.
    pub version: Version,
}

/// A bundle as it is stored.
#[derive(Clone)]
pub struct StoredBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Which writing was read.
    pub version: Version,
}

/// An attempt to issue.
pub struct Claim<'a> {
    /// Whose decision it is.
    pub tenant: &'a TenantName,
    /// The decision.
    pub decision: &'a DecisionId,
    /// What was read; none if there was nothing.
    pub read: Option<Version>,
    /// How long the attempt has the decision to itself.
    pub until: UnixTime,
    /// How long it is remembered if it comes to nothing.
    pub kept_until: UnixTime,
}

/// What an operation id is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The digest of it.
    pub content: Digest,
    /// How long that is remembered.
    pub kept_until: UnixTime,
}

/// A bundle to store.
pub struct NewBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Its content.
    pub content: Content,
    /// The attempt that made it.
    pub claim: Version,
    /// What the operation id is used for.
    pub operation: Use,
    /// Its issue receipt.
    pub entry: OutboxEntry,
}

/// A decision that never gets a bundle.
pub struct Failed {
    /// The decision.
    pub decision: DecisionId,
    /// The attempt that found out.
    pub claim: Version,
    /// Why.
    pub code: String,
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt.
    pub entry: OutboxEntry,
}

/// Another state of a bundle.
pub struct Change<'a> {
    /// The bundle as it was read.
    pub read: &'a StoredBundle,
    /// The bundle as it will be.
    pub next: &'a Bundle,
    /// Whether its content goes.
    pub wipes: bool,
    /// A receipt that this needs, and what its operation id is used for.
    pub announces: Option<(&'a OutboxEntry, Use)>,
    /// A receipt that is durable by now.
    pub settles: Option<&'a OutboxEntry>,
}

/// Names bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One, by its id.
    Bundle(BundleId),
    /// That of one decision.
    Decision(DecisionId),
    /// Those about one alias.
    Alias(Alias),
    /// Those with claims of one source.
    Source(ProvenanceRef),
}

impl Target {
    /// The names under which a bundle can be barred before it exists.
    pub fn naming(bundle: &Bundle) -> Vec<Self> {
        let sources = bundle.sources.iter().cloned().map(Self::Source);
        let mut names = vec![
            Self::Decision(bundle.decision.clone()),
            Self::Alias(bundle.alias.clone()),
        ];
        names.extend(sources);
        names
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Bundle(id) => id.as_str(),
            Self::Decision(id) => id.as_str(),
            Self::Alias(alias) => alias.as_str(),
            Self::Source(source) => source.as_str(),
        }
    }
}

/// Bundles to end.
pub struct Revocation<'a> {
    /// The bundles as they were read, and as they will be.
    pub bundles: &'a [(StoredBundle, Bundle)],
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt.
    pub entry: &'a OutboxEntry,
}

/// A bundle that has to be looked at.
#[derive(Clone, Debug)]
pub struct Due {
    /// Whose it is.
    pub tenant: TenantName,
    /// The bundle.
    pub id: BundleId,
    /// The place of the note.
    pub place: Place,
}

/// What follows once a receipt is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Nothing.
    Nothing,
    /// The bundle is live.
    Live(BundleId),
    /// The bundle is handed out.
    Redeemed(BundleId),
}

/// A receipt to write.
#[derive(Clone)]
pub struct OutboxEntry {
    /// The tenant that it belongs to.
    pub tenant: TenantName,
    /// The operation.
    pub operation_id: OperationId,
    /// The subject's tag, if there is a subject.
    pub subject_tag: Option<String>,
    /// Its members.
    pub members: Vec<u8>,
    /// What follows.
    pub follow: Follow,
}

/// One page of the outbox.
pub struct OutboxPage {
    /// The entries.
    pub entries: Vec<OutboxEntry>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something that was read has changed, or something new is there already.
    #[error("somebody else was first")]
    Conflict,
    /// The store is away; the cause is for the log.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] cl_kv::Error),
    /// What is stored does not read back.
    #[error("a stored record does not verify")]
    Corrupt,
    /// The store's code broke; what it was to store may or may not be there.
    #[error("a call to the store panicked")]
    Panicked,
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
