//! The policy engine, as the console needs it.

mod read;

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::object::PolicyDecision;
use cl_model::time::UnixTime;
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::approval_service_client::ApprovalServiceClient;
use tonic::{Request, Response, Status};
use zeroize::Zeroizing;

use crate::error::{Error, Peer};

/// An open challenge.
#[derive(Clone)]
pub(crate) struct Ceremony {
    pub(crate) id: Vec<u8>,
    pub(crate) challenge: Vec<u8>,
    pub(crate) rp_id: String,
    pub(crate) expires_at: UnixTime,
}

/// What a passkey signed, as the browser returned it.
pub(crate) struct Assertion {
    pub(crate) credential_id: Vec<u8>,
    pub(crate) client_data: Vec<u8>,
    pub(crate) authenticator_data: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

/// A person whom the engine has let in.
pub(crate) struct SignedIn {
    pub(crate) token: Zeroizing<Vec<u8>>,
    pub(crate) tenant: String,
    pub(crate) principal: String,
    pub(crate) expires_at: UnixTime,
    pub(crate) idles: Duration,
}

/// What a browser needs to make a passkey.
pub(crate) struct Enrolment {
    pub(crate) ceremony: Ceremony,
    pub(crate) user_handle: Vec<u8>,
    pub(crate) principal: String,
    pub(crate) tenant: String,
    pub(crate) algorithms: Vec<i32>,
    pub(crate) excluded: Vec<Vec<u8>>,
}

/// What waits for an answer, in one line.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The part of its URN behind the prefix.
    pub(crate) approval: String,
    pub(crate) subject: String,
    pub(crate) requester: String,
    pub(crate) recipient: String,
    pub(crate) purpose_code: String,
    pub(crate) created_at: UnixTime,
    pub(crate) expires_at: UnixTime,
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    Answered,
    Expired,
    Replaced,
    NotNeeded,
}

/// What the policy does with a part of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    Ordinary,
    Gated,
    Denied,
}

/// One kind of fact that was asked for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) predicate: String,
    pub(crate) label: String,
    pub(crate) is_sensitive: bool,
    pub(crate) treatment: Treatment,
}

/// One thing that the recipient asked to be allowed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) action: String,
    pub(crate) is_external: bool,
    pub(crate) treatment: Treatment,
}

/// Everything that a person has to see before answering (spec 9.3).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) approval: String,
    pub(crate) summary: Summary,
    pub(crate) state: State,
    pub(crate) digest: String,
    pub(crate) request: String,
    pub(crate) client: String,
    pub(crate) authenticated_by: &'static str,
    pub(crate) purpose: String,
    pub(crate) task: String,
    pub(crate) selectors: Vec<Selector>,
    pub(crate) actions: Vec<Action>,
    pub(crate) retention_mode: String,
    pub(crate) retention_seconds: u64,
    pub(crate) onward: String,
    pub(crate) access_ends_at: UnixTime,
    pub(crate) policy_version: String,
    pub(crate) policy_digest: String,
    pub(crate) policy_changed: bool,
    pub(crate) reasons: Vec<String>,
    pub(crate) receipt_level: String,
    pub(crate) evidence: Vec<String>,
}

/// What a person grants and declines of the gated scope.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) granted_selectors: Vec<String>,
    pub(crate) granted_actions: Vec<String>,
    pub(crate) declined_selectors: Vec<String>,
    pub(crate) declined_actions: Vec<String>,
}

/// An answer that waits for its passkey.
pub(crate) struct OpenAnswer {
    pub(crate) ceremony: Ceremony,
    pub(crate) document: String,
    pub(crate) credentials: Vec<Vec<u8>>,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    PendingApproval,
    Decided,
    Issued,
    Failed,
    Expired,
    Revoked,
}

/// Where a request stands after an answer.
pub(crate) struct Outcome {
    pub(crate) state: RequestState,
    pub(crate) decision: Box<PolicyDecision>,
    pub(crate) failure: Option<String>,
}

