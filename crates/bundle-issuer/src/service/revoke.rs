//! Ending bundles before their time.

use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::Name;
use cl_model::time::UnixTime;
use serde_json::json;

use super::{ATTEMPTS, BundleIssuer, Used};
use crate::core::bundle::{Bundle, State};
use crate::core::evidence::Operation;
use crate::error::Error;
use crate::store::{Follow, OutboxEntry, Revocation, StoreError, StoredBundle, Target, blocking};

/// The most bundles that one call ends. Every name that can be given belongs to one exchange, and
/// an exchange has one bundle.
const MAX_BUNDLES: usize = 256;

/// A call to end bundles.
#[derive(Clone)]
pub(crate) struct RevokeCall {
    pub(crate) tenant: TenantName,
    pub(crate) target: Target,
    pub(crate) reason: Name,
    pub(crate) operation_id: OperationId,
}

impl BundleIssuer {
    /// Ends bundles, and bars those that are not issued yet; returns how many it has ended.
    ///
    /// It takes effect also while the receipt store is away: the receipt then waits in the outbox,
    /// and the caller is told to repeat the call.
    pub(crate) async fn revoke(&self, call: &RevokeCall) -> Result<u32, Error> {
        for _ in 0..ATTEMPTS {
            match self.try_revoke(call).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                result => {
                    self.count(
                        "revoke",
                        result.as_ref().map_or_else(Error::code, |_| "revoked"),
                    );
                    return result;
                }
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn try_revoke(&self, call: &RevokeCall) -> Result<u32, Error> {
        let operation = content(call);
        let used = self.check_operation(&call.tenant, &call.operation_id, operation);
        let used = used.await?;
        if used == Used::Same {
            self.outbox.settle(&call.tenant, &call.operation_id).await?;
            return Ok(0);
        }
        let now = self.time.read().now;
        // From here on no bundle comes to carry the name, so that those found below are all. A crash
        // in between leaves it barred, and the repeat of the call ends what carries it.
        let (tenant, target) = (call.tenant.clone(), call.target.clone());
        let until = now.plus_seconds(self.times.retention_seconds);
        blocking(&self.store, move |store| store.bar(&tenant, &target, until)).await?;
        let found = self.found(call).await?;
        if found.is_empty() && matches!(call.target, Target::Bundle(_)) {
            return Err(Error::BundleNotFound);
        }
        let bundles = ended(found, |bundle| {
            bundle.turned(State::Revoked, &self.times, now)
        });
        if bundles.is_empty() && used == Used::Forgotten {
            // Whatever it was to end has ended: a second receipt would tell of nothing.
            return Ok(0);
        }
        let entry = self.entry(call, &bundles, operation, now)?;
        let operation = self.used_for(&call.operation_id, operation, now);
        let count = u32::try_from(bundles.len()).unwrap_or(u32::MAX);
        let stored = blocking(&self.store, move |store| {
            store.revoke(&Revocation {
                bundles: &bundles,
                operation,
                entry: &entry,
            })
        });
        stored.await?;
        self.outbox.settle(&call.tenant, &call.operation_id).await?;
        Ok(count)
    }

    /// The bundles that carry the name, whatever their state.
    async fn found(&self, call: &RevokeCall) -> Result<Vec<StoredBundle>, StoreError> {
        let call = call.clone();
        blocking(&self.store, move |store| {
            let mut found = Vec::new();
            for id in store.find(&call.tenant, &call.target, MAX_BUNDLES)? {
                found.extend(store.bundle(&call.tenant, &id)?);
            }
            Ok(found)
        })
        .await
    }

    fn entry(
        &self,
        call: &RevokeCall,
        bundles: &[(StoredBundle, Bundle)],
        operation: Digest,
        now: UnixTime,
    ) -> Result<OutboxEntry, Error> {
        let ended: Vec<_> = bundles.iter().map(|(_, next)| next).collect();
        let writer = self.writer(&call.operation_id, now);
        let members = writer.revoked(&ended, operation, call.reason.as_str());
        Ok(OutboxEntry {
            tenant: call.tenant.clone(),
            operation_id: call.operation_id.clone(),
            subject_tag: ended.first().map(|bundle| bundle.subject_tag.clone()),
            members: members.map_err(|_| Error::Internal)?,
            follow: Follow::Nothing,
        })
    }
}

/// Those that have not ended, and what becomes of them.
fn ended(
    found: Vec<StoredBundle>,
    turn: impl Fn(&Bundle) -> Bundle,
) -> Vec<(StoredBundle, Bundle)> {
    let alive = found
        .into_iter()
        .filter(|read| !read.bundle.state.is_final());
    alive
        .map(|read| {
            let next = turn(&read.bundle);
            (read, next)
        })
        .collect()
}

/// What the operation id of a revocation is used for.
fn content(call: &RevokeCall) -> Digest {
    Digest::of_json(&json!([
        Operation::Revoke.as_str(),
        call.target.as_str(),
        call.reason.as_str(),
    ]))
}
