//! Approvals, for the console.

use std::sync::Arc;

use cl_host::deadline::Deadline;
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::approval_service_server::ApprovalService;
use cl_wire::time;
use tonic::{Request, Response, Status};

use super::{Call, people, shown};
use crate::service::{GivenAnswer, PolicyEngine};

/// What a person sees and answers.
pub(crate) struct ApprovalRpc {
    engine: Arc<PolicyEngine>,
}

impl ApprovalRpc {
    pub(crate) fn new(engine: Arc<PolicyEngine>) -> Self {
        Self { engine }
    }
}

#[tonic::async_trait]
impl ApprovalService for ApprovalRpc {
    async fn begin_sign_in(
        &self,
        request: Request<wire::BeginSignInRequest>,
    ) -> Result<Response<wire::BeginSignInResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let ceremony = self.engine.begin_sign_in()?;
            Ok(wire::BeginSignInResponse {
                ceremony: Some(ceremony.into()),
            })
        })
        .await
    }

    async fn finish_sign_in(
        &self,
        request: Request<wire::FinishSignInRequest>,
    ) -> Result<Response<wire::FinishSignInResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.into_inner();
            let id = people::ceremony_id(&message.ceremony_id)?;
            let assertion = people::assertion(message.assertion)?;
            let signed_in = self.engine.finish_sign_in(id, &assertion).await?;
            Ok(signed_in.into())
        })
        .await
    }

    async fn end_session(
        &self,
        request: Request<wire::EndSessionRequest>,
    ) -> Result<Response<wire::EndSessionResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let token = people::token("session", &request.get_ref().session)?;
            self.engine.end_session(token).await?;
            Ok(wire::EndSessionResponse {})
        })
        .await
    }

    async fn begin_enrolment(
        &self,
        request: Request<wire::BeginEnrolmentRequest>,
    ) -> Result<Response<wire::BeginEnrolmentResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let token = people::token("link_token", &request.get_ref().link_token)?;
            Ok(self.engine.begin_enrolment(token).await?.into())
        })
        .await
    }

    async fn finish_enrolment(
        &self,
        request: Request<wire::FinishEnrolmentRequest>,
    ) -> Result<Response<wire::FinishEnrolmentResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let id = people::ceremony_id(&message.ceremony_id)?;
            let token = people::token("link_token", &message.link_token)?;
            let operation_id = people::operation_id(&message.operation_id)?;
            let (data, attestation) = (&message.client_data, &message.attestation_object);
            let finish = self
                .engine
                .finish_enrolment(id, token, data, attestation, &operation_id);
            Ok(wire::FinishEnrolmentResponse {
                fingerprint: finish.await?,
            })
        })
        .await
    }

    async fn list_pending_approvals(
        &self,
        request: Request<wire::ListPendingApprovalsRequest>,
    ) -> Result<Response<wire::ListPendingApprovalsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let limit = people::page_size(message.page_size)?;
            let after = people::place(&message.page_token)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let (entries, next) = self.engine.queue(&person, after, limit).await?;
            Ok(wire::ListPendingApprovalsResponse {
                approvals: entries.iter().map(shown::summary).collect(),
                next_page_token: next.map(people::page_token).unwrap_or_default(),
            })
        })
        .await
    }

    async fn get_pending_approval(
        &self,
        request: Request<wire::GetPendingApprovalRequest>,
    ) -> Result<Response<wire::GetPendingApprovalResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let approval = people::approval_id(&message.approval_ref)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let item = self.engine.item(&person, &approval).await?;
            Ok(wire::GetPendingApprovalResponse {
                item: Some(shown::item(&item)),
            })
        })
        .await
    }

    async fn begin_answer(
        &self,
        request: Request<wire::BeginAnswerRequest>,
    ) -> Result<Response<wire::BeginAnswerResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.into_inner();
            let approval = people::approval_id(&message.approval_ref)?;
            let digest = people::digest("item_digest", &message.item_digest)?;
            let scope = people::scope(&message)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let begin = self.engine.begin_answer(&person, &approval, digest, &scope);
            Ok(begin.await?.into())
        })
        .await
    }

    async fn finish_answer(
        &self,
        request: Request<wire::FinishAnswerRequest>,
    ) -> Result<Response<wire::FinishAnswerResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let deadline = request.extensions().get::<Deadline>().copied();
            let message = request.into_inner();
            let given = GivenAnswer {
                ceremony: people::ceremony_id(&message.ceremony_id)?,
                assertion: people::assertion(message.assertion)?,
                operation_id: people::operation_id(&message.operation_id)?,
                deadline,
            };
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let status = self.engine.finish_answer(&person, &given).await?;
            Ok(wire::FinishAnswerResponse {
                status: Some(status.into()),
            })
        })
        .await
    }

    async fn list_decisions(
        &self,
        request: Request<wire::ListDecisionsRequest>,
    ) -> Result<Response<wire::ListDecisionsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let limit = people::page_size(message.page_size)?;
            let after = people::place(&message.page_token)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let only = message.active_grants_only;
            let (entries, next) = self.engine.past(&person, only, after, limit).await?;
            Ok(wire::ListDecisionsResponse {
                decisions: entries.iter().map(shown::decision).collect(),
                next_page_token: next.map(people::page_token).unwrap_or_default(),
            })
        })
        .await
    }

    async fn get_decision(
        &self,
        request: Request<wire::GetDecisionRequest>,
    ) -> Result<Response<wire::GetDecisionResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let decision = people::decision_id(&message.decision_ref)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let shown = self.engine.own_decision(&person, &decision).await?;
            Ok(wire::GetDecisionResponse {
                decision: Some(shown::decision(&shown)),
            })
        })
        .await
    }

    async fn explain_decision(
        &self,
        request: Request<wire::ApprovalServiceExplainDecisionRequest>,
    ) -> Result<Response<wire::ApprovalServiceExplainDecisionResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let decision = people::decision_id(&message.decision_ref)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let explained = self.engine.explain_to(&person, &decision).await?;
            Ok(wire::ApprovalServiceExplainDecisionResponse {
                explanation: Some(explained.into()),
            })
        })
        .await
    }

    async fn revoke_grant(
        &self,
        request: Request<wire::RevokeGrantRequest>,
    ) -> Result<Response<wire::RevokeGrantResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let decision = people::decision_id(&message.decision_ref)?;
            let operation_id = people::operation_id(&message.operation_id)?;
            let token = people::token("session", &message.session)?;
            let person = self.engine.person(token).await?;
            let revoke = self.engine.revoke_grant(&person, &decision, &operation_id);
            revoke.await?;
            Ok(wire::RevokeGrantResponse {})
        })
        .await
    }

    async fn list_subjects(
        &self,
        request: Request<wire::ListSubjectsRequest>,
    ) -> Result<Response<wire::ListSubjectsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let token = people::token("session", &request.get_ref().session)?;
            let person = self.engine.person(token).await?;
            let subjects = self.engine.tagged_subjects(&person).await?;
            let subjects = subjects
                .into_iter()
                .map(|(subject, tag)| wire::ApproverSubject {
                    subject: subject.as_str().to_owned(),
                    subject_tag: tag,
                });
            Ok(wire::ListSubjectsResponse {
                subjects: subjects.collect(),
            })
        })
        .await
    }
}

