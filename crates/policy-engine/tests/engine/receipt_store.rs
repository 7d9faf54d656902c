//! A receipt store in memory that enforces the contract of `Preflight` and `Append`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_model::json::{self, Limits};
use cl_model::{canonical, receipt, record};
use cl_testbed::spiffe_id;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, ListOpenRequest, ListOpenResponse, ListReceiptsRequest,
    ListReceiptsResponse, LogEntry, PreflightRequest, PreflightResponse, Routing, VerifyLogRequest,
    VerifyLogResponse,
};
use cl_wire::status::status;
use serde_json::Value;
use tonic::{Code, Request, Response, Status};

const OPERATIONS: [&str; 18] = [
    "policy.decide",
    "policy.put_snapshot",
    "policy.activate_snapshot",
    "policy.replay",
    "policy.approve",
    "policy.refuse_approval",
    "policy.refuse_sign_in",
    "policy.open_enrolment",
    "policy.enrol_credential",
    "policy.confirm_credential",
    "policy.revoke_credential",
    "policy.revoke_grant",
    "policy.set_anomaly",
    "policy.clear_anomaly",
    "policy.set_shadow",
    "policy.clear_shadow",
    "policy.delegate",
    "policy.revoke_delegation",
];

#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) routing: Routing,
    pub(crate) receipt: Value,
}

#[derive(Clone, Default)]
pub(crate) struct FakeReceipts {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_preflight_down: bool,
    is_append_down: bool,
    /// The one operation that nothing answers appends of.
    down_for: Option<&'static str>,
    loses_answers: bool,
    refuses: bool,
    appends: usize,
    log: Vec<Recorded>,
    by_operation: BTreeMap<(String, String), (usize, AppendRequest)>,
}

impl FakeReceipts {
    /// Nothing answers, or everything does again.
    pub(crate) fn set_down(&self, is_down: bool) {
        let mut state = self.state.lock().unwrap();
        state.is_preflight_down = is_down;
        state.is_append_down = is_down;
    }

    /// It answers preflights, and says no.
    pub(crate) fn set_refusing(&self, refuses: bool) {
        self.state.lock().unwrap().refuses = refuses;
    }

    /// Preflights are answered, appends are not.
    pub(crate) fn set_append_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_append_down = is_down;
    }

    /// Nothing answers appends of this operation.
    pub(crate) fn set_down_for(&self, operation: Option<&'static str>) {
        self.state.lock().unwrap().down_for = operation;
    }

    /// Appends are kept, but their answers are lost.
    pub(crate) fn set_loses_answers(&self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    pub(crate) fn appends(&self) -> usize {
        self.state.lock().unwrap().appends
    }

    pub(crate) fn log(&self) -> Vec<Recorded> {
        self.state.lock().unwrap().log.clone()
    }

    pub(crate) fn of(&self, operation: &str) -> Vec<Recorded> {
        let mut log = self.log();
        log.retain(|recorded| recorded.receipt["operation"] == operation);
        log
    }
}

fn down() -> Status {
    status(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", "away")
}

#[tonic::async_trait]
impl ReceiptService for FakeReceipts {
    async fn preflight(
        &self,
        request: Request<PreflightRequest>,
    ) -> Result<Response<PreflightResponse>, Status> {
        let state = self.state.lock().unwrap();
        if state.is_preflight_down {
            return Err(down());
        }
        for operation in &request.get_ref().operations {
            assert!(OPERATIONS.contains(&operation.as_str()), "{operation}");
        }
        Ok(Response::new(PreflightResponse { ok: !state.refuses }))
    }

    async fn append(
        &self,
        request: Request<AppendRequest>,
    ) -> Result<Response<AppendResponse>, Status> {
        let request = request.into_inner();
        let mut state = self.state.lock().unwrap();
        state.appends += 1;
        let is_down_for = |operation| completed(&request)["operation"] == operation;
        if state.is_append_down || state.down_for.is_some_and(is_down_for) {
            return Err(down());
        }
        let routing = request.routing.clone().unwrap();
        let operation = (routing.tenant.clone(), routing.operation_id.clone());
        let sequence = match state.by_operation.get(&operation) {
            Some((sequence, same)) if *same == request => *sequence,
            Some(_) => {
                return Err(status(Code::AlreadyExists, "OPERATION_CONFLICT", "used"));
            }
            None => {
                let receipt = completed(&request);
                state.log.push(Recorded { routing, receipt });
                let sequence = state.log.len();
                state.by_operation.insert(operation, (sequence, request));
                sequence
            }
        };
        if state.loses_answers {
            return Err(down());
        }
        let receipt_ref = state.log[sequence - 1].receipt["id"].as_str().unwrap();
        let entry = LogEntry {
            sequence: sequence.try_into().unwrap(),
            receipt_ref: receipt_ref.to_owned(),
            supersedes_ref: None,
        };
        Ok(Response::new(AppendResponse {
            entry: Some(entry),
            ..AppendResponse::default()
        }))
    }

    async fn begin(&self, _: Request<BeginRequest>) -> Result<Response<BeginResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn complete(
        &self,
        _: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn list_open(
        &self,
        _: Request<ListOpenRequest>,
    ) -> Result<Response<ListOpenResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn get_receipt(
        &self,
        _: Request<GetReceiptRequest>,
    ) -> Result<Response<GetReceiptResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn list_receipts(
        &self,
        _: Request<ListReceiptsRequest>,
    ) -> Result<Response<ListReceiptsResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn verify_log(
        &self,
        _: Request<VerifyLogRequest>,
    ) -> Result<Response<VerifyLogResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }
}

/// The receipt with id and integrity; panics if the writer may not write it.
fn completed(request: &AppendRequest) -> Value {
    let Some(Body::Members(members)) = &request.body else {
        panic!("no members");
    };
    let value = json::parse(members, Limits::network(65_536)).unwrap();
    assert_eq!(canonical::to_text(&value).as_bytes(), members);
    let receipt = record::finalize(value, "urn:cl:receipt:").unwrap();
    receipt::check(receipt.value()).unwrap();
    let routing = request.routing.as_ref().unwrap();
    let receipt = receipt.into_value();
    assert_eq!(receipt["actor"], spiffe_id("exchange/cl-policy-engine"));
    assert_eq!(receipt["metadata"]["operation_id"], routing.operation_id);
    assert!(OPERATIONS.contains(&receipt["operation"].as_str().unwrap()));
    receipt
}
