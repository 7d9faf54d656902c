//! A policy engine that keeps the contract of `ApprovalService` in memory. Of an assertion it looks at
//! the challenge and the origin only: verifying passkeys is the real engine's own test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::approval_service_server::ApprovalService;
use cl_wire::status::status;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use tonic::{Code, Request, Response, Status};

use crate::items::{PERSON, SUBJECT, TAG, TENANT, at, decided};

/// Clones share one engine.
#[derive(Clone, Default)]
pub(crate) struct FakeEngine {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    origin: String,
    rp_id: String,
    sessions: BTreeSet<Vec<u8>>,
    ceremonies: BTreeMap<Vec<u8>, Ceremony>,
    credentials: Vec<Vec<u8>>,
    links: BTreeSet<Vec<u8>>,
    items: BTreeMap<String, wire::ApprovalItem>,
    decisions: Vec<wire::DecisionSummary>,
    answers: Vec<wire::BeginAnswerRequest>,
    done: BTreeMap<String, wire::RequestStatus>,
    refusals: VecDeque<Status>,
    changes: usize,
    made: u8,
}

#[derive(Clone)]
enum Ceremony {
    SignIn(Vec<u8>),
    Enrol(Vec<u8>),
    Answer(Vec<u8>, wire::BeginAnswerRequest),
}

impl FakeEngine {
    pub(crate) fn serve(&self, origin: &str, rp_id: &str) {
        let mut state = self.state();
        state.origin = origin.to_owned();
        state.rp_id = rp_id.to_owned();
    }

    pub(crate) fn refuse_next(&self, refusal: Status) {
        self.state().refusals.push_back(refusal);
    }

    /// How often anything changed.
    pub(crate) fn changes(&self) -> usize {
        self.state().changes
    }

    pub(crate) fn answers(&self) -> Vec<wire::BeginAnswerRequest> {
        self.state().answers.clone()
    }

    pub(crate) fn open_link(&self, token: [u8; 32]) {
        self.state().links.insert(token.to_vec());
    }

    pub(crate) fn know(&self, credential: &[u8]) {
        self.state().credentials.push(credential.to_vec());
    }

    pub(crate) fn end_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Puts an item into the queue, or another in its place.
    pub(crate) fn put(&self, item: wire::ApprovalItem) {
        let reference = item.summary.as_ref().unwrap().approval_ref.clone();
        self.state().items.insert(reference, item);
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut wire::ApprovalItem)) {
        let reference = format!("urn:cl:approval:{name}");
        change(self.state().items.get_mut(&reference).unwrap());
    }

    pub(crate) fn decide(&self, decision: wire::DecisionSummary) {
        self.state().decisions.push(decision);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn before<T>(&self, request: &Request<T>) -> Result<(), Status> {
        assert!(request.metadata().get("grpc-timeout").is_some());
        self.state().refusals.pop_front().map_or(Ok(()), Err)
    }

    fn person(&self, session: &[u8]) -> Result<(), Status> {
        let is_open = self.state().sessions.contains(session);
        let closed = || refusal(Code::Unauthenticated, "SESSION_NOT_OPEN");
        is_open.then_some(()).ok_or_else(closed)
    }

    fn open(&self, make: impl FnOnce(Vec<u8>) -> Ceremony, challenge: [u8; 32]) -> wire::Ceremony {
        let mut state = self.state();
        state.made += 1;
        let id = vec![state.made; 16];
        let ceremony = make(challenge.to_vec());
        state.ceremonies.insert(id.clone(), ceremony);
        wire::Ceremony {
            id,
            challenge: challenge.to_vec(),
            rp_id: state.rp_id.clone(),
            expires_at: Some(at(300)),
        }
    }

    /// Spends a ceremony, and looks at what the browser signed for it.
    fn spend(&self, id: &[u8], client_data: &[u8]) -> Result<Ceremony, Status> {
        let mut state = self.state();
        let open = state.ceremonies.remove(id);
        let open = open.ok_or_else(|| refusal(Code::FailedPrecondition, "CEREMONY_NOT_OPEN"))?;
        let malformed = || refusal(Code::PermissionDenied, "ASSERTION_MALFORMED");
        let data: Value = serde_json::from_slice(client_data).map_err(|_| malformed())?;
        let challenge = match &open {
            Ceremony::SignIn(challenge)
            | Ceremony::Enrol(challenge)
            | Ceremony::Answer(challenge, _) => BASE64URL_NOPAD.encode(challenge),
        };
        if data["challenge"] != challenge.as_str() {
            return Err(refusal(Code::PermissionDenied, "ASSERTION_CHALLENGE"));
        }
        if data["origin"] != state.origin.as_str() {
            return Err(refusal(Code::PermissionDenied, "ASSERTION_ORIGIN"));
        }
        Ok(open)
    }
}

pub(crate) fn refusal(code: Code, reason: &str) -> Status {
    status(code, reason, "the engine's own words")
}

#[tonic::async_trait]
impl ApprovalService for FakeEngine {
    async fn begin_sign_in(
        &self,
        request: Request<wire::BeginSignInRequest>,
    ) -> Result<Response<wire::BeginSignInResponse>, Status> {
        self.before(&request)?;
        let ceremony = Some(self.open(Ceremony::SignIn, [1; 32]));
        Ok(Response::new(wire::BeginSignInResponse { ceremony }))
    }