impl From<crate::service::OpenCeremony> for wire::Ceremony {
    fn from(open: crate::service::OpenCeremony) -> Self {
        Self {
            id: open.id.to_vec(),
            challenge: open.challenge.to_vec(),
            rp_id: open.rp_id,
            expires_at: Some(time::to_message(open.expires_at)),
        }
    }
}

impl From<crate::service::OpenAnswer> for wire::BeginAnswerResponse {
    fn from(open: crate::service::OpenAnswer) -> Self {
        Self {
            ceremony: Some(open.ceremony.into()),
            approval: open.document,
            credential_ids: open.credentials,
        }
    }
}

impl From<crate::service::OpenEnrolment> for wire::BeginEnrolmentResponse {
    fn from(open: crate::service::OpenEnrolment) -> Self {
        Self {
            ceremony: Some(open.ceremony.into()),
            user_handle: open.user_handle.as_bytes().to_vec(),
            principal: open.link.principal.as_str().to_owned(),
            tenant: open.link.tenant.as_str().to_owned(),
            algorithms: cl_model::passkey::ALGORITHMS.to_vec(),
            exclude_credential_ids: open.known,
        }
    }
}

impl From<crate::service::SignedIn> for wire::FinishSignInResponse {
    fn from(signed_in: crate::service::SignedIn) -> Self {
        let session = signed_in.session;
        Self {
            session: signed_in.token.to_vec(),
            tenant: session.tenant.as_str().to_owned(),
            principal: session.principal.as_str().to_owned(),
            expires_at: Some(time::to_message(session.expires_at)),
            idle_seconds: crate::people::SESSION_IDLE_SECONDS,
        }
    }
}
