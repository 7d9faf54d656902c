//! A semantic proxy and a receipt store in memory that enforce their contracts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_host::clock::{Clock, ManualClock};
use cl_model::document::read_canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::json::{self, Limits};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::operation::OperationId;
use cl_model::time::UnixTime;
use cl_model::{canonical, receipt, record};
use cl_testbed::spiffe_id;
use cl_wire::grant::SignedGrant;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, ListOpenRequest, ListOpenResponse, ListReceiptsRequest,
    ListReceiptsResponse, LogEntry, PreflightRequest, PreflightResponse, Routing, VerifyLogRequest,
    VerifyLogResponse,
};
use cl_wire::semantic::v1::semantic_proxy_service_server::SemanticProxyService;
use cl_wire::semantic::v1::{
    AppliedTransform, ProjectClaimsRequest, ProjectClaimsResponse, ProjectedItem,
};
use cl_wire::status::status;
use serde_json::Value;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Response, Status};

use crate::exchange::{bytes, decision_key};

/// More calls than any test makes at once.
pub(crate) const TURNS: u32 = 1000;

/// The time by which the fakes judge: the test's, or the system's for a real process.
pub(crate) type TestClock = Arc<dyn Clock>;

pub(crate) fn manual(clock: &ManualClock) -> TestClock {
    Arc::new(clock.clone())
}

#[derive(Clone)]
pub(crate) struct FakeProxy {
    clock: TestClock,
    /// A call waits here for its turn.
    pub(crate) gate: Arc<Semaphore>,
    state: Arc<Mutex<ProxyState>>,
}

#[derive(Default)]
struct ProxyState {
    items: Vec<ProjectedItem>,
    refusal: Option<(Code, &'static str)>,
    calls: usize,
}

impl FakeProxy {
    pub(crate) fn new(clock: TestClock) -> Self {
        Self {
            clock,
            gate: Arc::new(Semaphore::new(TURNS as usize)),
            state: Arc::default(),
        }
    }

    pub(crate) fn set_items(&self, items: Vec<ProjectedItem>) {
        self.state.lock().unwrap().items = items;
    }

    pub(crate) fn set_refusing(&self, refusal: Option<(Code, &'static str)>) {
        self.state.lock().unwrap().refusal = refusal;
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().calls
    }
}

#[tonic::async_trait]
impl SemanticProxyService for FakeProxy {
    async fn project_claims(
        &self,
        request: Request<ProjectClaimsRequest>,
    ) -> Result<Response<ProjectClaimsResponse>, Status> {
        let request = request.into_inner();
        let value = read_canonical(&request.request).unwrap();
        let context_request = ContextRequest::read(&value).unwrap();
        let grant = SignedGrant::read(request.grant).unwrap();
        let keys = [decision_key().public_key()].into_iter().collect();
        let now = UnixTime::from_milliseconds(self.clock.now_unix_ms());
        let own = spiffe_id("exchange/cl-semantic-proxy");
        let grant = VerifiedGrant::verify(
            &grant.scope,
            &grant.plan,
            &context_request,
            &keys,
            &own,
            now,
        );
        assert_eq!(grant.unwrap().plan().tenant.as_str(), request.tenant);
        assert!(OperationId::parse(&request.operation_id).is_some());
        self.state.lock().unwrap().calls += 1;
        let _turn = self.gate.acquire().await.unwrap();
        let state = self.state.lock().unwrap();
        if let Some((code, reason)) = state.refusal {
            return Err(status(code, reason, "refused"));
        }
        Ok(Response::new(ProjectClaimsResponse {
            items: state.items.clone(),
            withheld: 1,
        }))
    }
}

/// An item as an honest proxy sends it.
pub(crate) fn item(predicate: &str, claim: &str, value: &Value, handle: &str) -> ProjectedItem {
    ProjectedItem {
        predicate: predicate.to_owned(),
        claim: claim.to_owned(),
        value: bytes(value),
        confidence: 0.9,
        provenance_handles: vec![handle.to_owned()],
        status: "asserted".to_owned(),
        trust: "verified".to_owned(),
        valid_from: None,
        valid_until: None,
        transforms: vec![AppliedTransform {
            name: "generalise".to_owned(),
            confidence: 1.0,
        }],
    }
}

#[derive(Clone)]
pub(crate) struct FakeReceipts {
    /// An append waits here for its turn.
    pub(crate) gate: Arc<Semaphore>,
    state: Arc<Mutex<ReceiptState>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) routing: Routing,
    pub(crate) receipt: Value,
}

#[derive(Default)]
struct ReceiptState {
    is_preflight_down: bool,
    is_append_down: bool,
    loses_answers: bool,
    refuses: bool,
    appends: usize,
    log: Vec<Recorded>,
    by_operation: BTreeMap<(String, String), (usize, AppendRequest)>,
    consumed: BTreeMap<(String, String), usize>,
}

impl FakeReceipts {
    pub(crate) fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(TURNS as usize)),
            state: Arc::default(),
        }
    }

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

    /// Appends are kept, but their answers are lost.
    pub(crate) fn set_loses_answers(&self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    /// How often somebody has begun to append.
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

const OWN_OPERATIONS: [&str; 3] = ["bundle.issue", "bundle.deliver", "bundle.revoke"];

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
            assert!(OWN_OPERATIONS.contains(&operation.as_str()), "{operation}");
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
        if state.is_append_down {
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

/// The whole receipt; panics if the writer may not write it.
fn completed(request: &AppendRequest) -> Value {
    let routing = request.routing.as_ref().unwrap();
    match request.body.as_ref().unwrap() {
        Body::Members(members) => {
            let value = json::parse(members, Limits::network(65_536)).unwrap();
            assert_eq!(canonical::to_text(&value).as_bytes(), members);
            let receipt = record::finalize(value, "urn:cl:receipt:").unwrap();
            receipt::check(receipt.value()).unwrap();
            let receipt = receipt.into_value();
            assert_eq!(receipt["actor"], spiffe_id("exchange/cl-bundle-issuer"));
            assert_eq!(receipt["metadata"]["operation_id"], routing.operation_id);
            assert!(OWN_OPERATIONS.contains(&receipt["operation"].as_str().unwrap()));
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
