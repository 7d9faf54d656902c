//! Anomaly states that operators set for requesters.

use cl_model::digest::Digest;
use cl_model::scalar::{Name, Reference};
use serde_json::{Value, json};

use super::{PolicyEngine, retried};
use crate::core::concealed::concealed;
use crate::core::evidence::{Evidence, Operation};
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::store::people::Stored;
use crate::store::settings::Anomaly;
use crate::store::{OutboxEntry, StoreError, blocking};

impl PolicyEngine {
    /// At most `limit` anomaly states, after that of a requester.
    pub(crate) async fn anomalies(
        &self,
        tenant: &TenantName,
        after: Option<Reference>,
        limit: usize,
    ) -> Result<Vec<Anomaly>, Error> {
        let tenant = tenant.clone();
        let read = blocking(&self.store, move |store| {
            store.anomalies(&tenant, after.as_ref(), limit)
        });
        Ok(read.await?)
    }

    /// Sets the anomaly state of a requester, and says which one it has then; none if another call
    /// has cleared it since.
    pub(crate) async fn set_anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
        state: &Name,
        operation_id: &OperationId,
    ) -> Result<Option<Anomaly>, Error> {
        retried(|| self.try_set_anomaly(tenant, requester, state, operation_id)).await
    }

    async fn try_set_anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
        state: &Name,
        operation_id: &OperationId,
    ) -> Result<Option<Anomaly>, Error> {
        let operation = Operation::SetAnomaly;
        let what = json!([operation.as_str(), requester.as_str(), state.as_str()]);
        let content = Digest::of_json(&what);
        if self.has_begun(tenant, operation_id, content).await? {
            self.outbox.settle(tenant, operation_id).await?;
            let now = self.anomaly(tenant, requester).await?;
            return Ok(now.map(|read| read.value));
        }
        let read = self.anomaly(tenant, requester).await?;
        if let Some(same) = read.as_ref().filter(|read| read.value.state == *state) {
            self.outbox.settle(tenant, &same.value.set_by).await?;
            return Ok(Some(same.value.clone()));
        }
        self.preflight(tenant, operation).await?;
        let now = self.now();
        let anomaly = Anomaly {
            requester: requester.clone(),
            state: state.clone(),
            set_at: now,
            set_by: operation_id.clone(),
        };
        let entry = self.setting_entry(tenant, operation, operation_id, &what, None)?;
        let used = self.used_for(operation_id, content, now);
        let (version, set) = (read.map(|read| read.version), anomaly.clone());
        let stored = blocking(&self.store, move |store| {
            store.set_anomaly(version, &set, used, &entry)
        });
        stored.await?;
        self.outbox.settle(tenant, operation_id).await?;
        Ok(Some(anomaly))
    }

    /// Clears the anomaly state of a requester.
    pub(crate) async fn clear_anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        retried(|| self.try_clear_anomaly(tenant, requester, operation_id)).await
    }

    async fn try_clear_anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let operation = Operation::ClearAnomaly;
        let what = json!([operation.as_str(), requester.as_str()]);
        let content = Digest::of_json(&what);
        if self.has_begun(tenant, operation_id, content).await? {
            return self.outbox.settle(tenant, operation_id).await;
        }
        let read = self.anomaly(tenant, requester).await?;
        let read = read.ok_or(Error::AnomalyNotFound)?;
        self.preflight(tenant, operation).await?;
        let entry = self.setting_entry(tenant, operation, operation_id, &what, None)?;
        let used = self.used_for(operation_id, content, self.now());
        let cleared = blocking(&self.store, move |store| {
            store.clear_anomaly(&read, used, &entry)
        });
        cleared.await?;
        self.outbox.settle(tenant, operation_id).await
    }

    async fn anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
    ) -> Result<Option<Stored<Anomaly>>, StoreError> {
        let (tenant, requester) = (tenant.clone(), requester.clone());
        let read = blocking(&self.store, move |store| store.anomaly(&tenant, &requester));
        read.await
    }

    /// The receipt of something that an operator sets. What it names is concealed.
    pub(super) fn setting_entry(
        &self,
        tenant: &TenantName,
        operation: Operation,
        operation_id: &OperationId,
        what: &Value,
        policy: Option<Digest>,
    ) -> Result<OutboxEntry, Error> {
        let digest = concealed(&self.keys, what);
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &self.tenant_alias(tenant),
            about: None,
            policy,
            facts: &[],
            input: digest,
            output: digest,
            decision: None,
            now: self.now(),
        };
        self.entry(tenant, &evidence, None)
    }
}
