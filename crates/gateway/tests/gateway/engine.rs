//! A policy engine that keeps the contract of `PolicyService` in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::policy_service_server::PolicyService;
use cl_wire::status::{StatusBuilder, status};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

type Key = (String, String, String);

/// Clones share one engine.
#[derive(Clone)]
pub(crate) struct FakeEngine {
    state: Arc<Mutex<State>>,
    /// Decisions wait for a permit while `is_held`.
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    requests: BTreeMap<Key, (Digest, wire::RequestStatus)>,
    operations: BTreeMap<String, Digest>,
    submissions: Vec<wire::SubmitRequestRequest>,
    executions: usize,
    refusals: VecDeque<Status>,
    lost_answers: usize,
    next: Option<wire::RequestStatus>,
    is_held: bool,
    watchers: usize,
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }
}

impl FakeEngine {
    /// Refuses the next call, of whatever kind, before anything happens.
    pub(crate) fn refuse_next(&self, refusal: Status) {
        self.state().refusals.push_back(refusal);
    }

    /// Decides the next submission, and loses the answer.
    pub(crate) fn lose_next_answer(&self) {
        self.state().lost_answers += 1;
    }

    /// Gives the next new request this status; id and decision are filled in.
    pub(crate) fn decide_next(&self, status: wire::RequestStatus) {
        self.state().next = Some(status);
    }

    /// Turns every request into another state.
    pub(crate) fn turn_all(&self, turned: &wire::RequestStatus) {
        for (_, status) in self.state().requests.values_mut() {
            let (request_ref, decision) = (status.request_ref.clone(), status.decision.clone());
            *status = wire::RequestStatus {
                request_ref,
                decision,
                ..turned.clone()
            };
        }
    }

    /// How many calls follow requests now.
    pub(crate) fn watchers(&self) -> usize {
        self.state().watchers
    }

    pub(crate) fn hold(&self) {
        self.state().is_held = true;
    }

    pub(crate) fn release(&self) {
        self.state().is_held = false;
        self.permits.add_permits(1_000);
    }

    /// How many decisions were made.
    pub(crate) fn executions(&self) -> usize {
        self.state().executions
    }

    /// Everything that arrived, in order.
    pub(crate) fn submissions(&self) -> Vec<wire::SubmitRequestRequest> {
        self.state().submissions.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn decide(&self, message: &wire::SubmitRequestRequest) -> Result<wire::RequestStatus, Status> {
        let facts = checked_facts(message.facts.as_ref(), &message.tenant)?;
        let uuid = message.operation_id.strip_prefix("urn:cl:operation:");
        if !uuid.is_some_and(|uuid| uuid.len() == 36 && &uuid[14..15] == "7") {
            return Err(invalid("operation_id"));
        }
        let value = json::parse(&message.request, Limits::network(1 << 20)).unwrap();
        assert_eq!(
            canonical::to_text(&value).as_bytes(),
            message.request,
            "only canonical bytes arrive"
        );
        let request = ContextRequest::read(&value).unwrap();
        let digest = Digest::of_bytes(&message.request);
        let key = (
            message.tenant.clone(),
            facts.principal.clone(),
            request.id.as_str().to_owned(),
        );
        let mut state = self.state();
        let used = state.operations.get(&message.operation_id);
        if used.is_some_and(|used| *used != digest) {
            let text = "the operation id is in use";
            return Err(status(Code::AlreadyExists, "OPERATION_CONFLICT", text));
        }
        if let Some((known, found)) = state.requests.get(&key) {
            if *known == digest {
                return Ok(found.clone());
            }
            let text = "the request id is in use";
            return Err(status(Code::AlreadyExists, "REQUEST_ID_CONFLICT", text));
        }
        state.executions += 1;
        let decision = json!({
            "decision": "allow", "number": state.executions, "request_ref": key.2,
            "type": "policy_decision",
        });
        let next = state.next.take();
        let found = wire::RequestStatus {
            request_ref: key.2.clone(),
            decision: canonical::to_text(&decision).into_bytes(),
            ..next.unwrap_or_else(|| stands(wire::RequestState::Decided))
        };
        state
            .operations
            .insert(message.operation_id.clone(), digest);
        state.requests.insert(key, (digest, found.clone()));
        Ok(found)
    }

    async fn wait_while_held(&self) {
        if self.state().is_held {
            self.permits.acquire().await.unwrap().forget();
        }
    }
}

pub(crate) fn stands(state: wire::RequestState) -> wire::RequestStatus {
    wire::RequestStatus {
        state: state.into(),
        ..wire::RequestStatus::default()
    }
}

pub(crate) fn later(code: Code, reason: &str, seconds: u64) -> Status {
    StatusBuilder::new(code, reason, "the engine's own words")
        .retry_delay(Duration::from_secs(seconds))
        .build()
}

fn invalid(field: &'static str) -> Status {
    StatusBuilder::new(Code::InvalidArgument, "INVALID_FIELD", "malformed")
        .violation(field, "MALFORMED", "malformed")
        .build()
}

fn checked_facts<'a>(
    facts: Option<&'a wire::AuthenticatedFacts>,
    tenant: &str,
) -> Result<&'a wire::AuthenticatedFacts, Status> {
    let facts = facts.ok_or_else(|| invalid("facts"))?;
    let is_reference = |text: &str| (3..=512).contains(&text.chars().count());
    let is_tenant = |text: &str| !text.is_empty() && text.len() <= 63;
    let is_complete = is_reference(&facts.principal)
        && is_reference(&facts.client_instance)
        && is_tenant(tenant)
        && facts.method != 0
        && facts.assurance != 0;
    is_complete.then_some(facts).ok_or_else(|| invalid("facts"))
}