/// One decision about a subject of the person's.
#[derive(Clone)]
pub(crate) struct Decision {
    pub(crate) decision: String,
    pub(crate) subject: String,
    pub(crate) requester: String,
    pub(crate) recipient: String,
    pub(crate) purpose_code: String,
    pub(crate) decided_at: UnixTime,
    pub(crate) expires_at: UnixTime,
    pub(crate) outcome: String,
    pub(crate) state: RequestState,
    pub(crate) granted: Vec<String>,
    pub(crate) granted_actions: Vec<String>,
    pub(crate) denied: Vec<String>,
    pub(crate) denied_actions: Vec<String>,
    pub(crate) reasons: Vec<String>,
    pub(crate) is_active: bool,
    pub(crate) approval: Option<String>,
    pub(crate) bundle: Option<String>,
}

/// A subject of the person's, and the tag of its receipts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) tag: String,
}

/// A part of a list, and where it goes on.
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    pub(crate) next: Option<String>,
}

/// The policy engine over gRPC.
#[derive(Clone, Debug)]
pub struct Engine {
    client: ApprovalServiceClient<PeerChannel>,
}

type Answered<T> = Result<Response<T>, Status>;

fn given<T>(answer: Answered<T>) -> Result<T, Error> {
    let answer = answer.map_err(|status| Error::of_status(Peer::PolicyEngine, &status))?;
    Ok(answer.into_inner())
}

fn within<T>(message: T, deadline: Deadline) -> Request<T> {
    let mut call = Request::new(message);
    deadline.limit(&mut call);
    call
}

