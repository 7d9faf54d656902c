//! What the engine remembers.

mod kept;
mod kv;
mod kv_reading;
pub mod people;
mod rates_kv;
mod records;
pub mod settings;
mod settings_kv;

use std::sync::Arc;

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::policy::{Preflight, SnapshotSignature};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, RequestId};

pub use self::kv::KvStore;
use self::people::{Approvals, Credentials, History, Pending, Queued};
use self::settings::Settings;
use crate::core::facts::Facts;
use crate::core::grant::SignedGrant;
use crate::core::operation::{OperationId, TenantName};
use crate::core::rates::Counter;
use crate::core::signals::Signals;
use crate::core::state::Standing;

/// The port to the engine's own state. Calls block; see [`blocking`].
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
pub trait Store: Approvals + Credentials + History + Settings {
    /// The tenant's active snapshot, by name.
    fn active(&self, tenant: &TenantName) -> Result<Option<Active>, StoreError>;

    /// A snapshot.
    fn snapshot(
        &self,
        tenant: &TenantName,
        digest: Digest,
    ) -> Result<Option<StoredSnapshot>, StoreError>;

    /// The digest of the snapshot with this version.
    fn snapshot_of_version(
        &self,
        tenant: &TenantName,
        version: &str,
    ) -> Result<Option<Digest>, StoreError>;

    /// At most `limit` snapshots, newest first, after the one at a place.
    fn snapshots(
        &self,
        tenant: &TenantName,
        after: Option<u64>,
        limit: usize,
    ) -> Result<SnapshotPage, StoreError>;

    /// Stores a snapshot that is not there yet.
    fn put_snapshot(&self, put: &PutSnapshot) -> Result<(), StoreError>;

