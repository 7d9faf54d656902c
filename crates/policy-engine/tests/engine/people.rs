//! People who approve: their authenticators, and what they do through a console.

use cl_authenticator::{Authenticator, Page, Signed};
use cl_testbed::within;
use cl_wire::policy::v1::{
    ApprovalItem, Assertion, BeginAnswerRequest, BeginAnswerResponse, BeginEnrolmentRequest,
    BeginSignInRequest, Ceremony, ConfirmCredentialRequest, Credential, FinishAnswerRequest,
    FinishEnrolmentRequest, FinishSignInRequest, FinishSignInResponse, GetPendingApprovalRequest,
    ListCredentialsRequest, ListPendingApprovalsRequest, OpenEnrolmentRequest, PendingApproval,
    RequestStatus, RevokeCredentialRequest, ScopeTreatment,
};
use data_encoding::BASE64URL_NOPAD;
use tonic::Status;

use crate::documents::{TENANT, operation};
use crate::support::{ORIGIN, RP_ID, Running};

pub(crate) const OWNER: &str = "urn:person:owner";

/// A person with a passkey and, after a sign-in, a session.
pub(crate) struct Person {
    pub(crate) authenticator: Authenticator,
    pub(crate) session: Vec<u8>,
}

pub(crate) fn page() -> Page {
    Page::new(RP_ID, ORIGIN)
}

pub(crate) fn assertion(signed: Signed) -> Assertion {
    Assertion {
        credential_id: signed.credential_id,
        client_data: signed.client_data,
        authenticator_data: signed.authenticator_data,
        signature: signed.signature,
    }
}

/// Everything that is gated is granted.
pub(crate) fn grant_all(session: &[u8], item: &ApprovalItem) -> BeginAnswerRequest {
    let selectors = item.selectors.iter();
    let actions = item.actions.iter();
    BeginAnswerRequest {
        session: session.to_vec(),
        approval_ref: item.summary.as_ref().unwrap().approval_ref.clone(),
        item_digest: item.item_digest.clone(),
        granted_selectors: selectors
            .filter(|it| it.treatment() == ScopeTreatment::Gated)
            .map(|it| it.predicate.clone())
            .collect(),
        granted_actions: actions
            .filter(|it| it.treatment() == ScopeTreatment::Gated)
            .map(|it| it.action.clone())
            .collect(),
        declined_selectors: Vec::new(),
        declined_actions: Vec::new(),
    }
}

/// Everything that is gated is declined.
pub(crate) fn decline_all(session: &[u8], item: &ApprovalItem) -> BeginAnswerRequest {
    let granted = grant_all(session, item);
    BeginAnswerRequest {
        declined_selectors: granted.granted_selectors,
        declined_actions: granted.granted_actions,
        granted_selectors: Vec::new(),
        granted_actions: Vec::new(),
        ..granted
    }
}

impl Running {
    pub(crate) async fn link(&self, principal: &str, number: u32) -> Result<Vec<u8>, Status> {
        let message = OpenEnrolmentRequest {
            tenant: TENANT.to_owned(),
            principal: principal.to_owned(),
            operation_id: operation(number),
        };
        let answer = self.approvers.clone().open_enrolment(message).await?;
        let link = answer.into_inner().link;
        let token = link.strip_prefix("https://console.notes.example/enrol#");
        Ok(BASE64URL_NOPAD.decode(token.unwrap().as_bytes()).unwrap())
    }

    /// Enrols an authenticator, and returns its fingerprint.
    pub(crate) async fn enrol(
        &self,
        authenticator: &Authenticator,
        link_token: &[u8],
        number: u32,
    ) -> Result<String, Status> {
        let mut approvals = self.approvals.clone();
        let begun = approvals
            .begin_enrolment(BeginEnrolmentRequest {
                link_token: link_token.to_vec(),
            })
            .await?;
        let ceremony = begun.into_inner().ceremony.unwrap();
        let created = authenticator.create(&ceremony.challenge);
        let finish = FinishEnrolmentRequest {
            ceremony_id: ceremony.id,
            link_token: link_token.to_vec(),
            client_data: created.client_data,
            attestation_object: created.attestation_object,
            operation_id: operation(number),
        };
        let finished = approvals.finish_enrolment(finish).await?;
        Ok(finished.into_inner().fingerprint)
    }

    pub(crate) async fn credentials(&self) -> Vec<Credential> {
        let message = ListCredentialsRequest {
            tenant: TENANT.to_owned(),
            page_size: 0,
            page_token: String::new(),
        };
        let answer = self.approvers.clone().list_credentials(message).await;
        answer.unwrap().into_inner().credentials
    }

    /// Confirms the credential with a fingerprint.
    pub(crate) async fn confirm(&self, fingerprint: &str, number: u32) -> Result<String, Status> {
        let all = self.credentials().await;
        let found = all.into_iter().find(|it| it.fingerprint == fingerprint);
        let credential_ref = found.unwrap().credential_ref;
        self.confirm_as(&credential_ref, fingerprint, number)
            .await?;
        Ok(credential_ref)
    }

