//! The shadow of a tenant: a stored snapshot that is evaluated beside the active one.

use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;
use serde_json::json;

use super::{PolicyEngine, retried};
use crate::core::difference::Difference;
use crate::core::evidence::Operation;
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::shadowing::{Seen, Shadowing};
use crate::store::people::Stored;
use crate::store::settings::Shadow;
use crate::store::{AboutSnapshot, StoreError, blocking};

/// A shadow, and what this process has seen of it.
pub(crate) struct ShadowStatus {
    pub(crate) shadow: Shadow,
    pub(crate) about: AboutSnapshot,
    pub(crate) seen: Seen,
}

impl PolicyEngine {
    pub(crate) const fn shadowing(&self) -> &Shadowing {
        &self.shadowing
    }

    /// Has a stored snapshot evaluated beside the active one, and says which one is; none if another
    /// call has cleared it since.
    pub(crate) async fn set_shadow(
        &self,
        tenant: &TenantName,
        digest: Digest,
        operation_id: &OperationId,
    ) -> Result<Option<ShadowStatus>, Error> {
        retried(|| self.try_set_shadow(tenant, digest, operation_id)).await?;
        self.shadow_status(tenant).await
    }

    async fn try_set_shadow(
        &self,
        tenant: &TenantName,
        digest: Digest,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let operation = Operation::SetShadow;
        let what = json!([operation.as_str(), digest.to_string()]);
        let content = Digest::of_json(&what);
        if self.has_begun(tenant, operation_id, content).await? {
            return self.outbox.settle(tenant, operation_id).await;
        }
        let stored = self.stored_snapshot(tenant, digest).await?;
        let stored = stored.ok_or(Error::SnapshotNotFound)?;
        let now = self.now();
        if stored.about.expires_at.is_some_and(|ends| ends <= now) {
            return Err(Error::SnapshotExpired);
        }
        let read = self.shadow(tenant).await?;
        if let Some(same) = read.as_ref().filter(|read| read.value.digest == digest) {
            return self.outbox.settle(tenant, &same.value.set_by).await;
        }
        self.preflight(tenant, operation).await?;
        let shadow = Shadow {
            digest,
            set_at: now,
            set_by: operation_id.clone(),
        };
        let entry = self.setting_entry(tenant, operation, operation_id, &what, Some(digest))?;
        let used = self.used_for(operation_id, content, now);
        let version = read.map(|read| read.version);
        let set = blocking(&self.store, move |store| {
            store.set_shadow(version, &shadow, used, &entry)
        });
        set.await?;
        self.outbox.settle(tenant, operation_id).await
    }

    /// Ends the evaluation beside the active snapshot, if there is one.
    pub(crate) async fn clear_shadow(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        retried(|| self.try_clear_shadow(tenant, operation_id)).await
    }

    async fn try_clear_shadow(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let operation = Operation::ClearShadow;
        let what = json!([operation.as_str()]);
        let content = Digest::of_json(&what);
        if self.has_begun(tenant, operation_id, content).await? {
            return self.outbox.settle(tenant, operation_id).await;
        }
        let Some(read) = self.shadow(tenant).await? else {
            return Ok(());
        };
        self.preflight(tenant, operation).await?;
        let policy = Some(read.value.digest);
        let entry = self.setting_entry(tenant, operation, operation_id, &what, policy)?;
        let used = self.used_for(operation_id, content, self.now());
        let cleared = blocking(&self.store, move |store| {
            store.clear_shadow(&read, used, &entry)
        });
        cleared.await?;
        self.outbox.settle(tenant, operation_id).await
    }

    /// The shadow of a tenant, if one is set, and what this process has seen of it.
    pub(crate) async fn shadow_status(
        &self,
        tenant: &TenantName,
    ) -> Result<Option<ShadowStatus>, Error> {
        let Some(read) = self.shadow(tenant).await? else {
            return Ok(None);
        };
        let shadow = read.value;
        let stored = self.stored_snapshot(tenant, shadow.digest).await?;
        Ok(Some(ShadowStatus {
            about: stored.ok_or(StoreError::Corrupt)?.about,
            seen: self.shadowing.seen(tenant, &shadow),
            shadow,
        }))
    }

    /// What a shadow makes of a stored decision: when that was made, and how the two differ. None if
    /// there is no such decision any more.
    pub(crate) async fn beside(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
        shadow: &Shadow,
    ) -> Result<Option<(UnixTime, Option<Difference>)>, Error> {
        let Some(recorded) = self.recorded_decision(tenant, decision.as_str()).await? else {
            return Ok(None);
        };
        let stored = self.stored_snapshot(tenant, shadow.digest).await?;
        let candidate = self
            .compiled
            .read(stored.ok_or(StoreError::Corrupt)?.bytes)?;
        let examined = self.examine(tenant, recorded).await?;
        Ok(Some((examined.decided_at(), examined.under(&candidate))))
    }

    async fn shadow(&self, tenant: &TenantName) -> Result<Option<Stored<Shadow>>, StoreError> {
        let tenant = tenant.clone();
        blocking(&self.store, move |store| store.shadow(&tenant)).await
    }
}
