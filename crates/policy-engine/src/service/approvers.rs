//! Credentials and approvals on record, for operators.

use cl_model::artefact::Fingerprint;
use cl_model::digest::Digest;
use cl_model::passkey::CoseKey;
use cl_model::urn::CredentialId;
use serde_json::json;

use super::{PolicyEngine, retried};
use crate::core::answer::Unfit;
use crate::core::evidence::Operation;
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::store::people::{Credential, CredentialState, Stored};
use crate::store::{StoreError, blocking};

impl PolicyEngine {
    pub(crate) async fn credentials(
        &self,
        tenant: &TenantName,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, Error> {
        let tenant = tenant.clone();
        let read = blocking(&self.store, move |store| {
            store.credentials(&tenant, after.as_ref(), limit)
        });
        Ok(read.await?)
    }

    /// Makes an enrolled credential usable, if it is the one whose fingerprint was compared.
    pub(crate) async fn confirm_credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
        compared: &Fingerprint,
        operation_id: &OperationId,
    ) -> Result<Credential, Error> {
        let credential = self.credential(tenant, reference).await?.value;
        let key = CoseKey::parse(&credential.key).map_err(|_| StoreError::Corrupt)?;
        if Fingerprint::of(&credential.id, &key) != *compared {
            return Err(Error::FingerprintMismatch);
        }
        let (operation, state) = (Operation::ConfirmCredential, CredentialState::Active);
        self.turn_credential(tenant, reference, operation, state, operation_id)
            .await
    }

    /// Ends a credential for good.
    pub(crate) async fn revoke_credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
        operation_id: &OperationId,
    ) -> Result<Credential, Error> {
        let (operation, state) = (Operation::RevokeCredential, CredentialState::Revoked);
        self.turn_credential(tenant, reference, operation, state, operation_id)
            .await
    }

    async fn credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
    ) -> Result<Stored<Credential>, Error> {
        let (of, name) = (tenant.clone(), reference.clone());
        let read = blocking(&self.store, move |store| store.credential(&of, &name));
        read.await?.ok_or(Error::CredentialNotFound)
    }

    async fn turn_credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
        operation: Operation,
        state: CredentialState,
        operation_id: &OperationId,
    ) -> Result<Credential, Error> {
        retried(|| self.try_turn(tenant, reference, operation, state, operation_id)).await
    }

    async fn try_turn(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
        operation: Operation,
        state: CredentialState,
        operation_id: &OperationId,
    ) -> Result<Credential, Error> {
        let read = self.credential(tenant, reference).await?;
        let content = Digest::of_json(&json!([operation.as_str(), reference.as_str()]));
        let has_begun = self.has_begun(tenant, operation_id, content).await?;
        if has_begun || read.value.state == state {
            // Perhaps another operation has made the change, and waits for its receipt.
            self.outbox.settle_credential(tenant, reference).await?;
            return Ok(read.value);
        }
        if read.value.state == CredentialState::Revoked {
            return Err(Error::Unfit(Unfit::CredentialRevoked));
        }
        self.preflight(tenant, operation).await?;
        let facts = [("credential_ref", reference.as_str())];
        let about = Digest::of_bytes(&read.value.key);
        let entry = self.credential_entry(tenant, operation, operation_id, &facts, about)?;
        let used = self.use_of(operation_id, content);
        let turned = Credential {
            state,
            ..read.value.clone()
        };
        blocking(&self.store, move |store| {
            store.turn_credential(&read, state, used, &entry)
        })
        .await?;
        self.outbox.settle(tenant, operation_id).await?;
        Ok(turned)
    }

    /// The artefact of the approval that a decision was made with.
    pub(crate) async fn approval_of(
        &self,
        tenant: &TenantName,
        decision_id: &str,
    ) -> Result<Vec<u8>, Error> {
        let (tenant, id) = (tenant.clone(), decision_id.to_owned());
        let read = blocking(&self.store, move |store| store.decision(&tenant, &id));
        let recorded = read.await?.ok_or(Error::DecisionNotFound)?;
        recorded.approval.ok_or(Error::ApprovalNotFound)
    }
}