    /// Stores the signature of a stored snapshot.
    fn sign_snapshot(
        &self,
        read: &StoredSnapshot,
        signature: &SnapshotSignature,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// Makes a stored snapshot the active one.
    fn activate(&self, activation: &Activation) -> Result<(), StoreError>;

    /// A request of one principal.
    fn request(&self, key: &RequestKey) -> Result<Option<StoredRequest>, StoreError>;

    /// A decision with everything that it was made from.
    fn decision(
        &self,
        tenant: &TenantName,
        decision_id: &str,
    ) -> Result<Option<RecordedDecision>, StoreError>;

    /// Stores a decision with its request, grant, operation and outbox entry.
    fn record(&self, new: &NewDecision) -> Result<(), StoreError>;

    /// What counters of a tenant have counted, in the same order.
    fn counted(
        &self,
        tenant: &TenantName,
        counters: &[Counter],
    ) -> Result<Vec<Counted>, StoreError>;

    /// Stores how issuing for a request ended, and forgets that it is outstanding.
    fn conclude(
        &self,
        key: &RequestKey,
        read: &StoredRequest,
        conclusion: &Conclusion,
    ) -> Result<(), StoreError>;

    /// At most `limit` requests of all tenants that a bundle has to be issued for, in no particular
    /// order, after a place.
    fn unissued(&self, after: Option<Place>, limit: usize) -> Result<UnissuedPage, StoreError>;

    /// Forgets that issuing for a request is outstanding. Forgetting twice is fine.
    fn forget_issue(&self, key: &RequestKey) -> Result<(), StoreError>;

    /// Stores that a request ran out.
    fn expire(&self, key: &RequestKey, read: &StoredRequest) -> Result<(), StoreError>;

    /// The digest of what an operation id was used for.
    fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<Digest>, StoreError>;

    /// Stores an operation that changes nothing but leaves a receipt.
    fn begin(&self, operation: Use, entry: &OutboxEntry) -> Result<(), StoreError>;

    /// Forgets at most `limit` decisions with their requests, and operation ids, whose time has
    /// passed, the earliest first, and says how many. Those that come back when the machine stops
    /// are forgotten again: this alone need not be durable.
    fn sweep(&self, now: UnixTime, limit: usize) -> Result<usize, StoreError>;

    /// A time before which everything that was kept until then may be forgotten already: the latest
    /// that [`Self::sweep`] went to, whatever the clock says now.
    fn swept_until(&self) -> Result<Option<UnixTime>, StoreError>;

    /// The outbox entry of an operation; none once its receipt is durable.
    fn outstanding(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<OutboxEntry>, StoreError>;

    /// At most `limit` outbox entries of all tenants, in no particular order, after a place.
    fn outbox(&self, after: Option<Place>, limit: usize) -> Result<OutboxPage, StoreError>;

    /// Forgets an outbox entry whose receipt is durable. Forgetting twice is fine, and so is
    /// remembering again after the machine has stopped: this alone need not be durable.
    fn settle(&self, entry: &OutboxEntry) -> Result<(), StoreError>;
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

/// Names a request.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    /// The tenant.
    pub tenant: TenantName,
    /// The authenticated principal.
    pub principal: Reference,
    /// The request's id.
    pub id: RequestId,
}

/// The tenant's active snapshot.
#[derive(Clone, Copy)]
pub struct Active {
    /// Its digest.
    pub digest: Digest,
    /// Which activation was read.
    pub version: Version,
}

/// A snapshot as it is stored.
#[derive(Clone)]
pub struct StoredSnapshot {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What is known about it.
    pub about: AboutSnapshot,
    /// Which writing was read.
    pub version: Version,
}

/// What is known about a snapshot beside its content.
#[derive(Clone)]
pub struct AboutSnapshot {
    /// Its digest.
    pub digest: Digest,
    /// The version that it gives itself.
    pub name: String,
    /// Its place in the order of storing, newest smallest.
    pub place: u64,
    /// When it was stored.
    pub stored_at: UnixTime,
    /// The operation that stored it.
    pub stored_by: OperationId,
    /// When, and by which operation, it was last made active.
    pub activated: Option<(UnixTime, OperationId)>,
    /// When it stops being usable.
    pub expires_at: Option<UnixTime>,
    /// Who signed it, if anybody did.
    pub signature: Option<SnapshotSignature>,
}

/// One page of snapshots.
pub struct SnapshotPage {
    /// The entries, newest first.
    pub entries: Vec<AboutSnapshot>,
    /// Whether more follow.
    pub has_more: bool,
    /// How many there are on all pages.
    pub total: u64,
}

/// A snapshot to store.
pub struct PutSnapshot {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
    /// The version that it gives itself.
    pub name: String,
    /// When it stops being usable.
    pub expires_at: Option<UnixTime>,
    /// Who signed it, if anybody did.
    pub signature: Option<SnapshotSignature>,
    /// The time.
    pub now: UnixTime,
    /// What the operation id is used for.
    pub operation: Use,
    /// Its receipt.
    pub entry: OutboxEntry,
}

/// A snapshot to make active.
pub struct Activation {
    /// The snapshot, as read.
    pub snapshot: StoredSnapshot,
    /// The active one, as read.
    pub current: Option<Active>,
    /// The time.
    pub now: UnixTime,
    /// What the operation id is used for.
    pub operation: Use,
    /// Its receipt.
    pub entry: OutboxEntry,
}

/// A request's state as it is stored.
#[derive(Clone)]
pub struct StoredRequest {
    /// Where it stands.
    pub standing: Standing,
    /// Its newest decision.
    pub decision_id: String,
    /// The operation that made the decision.
    pub operation_id: OperationId,
    /// The operation that issues a bundle for it, if one is to be issued.
    pub issue: Option<OperationId>,
    /// How issuing ended.
    pub conclusion: Option<Conclusion>,
    /// Where it waits for an approval, while it does.
    pub queued: Option<Queued>,
    /// Which writing was read.
    pub version: Version,
}

/// What the signals of a decision were read from. The decision is stored only if that is still so.
#[derive(Clone, Default)]
pub struct Heard {
    /// The counters that it counts in.
    pub counts: Vec<Counted>,
    /// Which writing of the requester's anomaly state was read; none if there was none.
    pub anomaly: Option<Version>,
    /// Which writing of what the subject has delegated to the requester.
    pub delegation: Option<Version>,
}

/// What a counter has counted.
#[derive(Clone, Copy)]
pub struct Counted {
    /// The counter.
    pub counter: Counter,
    /// So many.
    pub count: u64,
    /// Which writing was read; none if nothing was counted yet.
    pub version: Option<Version>,
}

/// How issuing for a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// With this bundle.
    Issued(BundleId),
    /// For good without one, for this reason.
    Failed(String),
}

/// One page of requests that a bundle has to be issued for.
pub struct UnissuedPage {
    /// The requests.
    pub keys: Vec<RequestKey>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

/// A decision and what it was made from.
#[derive(Clone)]
pub struct RecordedDecision {
    /// The request's bytes.
    pub request: Vec<u8>,
    /// Who sent it.
    pub facts: Facts,
    /// The digest of the snapshot in force.
    pub snapshot: Digest,
    /// What the receipt preflight found.
    pub preflight: Preflight,
    /// What was so beside request and snapshot.
    pub signals: Signals,
    /// The time of evaluation.
    pub now: UnixTime,
    /// The decision's bytes.
    pub decision: Vec<u8>,
    /// The grant, if something was allowed.
    pub grant: Option<SignedGrant>,
    /// The artefact of the approval that it was made with, if there was one.
    pub approval: Option<Vec<u8>>,
}

/// A decision to store.
pub struct NewDecision {
    /// Its request.
    pub key: RequestKey,
    /// Where the request stands with it.
    pub standing: Standing,
    /// Its id.
    pub decision_id: String,
    /// The decision.
    pub recorded: RecordedDecision,
    /// Whose context it is about.
    pub subject: Reference,
    /// What waits for an answer, if it asks for an approval.
    pub pending: Option<Pending>,
    /// What its signals were read from.
    pub heard: Heard,
    /// The active snapshot, as read.
    pub active: Version,
    /// The request that it replaces, as read.
    pub replaces: Option<StoredRequest>,
    /// How long it is kept.
    pub kept_until: UnixTime,
    /// The operation that is to issue a bundle for it, if there is an issuer.
    pub issue: Option<OperationId>,
    /// What the operation id is used for.
    pub operation: Use,
    /// Its receipt.
    pub entry: OutboxEntry,
}

/// What an operation id is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The digest of it.
    pub content: Digest,
    /// How long that is remembered.
    pub kept_until: UnixTime,
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
