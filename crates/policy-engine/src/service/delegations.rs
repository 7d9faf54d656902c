//! What subjects delegate to requesters, as operators write it down for them.

use cl_model::alias::subject_tag;
use cl_model::digest::Digest;
use cl_model::policy::Delegated;
use cl_model::purpose::PurposeCode;
use cl_model::scalar::Reference;
use cl_model::urn::Alias;
use serde_json::{Value, json};

use super::{PolicyEngine, retried};
use crate::core::concealed::concealed;
use crate::core::evidence::{Evidence, Operation};
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::store::people::Stored;
use crate::store::settings::Delegation;
use crate::store::{OutboxEntry, StoreError, blocking};

/// A delegation to write down.
#[derive(Clone)]
pub(crate) struct NewDelegation {
    pub(crate) subject: Reference,
    pub(crate) delegate: Reference,
    pub(crate) purposes: Vec<PurposeCode>,
    pub(crate) delegated: Delegated,
}

impl NewDelegation {
    /// What its operation id is used for.
    fn named(&self) -> Value {
        let purposes = self.purposes.iter().map(PurposeCode::as_str);
        let predicates = self.delegated.predicates.iter();
        json!([
            Operation::Delegate.as_str(),
            self.subject.as_str(),
            self.delegate.as_str(),
            purposes.collect::<Vec<_>>(),
            predicates.map(|it| it.as_str()).collect::<Vec<_>>(),
            self.delegated.until.milliseconds(),
        ])
    }

    fn is(&self, stored: &Delegation) -> bool {
        self.purposes == stored.purposes && self.delegated == stored.delegated
    }
}

impl PolicyEngine {
    /// At most `limit` delegations, after one by its subject and delegate.
    pub(crate) async fn delegations(
        &self,
        tenant: &TenantName,
        after: Option<(Reference, Reference)>,
        limit: usize,
    ) -> Result<Vec<Delegation>, Error> {
        let tenant = tenant.clone();
        let read = blocking(&self.store, move |store| {
            let after = after
                .as_ref()
                .map(|(subject, delegate)| (subject, delegate));
            store.delegations(&tenant, after, limit)
        });
        Ok(read.await?)
    }

    /// Writes down what a subject delegates, in place of what it had delegated to the same requester,
    /// and says what that is then; none if another call has revoked it since.
    pub(crate) async fn delegate(
        &self,
        tenant: &TenantName,
        new: &NewDelegation,
        operation_id: &OperationId,
    ) -> Result<Option<Delegation>, Error> {
        retried(|| self.try_delegate(tenant, new, operation_id)).await
    }

    async fn try_delegate(
        &self,
        tenant: &TenantName,
        new: &NewDelegation,
        operation_id: &OperationId,
    ) -> Result<Option<Delegation>, Error> {
        let operation = Operation::Delegate;
        let what = new.named();
        let content = Digest::of_json(&what);
        let (subject, delegate) = (&new.subject, &new.delegate);
        if self.has_begun(tenant, operation_id, content).await? {
            self.outbox.settle(tenant, operation_id).await?;
            let now = self.delegation(tenant, subject, delegate).await?;
            return Ok(now.map(|read| read.value));
        }
        let read = self.delegation(tenant, subject, delegate).await?;
        if let Some(same) = read.as_ref().filter(|read| new.is(&read.value)) {
            self.outbox.settle(tenant, &same.value.set_by).await?;
            return Ok(Some(same.value.clone()));
        }
        self.preflight(tenant, operation).await?;
        let now = self.now();
        let delegation = Delegation {
            subject: subject.clone(),
            delegate: delegate.clone(),
            purposes: new.purposes.clone(),
            delegated: new.delegated.clone(),
            set_at: now,
            set_by: operation_id.clone(),
        };
        let entry = self.delegation_entry(tenant, operation, operation_id, subject, &what)?;
        let used = self.used_for(operation_id, content, now);
        let (version, set) = (read.map(|read| read.version), delegation.clone());
        let stored = blocking(&self.store, move |store| {
            store.set_delegation(version, &set, used, &entry)
        });
        stored.await?;
        self.outbox.settle(tenant, operation_id).await?;
        Ok(Some(delegation))
    }

    /// Revokes what a subject has delegated to a requester, if anything.
    pub(crate) async fn revoke_delegation(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        delegate: &Reference,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        retried(|| self.try_revoke_delegation(tenant, subject, delegate, operation_id)).await
    }

    async fn try_revoke_delegation(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        delegate: &Reference,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let operation = Operation::RevokeDelegation;
        let what = json!([operation.as_str(), subject.as_str(), delegate.as_str()]);
        let content = Digest::of_json(&what);
        if self.has_begun(tenant, operation_id, content).await? {
            return self.outbox.settle(tenant, operation_id).await;
        }
        let read = self.delegation(tenant, subject, delegate).await?;
        let read = read.ok_or(Error::DelegationNotFound)?;
        self.preflight(tenant, operation).await?;
        let entry = self.delegation_entry(tenant, operation, operation_id, subject, &what)?;
        let used = self.used_for(operation_id, content, self.now());
        let revoked = blocking(&self.store, move |store| {
            store.revoke_delegation(&read, used, &entry)
        });
        revoked.await?;
        self.outbox.settle(tenant, operation_id).await
    }

    async fn delegation(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        delegate: &Reference,
    ) -> Result<Option<Stored<Delegation>>, StoreError> {
        let (tenant, subject, delegate) = (tenant.clone(), subject.clone(), delegate.clone());
        blocking(&self.store, move |store| {
            store.delegation(&tenant, &subject, &delegate)
        })
        .await
    }

    /// The receipt about a delegation. The subject finds it by its tag, and nobody else learns whose
    /// it is.
    fn delegation_entry(
        &self,
        tenant: &TenantName,
        operation: Operation,
        operation_id: &OperationId,
        subject: &Reference,
        what: &Value,
    ) -> Result<OutboxEntry, Error> {
        let digest = concealed(&self.keys, what);
        let alias = concealed(
            &self.keys,
            &json!([
                "subject",
                tenant.as_str(),
                subject.as_str(),
                operation_id.as_str()
            ]),
        );
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &Alias::from_digest(alias),
            about: None,
            policy: None,
            facts: &[],
            input: digest,
            output: digest,
            decision: None,
            now: self.now(),
        };
        let tag = subject_tag(&self.keys.subject_tag, tenant.as_str(), subject.as_str());
        self.entry(tenant, &evidence, Some(tag))
    }
}
