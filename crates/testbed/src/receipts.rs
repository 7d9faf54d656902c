//! A receipt store in memory that enforces the contract of `Preflight` and `Append`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_model::json::{self, Limits};
use cl_model::{canonical, receipt, record};
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_server::{ReceiptService, ReceiptServiceServer};
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, ListOpenRequest, ListOpenResponse, ListReceiptsRequest,
    ListReceiptsResponse, LogEntry, PreflightRequest, PreflightResponse, Routing, VerifyLogRequest,
    VerifyLogResponse,
};
use cl_wire::status::status;
use serde_json::Value;
use tokio::sync::Semaphore;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};

use crate::authority::{Authority, spiffe_id};
use crate::serving::Serving;

/// More calls than any test makes at once.
pub const TURNS: u32 = 1000;

/// The receipt store of one writer.
#[derive(Clone)]
pub struct FakeReceipts {
    /// The SPIFFE path of the writer.
    writer: &'static str,
    operations: &'static [&'static str],
    /// An append waits here for its turn.
    pub gate: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// A receipt, and what came with it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Under which tenant and operation.
    pub routing: Routing,
    /// The whole receipt.
    pub receipt: Value,
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
    consumed: BTreeMap<(String, String), usize>,
}

impl FakeReceipts {
    /// One that takes receipts of these operations from a writer, and those of consumers through it.
    pub fn new(writer: &'static str, operations: &'static [&'static str]) -> Self {
        Self {
            writer,
            operations,
            gate: Arc::new(Semaphore::new(TURNS as usize)),
            state: Arc::default(),
        }
    }

    /// Serves it to its writer.
    pub async fn serve(&self, authority: &Authority) -> Serving {
        Serving::peer(
            authority,
            "exchange/cl-receipt-store",
            Routes::new(ReceiptServiceServer::new(self.clone())),
            &[
                "/contextlayer.receipt.v1.ReceiptService/Preflight",
                "/contextlayer.receipt.v1.ReceiptService/Append",
            ],
            self.writer,
        )
        .await
    }

    /// Nothing answers, or everything does again.
    pub fn set_down(&self, is_down: bool) {
        let mut state = self.state.lock().unwrap();
        state.is_preflight_down = is_down;
        state.is_append_down = is_down;
    }

    /// It answers preflights, and says no.
    pub fn set_refusing(&self, refuses: bool) {
        self.state.lock().unwrap().refuses = refuses;
    }

    /// Preflights are answered, appends are not.
    pub fn set_append_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_append_down = is_down;
    }

    /// Nothing answers appends of this operation.
    pub fn set_down_for(&self, operation: Option<&'static str>) {
        self.state.lock().unwrap().down_for = operation;
    }

    /// Appends are kept, but their answers are lost.
    pub fn set_loses_answers(&self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    /// How often somebody has begun to append.
    pub fn appends(&self) -> usize {
        self.state.lock().unwrap().appends
    }

    /// All receipts, in the order of their appends.
    pub fn log(&self) -> Vec<Recorded> {
        self.state.lock().unwrap().log.clone()
    }

    /// Those of one operation.
    pub fn of(&self, operation: &str) -> Vec<Recorded> {
        let mut log = self.log();
        log.retain(|recorded| recorded.receipt["operation"] == operation);
        log
    }

    /// The whole receipt; panics if the writer may not write it.
    fn completed(&self, request: &AppendRequest) -> Value {
        let routing = request.routing.as_ref().unwrap();
        match request.body.as_ref().unwrap() {
            Body::Members(members) => {
                let value = json::parse(members, Limits::network(65_536)).unwrap();
                assert_eq!(canonical::to_text(&value).as_bytes(), members);
                let receipt = record::finalize(value, "urn:cl:receipt:").unwrap();
                receipt::check(receipt.value()).unwrap();
                let receipt = receipt.into_value();
                assert_eq!(receipt["actor"], spiffe_id(self.writer));
                assert_eq!(receipt["metadata"]["operation_id"], routing.operation_id);
                let operation = receipt["operation"].as_str().unwrap();
                assert!(self.operations.contains(&operation), "{operation}");
                receipt
            }
            Body::ConsumerReceipt(consumers) => {
                let value = json::parse(&consumers.receipt, Limits::network(65_536)).unwrap();
                receipt::check(&value).unwrap();
                assert_eq!(value["actor"], consumers.recipient);
                let digest = value["id"].as_str().unwrap().rsplit(':').next().unwrap();
                assert_eq!(routing.operation_id, format!("urn:cl:operation:{digest}"));
                value
            }
        }
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
            let is_own = self.operations.contains(&operation.as_str());
            assert!(is_own, "{operation}");
        }
        Ok(Response::new(PreflightResponse { ok: !state.refuses }))
    }

    async fn append(
        &self,
        request: Request<AppendRequest>,
    ) -> Result<Response<AppendResponse>, Status> {
        let request = request.into_inner();
        self.state.lock().unwrap().appends += 1;
        let _turn = self.gate.acquire().await.unwrap();
        let mut state = self.state.lock().unwrap();
        let is_down_for = |operation| self.completed(&request)["operation"] == operation;
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
                let receipt = self.completed(&request);
                let sequence = state.log.len() + 1;
                if receipt["operation"] == "bundle.consume" && receipt["outcome"] == "success" {
                    let text = |name: &str| receipt[name].as_str().unwrap().to_owned();
                    let consumption = (text("actor"), text("bundle_ref"));
                    if state.consumed.insert(consumption, sequence).is_some() {
                        let code = Code::AlreadyExists;
                        return Err(status(code, "RECEIPT_REPLAY_CONFLICT", "consumed"));
                    }
                }
                state.log.push(Recorded { routing, receipt });
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