    async fn finish_sign_in(
        &self,
        request: Request<wire::FinishSignInRequest>,
    ) -> Result<Response<wire::FinishSignInResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        let assertion = message.assertion.unwrap();
        let open = self.spend(&message.ceremony_id, &assertion.client_data)?;
        assert!(matches!(open, Ceremony::SignIn(_)));
        if !self.state().credentials.contains(&assertion.credential_id) {
            return Err(refusal(Code::PermissionDenied, "CREDENTIAL_UNKNOWN"));
        }
        let mut state = self.state();
        state.changes += 1;
        let number = u8::try_from(state.changes).unwrap();
        let session = [b"canary-session-token-canary-tok".as_slice(), &[number]].concat();
        state.sessions.insert(session.clone());
        Ok(Response::new(wire::FinishSignInResponse {
            session,
            tenant: TENANT.to_owned(),
            principal: PERSON.to_owned(),
            expires_at: Some(at(8 * 3600)),
            idle_seconds: 900,
        }))
    }

    async fn end_session(
        &self,
        request: Request<wire::EndSessionRequest>,
    ) -> Result<Response<wire::EndSessionResponse>, Status> {
        self.before(&request)?;
        let mut state = self.state();
        state.sessions.remove(&request.into_inner().session);
        state.changes += 1;
        Ok(Response::new(wire::EndSessionResponse {}))
    }

    async fn begin_enrolment(
        &self,
        request: Request<wire::BeginEnrolmentRequest>,
    ) -> Result<Response<wire::BeginEnrolmentResponse>, Status> {
        self.before(&request)?;
        let link = request.into_inner().link_token;
        if !self.state().links.contains(&link) {
            let reason = "ENROLMENT_LINK_NOT_OPEN";
            return Err(refusal(Code::FailedPrecondition, reason));
        }
        let ceremony = self.open(Ceremony::Enrol, [2; 32]);
        Ok(Response::new(wire::BeginEnrolmentResponse {
            ceremony: Some(ceremony),
            user_handle: vec![9; 32],
            principal: PERSON.to_owned(),
            tenant: TENANT.to_owned(),
            algorithms: vec![-7, -8],
            exclude_credential_ids: self.state().credentials.clone(),
        }))
    }

    async fn finish_enrolment(
        &self,
        request: Request<wire::FinishEnrolmentRequest>,
    ) -> Result<Response<wire::FinishEnrolmentResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        let open = self.spend(&message.ceremony_id, &message.client_data)?;
        assert!(matches!(open, Ceremony::Enrol(_)));
        let mut state = self.state();
        if !state.links.remove(&message.link_token) {
            let reason = "ENROLMENT_LINK_NOT_OPEN";
            return Err(refusal(Code::FailedPrecondition, reason));
        }
        state.changes += 1;
        Ok(Response::new(wire::FinishEnrolmentResponse {
            fingerprint: "0123 4567 89ab cdef 0123".to_owned(),
        }))
    }

    async fn list_pending_approvals(
        &self,
        request: Request<wire::ListPendingApprovalsRequest>,
    ) -> Result<Response<wire::ListPendingApprovalsResponse>, Status> {
        self.before(&request)?;
        self.person(&request.get_ref().session)?;
        let state = self.state();
        let pending = wire::ApprovalState::Pending;
        let items = state.items.values().filter(|it| it.state() == pending);
        let is_first = request.get_ref().page_token.is_empty();
        let token = "canary-page-token-with-subject";
        assert!(is_first || request.get_ref().page_token == token);
        let (skipped, shown) = if is_first { (0, 2) } else { (2, 100) };
        let approvals: Vec<_> = items.filter_map(|it| it.summary.clone()).collect();
        let has_more = is_first && approvals.len() > 2;
        Ok(Response::new(wire::ListPendingApprovalsResponse {
            approvals: approvals.into_iter().skip(skipped).take(shown).collect(),
            next_page_token: if has_more {
                token.to_owned()
            } else {
                String::new()
            },
        }))
    }

    async fn get_pending_approval(
        &self,
        request: Request<wire::GetPendingApprovalRequest>,
    ) -> Result<Response<wire::GetPendingApprovalResponse>, Status> {
        self.before(&request)?;
        self.person(&request.get_ref().session)?;
        let item = self
            .state()
            .items
            .get(&request.get_ref().approval_ref)
            .cloned();
        let item = item.ok_or_else(|| refusal(Code::NotFound, "APPROVAL_NOT_FOUND"))?;
        Ok(Response::new(wire::GetPendingApprovalResponse {
            item: Some(item),
        }))
    }

    async fn begin_answer(
        &self,
        request: Request<wire::BeginAnswerRequest>,
    ) -> Result<Response<wire::BeginAnswerResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        self.person(&message.session)?;
        let item = self.state().items.get(&message.approval_ref).cloned();
        let item = item.ok_or_else(|| refusal(Code::NotFound, "APPROVAL_NOT_FOUND"))?;
        match item.state() {
            wire::ApprovalState::Expired => {
                return Err(refusal(Code::FailedPrecondition, "APPROVAL_EXPIRED"));
            }
            wire::ApprovalState::Answered => {
                return Err(refusal(Code::FailedPrecondition, "APPROVAL_ANSWERED"));
            }
            wire::ApprovalState::NotNeeded => {
                return Err(refusal(Code::FailedPrecondition, "APPROVAL_NOT_NEEDED"));
            }
            wire::ApprovalState::Replaced
            | wire::ApprovalState::Pending
            | wire::ApprovalState::Unspecified => {}
        }
        if item.state() == wire::ApprovalState::Replaced || item.item_digest != message.item_digest
        {
            return Err(refusal(Code::Aborted, "APPROVAL_CHANGED"));
        }
        let document = json!({"approval_ref": message.approval_ref, "nonce": "n"});
        let credential_ids = self.state().credentials.clone();
        let ceremony = self.open(|challenge| Ceremony::Answer(challenge, message), [3; 32]);
        Ok(Response::new(wire::BeginAnswerResponse {
            ceremony: Some(ceremony),
            approval: document.to_string().into_bytes(),
            credential_ids,
        }))
    }

    async fn finish_answer(
        &self,
        request: Request<wire::FinishAnswerRequest>,
    ) -> Result<Response<wire::FinishAnswerResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        self.person(&message.session)?;
        let uuid = message.operation_id.strip_prefix("urn:cl:operation:");
        assert!(uuid.is_some_and(|uuid| uuid.len() == 36));
        if let Some(done) = self.state().done.get(&message.operation_id) {
            let status = Some(done.clone());
            return Ok(Response::new(wire::FinishAnswerResponse { status }));
        }
        let assertion = message.assertion.unwrap();
        let open = self.spend(&message.ceremony_id, &assertion.client_data)?;
        let Ceremony::Answer(_, answer) = open else {
            return Err(refusal(Code::FailedPrecondition, "CEREMONY_NOT_OPEN"));
        };
        let mut state = self.state();
        let item = state.items.get_mut(&answer.approval_ref).unwrap();
        item.state = wire::ApprovalState::Answered.into();
        let found = decided(&answer);
        state.done.insert(message.operation_id, found.clone());
        state.answers.push(answer);
        state.changes += 1;
        let status = Some(found);
        Ok(Response::new(wire::FinishAnswerResponse { status }))
    }

    async fn list_decisions(
        &self,
        request: Request<wire::ListDecisionsRequest>,
    ) -> Result<Response<wire::ListDecisionsResponse>, Status> {
        self.before(&request)?;
        self.person(&request.get_ref().session)?;
        let only = request.get_ref().active_grants_only;
        let mut decisions = self.state().decisions.clone();
        decisions.retain(|it| it.active_grant || !only);
        Ok(Response::new(wire::ListDecisionsResponse {
            decisions,
            next_page_token: String::new(),
        }))
    }

    async fn get_decision(
        &self,
        request: Request<wire::GetDecisionRequest>,
    ) -> Result<Response<wire::GetDecisionResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        self.person(&message.session)?;
        let state = self.state();
        let mut decisions = state.decisions.iter();
        let found = decisions.find(|it| it.decision_ref == message.decision_ref);
        let found = found.ok_or_else(|| refusal(Code::NotFound, "DECISION_NOT_FOUND"))?;
        Ok(Response::new(wire::GetDecisionResponse {
            decision: Some(found.clone()),
        }))
    }

    async fn revoke_grant(
        &self,
        request: Request<wire::RevokeGrantRequest>,
    ) -> Result<Response<wire::RevokeGrantResponse>, Status> {
        self.before(&request)?;
        let message = request.into_inner();
        self.person(&message.session)?;
        let mut state = self.state();
        let mut decisions = state.decisions.iter_mut();
        let found = decisions.find(|it| it.decision_ref == message.decision_ref);
        let found = found.ok_or_else(|| refusal(Code::NotFound, "DECISION_NOT_FOUND"))?;
        if !found.active_grant {
            return Err(refusal(Code::FailedPrecondition, "GRANT_NOT_ACTIVE"));
        }
        found.active_grant = false;
        state.changes += 1;
        Ok(Response::new(wire::RevokeGrantResponse {}))
    }

    async fn explain_decision(
        &self,
        _request: Request<wire::ApprovalServiceExplainDecisionRequest>,
    ) -> Result<Response<wire::ApprovalServiceExplainDecisionResponse>, Status> {
        Err(Status::unimplemented(
            "the console explains by reason codes",
        ))
    }

    async fn list_subjects(
        &self,
        request: Request<wire::ListSubjectsRequest>,
    ) -> Result<Response<wire::ListSubjectsResponse>, Status> {
        self.before(&request)?;
        self.person(&request.get_ref().session)?;
        let subject = wire::ApproverSubject {
            subject: SUBJECT.to_owned(),
            subject_tag: TAG.to_owned(),
        };
        Ok(Response::new(wire::ListSubjectsResponse {
            subjects: vec![subject],
        }))
    }
}