#[tonic::async_trait]
impl PolicyService for FakeEngine {
    async fn submit_request(
        &self,
        request: Request<wire::SubmitRequestRequest>,
    ) -> Result<Response<wire::SubmitRequestResponse>, Status> {
        let headers = format!("{:?}", request.metadata());
        assert!(
            !headers.contains("authorization"),
            "tokens stay at the edge"
        );
        assert!(request.metadata().get("grpc-timeout").is_some());
        let message = request.into_inner();
        self.state().submissions.push(message.clone());
        let refusal = self.state().refusals.pop_front();
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        self.wait_while_held().await;
        let found = self.decide(&message)?;
        let mut state = self.state();
        if state.lost_answers > 0 {
            state.lost_answers -= 1;
            return Err(Status::unavailable("the connection broke"));
        }
        Ok(Response::new(wire::SubmitRequestResponse {
            status: Some(found),
        }))
    }

    type WatchRequestStream = ReceiverStream<Result<wire::WatchRequestResponse, Status>>;

    async fn watch_request(
        &self,
        request: Request<wire::WatchRequestRequest>,
    ) -> Result<Response<Self::WatchRequestStream>, Status> {
        let message = request.into_inner();
        let facts = checked_facts(message.facts.as_ref(), &message.tenant)?;
        let key = (
            message.tenant.clone(),
            facts.principal.clone(),
            message.request_ref,
        );
        let text = "no such request";
        let find = |engine: &Self, key: &Key| {
            let state = engine.state();
            state.requests.get(key).map(|(_, found)| found.clone())
        };
        let first = find(self, &key);
        let first = first.ok_or_else(|| status(Code::NotFound, "REQUEST_NOT_FOUND", text))?;
        let (sender, receiver) = mpsc::channel(1);
        let engine = self.clone();
        self.state().watchers += 1;
        tokio::spawn(async move {
            let mut last = None;
            let mut next = Some(first);
            loop {
                if last != next
                    && let Some(status) = &next
                {
                    let status = Some(status.clone());
                    let message = wire::WatchRequestResponse { status };
                    if sender.send(Ok(message)).await.is_err() {
                        break;
                    }
                    last = next;
                }
                let pause = tokio::time::sleep(Duration::from_millis(5));
                tokio::select! {
                    () = sender.closed() => break,
                    () = pause => {}
                }
                next = find(&engine, &key);
            }
            engine.state().watchers -= 1;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_request(
        &self,
        request: Request<wire::GetRequestRequest>,
    ) -> Result<Response<wire::GetRequestResponse>, Status> {
        let message = request.into_inner();
        let refusal = self.state().refusals.pop_front();
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let facts = checked_facts(message.facts.as_ref(), &message.tenant)?;
        let key = (
            message.tenant.clone(),
            facts.principal.clone(),
            message.request_ref,
        );
        let state = self.state();
        let found = state.requests.get(&key).map(|(_, found)| found.clone());
        let text = "no such request";
        let found = found.ok_or_else(|| status(Code::NotFound, "REQUEST_NOT_FOUND", text))?;
        Ok(Response::new(wire::GetRequestResponse {
            status: Some(found),
        }))
    }
}
