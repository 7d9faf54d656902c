//! Credentials and approvals on record, for operators.

use std::sync::Arc;

use cl_model::artefact::Fingerprint;
use cl_model::passkey::CoseKey;
use cl_model::urn::CredentialId;
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::approver_admin_service_server::ApproverAdminService;
use cl_wire::time;
use data_encoding::BASE64URL_NOPAD;
use tonic::{Request, Response, Status};

use super::parse::{admin_page_size, invalid};
use super::{Call, people};
use crate::error::Error;
use crate::service::PolicyEngine;
use crate::store::StoreError;
use crate::store::people::{Credential, CredentialState};

/// People's credentials, for operators.
pub(crate) struct ApproverAdminRpc {
    engine: Arc<PolicyEngine>,
}

impl ApproverAdminRpc {
    pub(crate) fn new(engine: Arc<PolicyEngine>) -> Self {
        Self { engine }
    }
}

#[tonic::async_trait]
impl ApproverAdminService for ApproverAdminRpc {
    async fn open_enrolment(
        &self,
        request: Request<wire::OpenEnrolmentRequest>,
    ) -> Result<Response<wire::OpenEnrolmentResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = people::tenant(&message.tenant)?;
            let principal = people::principal(&message.principal)?;
            let operation_id = people::operation_id(&message.operation_id)?;
            let open = self
                .engine
                .open_enrolment(&tenant, &principal, &operation_id);
            let link = open.await?;
            Ok(wire::OpenEnrolmentResponse {
                link: link.url,
                expires_at: Some(time::to_message(link.expires_at)),
            })
        })
        .await
    }

    async fn list_credentials(
        &self,
        request: Request<wire::ListCredentialsRequest>,
    ) -> Result<Response<wire::ListCredentialsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = people::tenant(&message.tenant)?;
            let limit = admin_page_size(message.page_size)?;
            let after = page_start(&message.page_token)?;
            let credentials = self.engine.credentials(&tenant, after, limit).await?;
            let last = credentials.last().filter(|_| credentials.len() == limit);
            let next = last.map(|it| BASE64URL_NOPAD.encode(it.reference.as_str().as_bytes()));
            let credentials: Result<_, _> = credentials.iter().map(credential).collect();
            Ok(wire::ListCredentialsResponse {
                credentials: credentials?,
                next_page_token: next.unwrap_or_default(),
            })
        })
        .await
    }

    async fn confirm_credential(
        &self,
        request: Request<wire::ConfirmCredentialRequest>,
    ) -> Result<Response<wire::ConfirmCredentialResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = people::tenant(&message.tenant)?;
            let reference = people::credential_id(&message.credential_ref)?;
            let compared = people::fingerprint(&message.fingerprint)?;
            let operation_id = people::operation_id(&message.operation_id)?;
            let confirm =
                self.engine
                    .confirm_credential(&tenant, &reference, &compared, &operation_id);
            Ok(wire::ConfirmCredentialResponse {
                credential: Some(credential(&confirm.await?)?),
            })
        })
        .await
    }

    async fn revoke_credential(
        &self,
        request: Request<wire::RevokeCredentialRequest>,
    ) -> Result<Response<wire::RevokeCredentialResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = people::tenant(&message.tenant)?;
            let reference = people::credential_id(&message.credential_ref)?;
            let operation_id = people::operation_id(&message.operation_id)?;
            let revoke = self
                .engine
                .revoke_credential(&tenant, &reference, &operation_id);
            Ok(wire::RevokeCredentialResponse {
                credential: Some(credential(&revoke.await?)?),
            })
        })
        .await
    }

    async fn get_approval(
        &self,
        request: Request<wire::GetApprovalRequest>,
    ) -> Result<Response<wire::GetApprovalResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = people::tenant(&message.tenant)?;
            let decision = people::decision_id(&message.decision_ref)?;
            let artefact = self.engine.approval_of(&tenant, decision.as_str()).await?;
            Ok(wire::GetApprovalResponse { artefact })
        })
        .await
    }
}

fn page_start(token: &str) -> Result<Option<CredentialId>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let reference = text.and_then(|text| CredentialId::parse(&text));
    let reference = reference.ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(reference))
}

fn credential(credential: &Credential) -> Result<wire::Credential, Error> {
    let key = CoseKey::parse(&credential.key).map_err(|_| StoreError::Corrupt)?;
    let state = match credential.state {
        CredentialState::Inactive => wire::CredentialState::Inactive,
        CredentialState::Active => wire::CredentialState::Active,
        CredentialState::Revoked => wire::CredentialState::Revoked,
    };
    Ok(wire::Credential {
        credential_ref: credential.reference.to_string(),
        principal: credential.principal.as_str().to_owned(),
        fingerprint: Fingerprint::of(&credential.id, &key).to_string(),
        state: state.into(),
        enrolled_at: Some(time::to_message(credential.enrolled_at)),
        backup_eligible: credential.is_backup_eligible,
    })
}
