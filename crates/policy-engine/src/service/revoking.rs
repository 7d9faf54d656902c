//! Grants that a person takes back.

use cl_model::digest::Digest;
use cl_model::urn::DecisionId;
use serde_json::json;

use super::sign_in::Person;
use super::{PolicyEngine, retried};
use crate::core::evidence::{Evidence, Operation};
use crate::core::grant::SubjectNames;
use crate::core::operation::OperationId;
use crate::core::state::State;
use crate::error::Error;
use crate::store::people::Revocation;
use crate::store::{StoreError, blocking};

impl PolicyEngine {
    /// Takes back what a decision granted. It narrows, and so holds while the receipt store is away;
    /// the answer then waits for the receipt.
    pub(crate) async fn revoke_grant(
        &self,
        person: &Person,
        decision: &DecisionId,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        retried(|| self.try_revoke(person, decision, operation_id)).await
    }

    async fn try_revoke(
        &self,
        person: &Person,
        decision: &DecisionId,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let tenant = &person.tenant;
        let shown = self.own_decision(person, decision).await?;
        let key = shown.past.key.clone();
        if shown.state == State::Revoked {
            // Perhaps another operation has revoked it, and waits for its receipt.
            let id = decision.as_str();
            return self.outbox.settle_decision(tenant, id).await;
        }
        let stored = self.current(&key).await?;
        let stored = stored.filter(|stored| stored.decision_id == decision.as_str());
        let Some(stored) = stored.filter(|_| shown.is_active_grant) else {
            return Err(Error::GrantNotActive);
        };
        let operation = Operation::RevokeGrant;
        let content = Digest::of_json(&json!([operation.as_str(), decision.as_str()]));
        if self.has_begun(tenant, operation_id, content).await? {
            return Err(StoreError::Conflict.into());
        }
        let names = SubjectNames::of_request(&shown.request, tenant, &self.keys);
        let now = self.now();
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &names.alias,
            about: Some((key.id.as_str(), decision.as_str())),
            policy: Some(shown.decision.policy_snapshot.digest),
            facts: &[],
            input: shown.request.digest(),
            output: shown.digest,
            decision: Some(shown.outcome().as_str()),
            now,
        };
        let revocation = Revocation {
            entry: self.entry(tenant, &evidence, Some(names.tag))?,
            operation: self.used_for(operation_id, content, now),
            read: stored,
            key,
        };
        let (unrevoked, key) = (revocation.unrevoked(), revocation.key.clone());
        blocking(&self.store, move |store| store.revoke(&revocation)).await?;
        self.changes.announce(&key);
        if let Some(revoking) = &self.revoking {
            revoking.tell_now(unrevoked).await;
        }
        self.outbox.settle(tenant, operation_id).await
    }
}