impl Engine {
    /// Calls the engine over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: ApprovalServiceClient::new(channel),
        }
    }

    pub(crate) async fn begin_sign_in(&self, deadline: Deadline) -> Result<Ceremony, Error> {
        let call = within(wire::BeginSignInRequest {}, deadline);
        let answer = given(self.client.clone().begin_sign_in(call).await)?;
        read::ceremony(answer.ceremony)
    }

    pub(crate) async fn finish_sign_in(
        &self,
        ceremony_id: Vec<u8>,
        assertion: Assertion,
        deadline: Deadline,
    ) -> Result<SignedIn, Error> {
        let message = wire::FinishSignInRequest {
            ceremony_id,
            assertion: Some(assertion.into()),
        };
        let call = within(message, deadline);
        read::signed_in(given(self.client.clone().finish_sign_in(call).await)?)
    }

    pub(crate) async fn end_session(&self, token: &[u8], deadline: Deadline) -> Result<(), Error> {
        let session = token.to_vec();
        let call = within(wire::EndSessionRequest { session }, deadline);
        given(self.client.clone().end_session(call).await).map(drop)
    }

    pub(crate) async fn begin_enrolment(
        &self,
        link: &[u8],
        deadline: Deadline,
    ) -> Result<Enrolment, Error> {
        let link_token = link.to_vec();
        let call = within(wire::BeginEnrolmentRequest { link_token }, deadline);
        read::enrolment(given(self.client.clone().begin_enrolment(call).await)?)
    }

    /// Stores a new credential; what the person reads to the operator.
    pub(crate) async fn finish_enrolment(
        &self,
        message: wire::FinishEnrolmentRequest,
        deadline: Deadline,
    ) -> Result<String, Error> {
        let call = within(message, deadline);
        read::fingerprint(given(self.client.clone().finish_enrolment(call).await)?)
    }

    pub(crate) async fn queue(
        &self,
        token: &[u8],
        page_token: &str,
        deadline: Deadline,
    ) -> Result<Page<Summary>, Error> {
        let message = wire::ListPendingApprovalsRequest {
            session: token.to_vec(),
            page_size: 0,
            page_token: page_token.to_owned(),
        };
        let call = within(message, deadline);
        let answer = given(self.client.clone().list_pending_approvals(call).await)?;
        let entries = answer.approvals.into_iter().map(read::summary);
        read::page(entries, answer.next_page_token)
    }

    pub(crate) async fn item(
        &self,
        token: &[u8],
        approval: &str,
        deadline: Deadline,
    ) -> Result<Item, Error> {
        let message = wire::GetPendingApprovalRequest {
            session: token.to_vec(),
            approval_ref: read::approval_ref(approval),
        };
        let call = within(message, deadline);
        let answer = given(self.client.clone().get_pending_approval(call).await)?;
        let item = read::item(answer.item)?;
        if item.approval != approval {
            return Err(read::broken("another item"));
        }
        Ok(item)
    }

    pub(crate) async fn begin_answer(
        &self,
        token: &[u8],
        item: &Item,
        answer: &Answer,
        deadline: Deadline,
    ) -> Result<OpenAnswer, Error> {
        let message = wire::BeginAnswerRequest {
            session: token.to_vec(),
            approval_ref: read::approval_ref(&item.approval),
            item_digest: item.digest.clone(),
            granted_selectors: answer.granted_selectors.clone(),
            granted_actions: answer.granted_actions.clone(),
            declined_selectors: answer.declined_selectors.clone(),
            declined_actions: answer.declined_actions.clone(),
        };
        let call = within(message, deadline);
        read::open_answer(given(self.client.clone().begin_answer(call).await)?)
    }

    pub(crate) async fn finish_answer(
        &self,
        token: &[u8],
        ceremony_id: Vec<u8>,
        assertion: Assertion,
        operation_id: String,
        deadline: Deadline,
    ) -> Result<Outcome, Error> {
        let message = wire::FinishAnswerRequest {
            session: token.to_vec(),
            ceremony_id,
            assertion: Some(assertion.into()),
            operation_id,
        };
        let call = within(message, deadline);
        read::outcome(given(self.client.clone().finish_answer(call).await)?)
    }

    pub(crate) async fn decisions(
        &self,
        token: &[u8],
        active_grants_only: bool,
        page_token: &str,
        deadline: Deadline,
    ) -> Result<Page<Decision>, Error> {
        let message = wire::ListDecisionsRequest {
            session: token.to_vec(),
            active_grants_only,
            page_size: 0,
            page_token: page_token.to_owned(),
        };
        let call = within(message, deadline);
        let answer = given(self.client.clone().list_decisions(call).await)?;
        let entries = answer.decisions.into_iter().map(read::decision);
        read::page(entries, answer.next_page_token)
    }

    pub(crate) async fn decision(
        &self,
        token: &[u8],
        decision: &str,
        deadline: Deadline,
    ) -> Result<Decision, Error> {
        let message = wire::GetDecisionRequest {
            session: token.to_vec(),
            decision_ref: read::decision_ref(decision),
        };
        let call = within(message, deadline);
        let answer = given(self.client.clone().get_decision(call).await)?;
        read::decision(answer.decision.ok_or(read::broken("decision"))?)
    }

    pub(crate) async fn revoke(
        &self,
        token: &[u8],
        decision: &str,
        operation_id: String,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let message = wire::RevokeGrantRequest {
            session: token.to_vec(),
            decision_ref: read::decision_ref(decision),
            operation_id,
        };
        let call = within(message, deadline);
        given(self.client.clone().revoke_grant(call).await).map(drop)
    }

    pub(crate) async fn subjects(
        &self,
        token: &[u8],
        deadline: Deadline,
    ) -> Result<Vec<Subject>, Error> {
        let session = token.to_vec();
        let call = within(wire::ListSubjectsRequest { session }, deadline);
        read::subjects(given(self.client.clone().list_subjects(call).await)?)
    }
}

impl From<Assertion> for wire::Assertion {
    fn from(assertion: Assertion) -> Self {
        Self {
            credential_id: assertion.credential_id,
            client_data: assertion.client_data,
            authenticator_data: assertion.authenticator_data,
            signature: assertion.signature,
        }
    }
}
