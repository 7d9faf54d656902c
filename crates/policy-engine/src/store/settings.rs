//! What operators have set beside snapshots: anomaly states of requesters, delegations, and shadows.

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::policy::Delegated;
use cl_model::purpose::PurposeCode;
use cl_model::scalar::{Name, Reference};
use cl_model::time::UnixTime;

use super::people::Stored;
use super::{OutboxEntry, Place, StoreError, Use};
use crate::core::operation::{OperationId, TenantName};

/// The part of the port that is about what operators set. The contract is the one of
/// [`Store`](super::Store).
pub trait Settings: Send + Sync {
    /// The anomaly state of a requester.
    fn anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
    ) -> Result<Option<Stored<Anomaly>>, StoreError>;

    /// At most `limit` anomaly states of a tenant, in no particular order, after that of a requester.
    fn anomalies(
        &self,
        tenant: &TenantName,
        after: Option<&Reference>,
        limit: usize,
    ) -> Result<Vec<Anomaly>, StoreError>;

    /// Stores an anomaly state in place of the one that was read.
    fn set_anomaly(
        &self,
        read: Option<Version>,
        anomaly: &Anomaly,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// Forgets an anomaly state.
    fn clear_anomaly(
        &self,
        read: &Stored<Anomaly>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// What a subject has delegated to a requester.
    fn delegation(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        delegate: &Reference,
    ) -> Result<Option<Stored<Delegation>>, StoreError>;

    /// At most `limit` delegations of a tenant, in no particular order, after one by its subject and
    /// delegate.
    fn delegations(
        &self,
        tenant: &TenantName,
        after: Option<(&Reference, &Reference)>,
        limit: usize,
    ) -> Result<Vec<Delegation>, StoreError>;

    /// Stores a delegation in place of the one that was read.
    fn set_delegation(
        &self,
        read: Option<Version>,
        delegation: &Delegation,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// Forgets a delegation.
    fn revoke_delegation(
        &self,
        read: &Stored<Delegation>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// The shadow of a tenant.
    fn shadow(&self, tenant: &TenantName) -> Result<Option<Stored<Shadow>>, StoreError>;

    /// Stores a shadow in place of the one that was read.
    fn set_shadow(
        &self,
        read: Option<Version>,
        shadow: &Shadow,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// Forgets a shadow.
    fn clear_shadow(
        &self,
        read: &Stored<Shadow>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// At most `limit` activations that are in force, of all tenants in no particular order, after a
    /// place.
    fn activations(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<(Vec<ActiveTenant>, Option<Place>), StoreError>;
}

/// The anomaly state of a requester.
#[derive(Clone, PartialEq)]
pub struct Anomaly {
    /// The requester, as it authenticates.
    pub requester: Reference,
    /// The state.
    pub state: Name,
    /// When it was set.
    pub set_at: UnixTime,
    /// The operation that set it.
    pub set_by: OperationId,
}

/// What a subject has delegated to a requester.
#[derive(Clone, PartialEq)]
pub struct Delegation {
    /// Whose context.
    pub subject: Reference,
    /// To whom, as it authenticates.
    pub delegate: Reference,
    /// For which purposes.
    pub purposes: Vec<PurposeCode>,
    /// Which predicates, and until when.
    pub delegated: Delegated,
    /// When it was set.
    pub set_at: UnixTime,
    /// The operation that set it.
    pub set_by: OperationId,
}

/// A snapshot that is evaluated beside the active one.
#[derive(Clone, PartialEq, Eq)]
pub struct Shadow {
    /// Its digest.
    pub digest: Digest,
    /// When it was set.
    pub set_at: UnixTime,
    /// The operation that set it.
    pub set_by: OperationId,
}

/// A tenant that has an active snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTenant {
    /// The tenant.
    pub tenant: TenantName,
    /// The times of its snapshot.
    pub times: InForce,
}

/// The times of a snapshot that is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// When it was made active.
    pub since: UnixTime,
    /// When it stops being usable, if ever.
    pub until: Option<UnixTime>,
}
