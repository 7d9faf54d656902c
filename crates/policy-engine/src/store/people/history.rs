//! What was decided about people, and what they took back.

use cl_model::scalar::Reference;

use crate::core::operation::{OperationId, TenantName};
use crate::store::{OutboxEntry, Place, RequestKey, StoreError, StoredRequest, Use};

/// The part of the port that is about decisions of the past.
pub trait History: Send + Sync {
    /// At most `limit` decisions about a subject, newest first, after one.
    fn history(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError>;

    /// At most `limit` decisions of a tenant about anybody, newest first, after one at a place.
    fn decided(
        &self,
        tenant: &TenantName,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError>;

    /// Stores that a grant was revoked, and that its bundle is still to be.
    fn revoke(&self, revocation: &Revocation) -> Result<(), StoreError>;

    /// At most `limit` revocations of all tenants that the issuer does not know of yet, in no
    /// particular order, after a place.
    fn unrevoked(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<(Vec<Unrevoked>, Option<Place>), StoreError>;

    /// Forgets that the issuer does not know of a revocation. Forgetting twice is fine.
    fn forget_revocation(&self, unrevoked: &Unrevoked) -> Result<(), StoreError>;
}

/// One decision of the past.
#[derive(Clone)]
pub struct Past {
    /// The request.
    pub key: RequestKey,
    /// The decision.
    pub decision_id: String,
    /// Its place: newest smallest.
    pub place: u64,
}

/// A grant to revoke.
pub struct Revocation {
    /// The request.
    pub key: RequestKey,
    /// The request, as read.
    pub read: StoredRequest,
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt.
    pub entry: OutboxEntry,
}

impl Revocation {
    /// What the issuer is to be told.
    pub fn unrevoked(&self) -> Unrevoked {
        Unrevoked {
            tenant: self.key.tenant.clone(),
            decision_id: self.read.decision_id.clone(),
            operation_id: self.entry.operation_id.following("bundle.revoke"),
        }
    }
}

/// A revocation that the issuer does not know of yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Unrevoked {
    /// The tenant.
    pub tenant: TenantName,
    /// The decision.
    pub decision_id: String,
    /// The operation that tells the issuer.
    pub operation_id: OperationId,
}