    /// Confirms a credential whose fingerprint is said to be this.
    pub(crate) async fn confirm_as(
        &self,
        credential_ref: &str,
        fingerprint: &str,
        number: u32,
    ) -> Result<(), Status> {
        let message = ConfirmCredentialRequest {
            tenant: TENANT.to_owned(),
            credential_ref: credential_ref.to_owned(),
            operation_id: operation(number),
            fingerprint: fingerprint.to_owned(),
        };
        self.approvers.clone().confirm_credential(message).await?;
        Ok(())
    }

    pub(crate) async fn revoke_credential(&self, credential_ref: &str, number: u32) {
        let message = RevokeCredentialRequest {
            tenant: TENANT.to_owned(),
            credential_ref: credential_ref.to_owned(),
            operation_id: operation(number),
        };
        let answer = self.approvers.clone().revoke_credential(message).await;
        answer.unwrap();
    }

    pub(crate) async fn begin_sign_in(&self) -> Ceremony {
        let mut approvals = self.approvals.clone();
        let answer = approvals.begin_sign_in(BeginSignInRequest {});
        answer.await.unwrap().into_inner().ceremony.unwrap()
    }

    pub(crate) async fn finish_sign_in(
        &self,
        ceremony: &Ceremony,
        signed: Signed,
    ) -> Result<FinishSignInResponse, Status> {
        let message = FinishSignInRequest {
            ceremony_id: ceremony.id.clone(),
            assertion: Some(assertion(signed)),
        };
        let answer = self.approvals.clone().finish_sign_in(message).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn sign_in(&self, authenticator: &Authenticator) -> Result<Vec<u8>, Status> {
        let ceremony = self.begin_sign_in().await;
        let signed = authenticator.sign(&ceremony.challenge).unwrap();
        Ok(self.finish_sign_in(&ceremony, signed).await?.session)
    }

    /// A person who has enrolled, was confirmed, and is signed in. Uses three operation ids.
    pub(crate) async fn person(&self, principal: &str, number: u32) -> Person {
        let authenticator = Authenticator::p256(page()).unwrap();
        let link = self.link(principal, number).await.unwrap();
        let fingerprint = self.enrol(&authenticator, &link, number + 1).await;
        self.confirm(&fingerprint.unwrap(), number + 2)
            .await
            .unwrap();
        let session = self.sign_in(&authenticator).await.unwrap();
        Person {
            authenticator,
            session,
        }
    }

    pub(crate) async fn queue(&self, session: &[u8]) -> Result<Vec<PendingApproval>, Status> {
        let message = ListPendingApprovalsRequest {
            session: session.to_vec(),
            page_size: 0,
            page_token: String::new(),
        };
        let mut approvals = self.approvals.clone();
        let answer = approvals.list_pending_approvals(message);
        Ok(answer.await?.into_inner().approvals)
    }

    pub(crate) async fn item(
        &self,
        session: &[u8],
        approval_ref: &str,
    ) -> Result<ApprovalItem, Status> {
        let message = GetPendingApprovalRequest {
            session: session.to_vec(),
            approval_ref: approval_ref.to_owned(),
        };
        let answer = self.approvals.clone().get_pending_approval(message).await?;
        Ok(answer.into_inner().item.unwrap())
    }

    /// The one item in a person's queue.
    pub(crate) async fn only_item(&self, session: &[u8]) -> ApprovalItem {
        let queue = self.queue(session).await.unwrap();
        assert_eq!(queue.len(), 1);
        self.item(session, &queue[0].approval_ref).await.unwrap()
    }

    pub(crate) async fn begin_answer(
        &self,
        answer: BeginAnswerRequest,
    ) -> Result<BeginAnswerResponse, Status> {
        let answer = self.approvals.clone().begin_answer(answer).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn finish_answer(
        &self,
        session: &[u8],
        ceremony: &Ceremony,
        signed: Signed,
        number: u32,
    ) -> Result<RequestStatus, Status> {
        let message = FinishAnswerRequest {
            session: session.to_vec(),
            ceremony_id: ceremony.id.clone(),
            assertion: Some(assertion(signed)),
            operation_id: operation(number),
        };
        let mut approvals = self.approvals.clone();
        let answer = within("an answer", approvals.finish_answer(message)).await?;
        Ok(answer.into_inner().status.unwrap())
    }

    /// Begins and finishes an answer.
    pub(crate) async fn answer(
        &self,
        person: &Person,
        answer: BeginAnswerRequest,
        number: u32,
    ) -> Result<RequestStatus, Status> {
        let ceremony = self.begin_answer(answer).await?.ceremony.unwrap();
        let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
        self.finish_answer(&person.session, &ceremony, signed, number)
            .await
    }
}
