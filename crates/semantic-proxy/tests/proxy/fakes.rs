//! A vault and a receipt store in memory that enforce their contracts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_host::clock::{Clock, ManualClock};
use cl_model::document::read_canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::json::{self, Limits};
use cl_model::leak::LeakKey;
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::operation::OperationId;
use cl_model::time::UnixTime;
use cl_model::{canonical, receipt, record};
use cl_testbed::spiffe_id;
use cl_wire::grant::SignedGrant;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, Intent, IntentState, ListOpenRequest, ListOpenResponse,
    ListReceiptsRequest, ListReceiptsResponse, LogEntry, PreflightRequest, PreflightResponse,
    Routing, VerifyLogRequest, VerifyLogResponse,
};
use cl_wire::status::status;
use cl_wire::vault::v1::vault_service_server::VaultService;
use cl_wire::vault::v1::{
    Fingerprint, LeakGuard, ResolveClaimsRequest, ResolveClaimsResponse, ResolvedClaim,
};
use prost_types::Timestamp;
use serde_json::{Value, json};
use tonic::{Code, Request, Response, Status};

use crate::exchange::{bytes, decision_key};

const LEAK_KEY: [u8; 32] = [5; 32];

#[derive(Clone)]
pub(crate) struct FakeVault {
    clock: ManualClock,
    state: Arc<Mutex<VaultState>>,
}

#[derive(Default)]
struct VaultState {
    claims: Vec<ResolvedClaim>,
    withheld: u32,
    denied: Vec<Value>,
    guard: Option<Option<LeakGuard>>,
    refusal: Option<(Code, &'static str)>,
    calls: usize,
}

impl FakeVault {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            clock,
            state: Arc::default(),
        }
    }

    pub(crate) fn set_claims(&self, claims: Vec<ResolvedClaim>) {
        self.state.lock().unwrap().claims = claims;
    }

    pub(crate) fn set_withheld(&self, withheld: u32) {
        self.state.lock().unwrap().withheld = withheld;
    }

    /// Values of the same sources that are not granted.
    pub(crate) fn set_denied(&self, denied: Vec<Value>) {
        self.state.lock().unwrap().denied = denied;
    }

    /// Sends this in place of an honest leak guard.
    pub(crate) fn set_guard(&self, guard: Option<LeakGuard>) {
        self.state.lock().unwrap().guard = Some(guard);
    }

    pub(crate) fn set_refusing(&self, refusal: Option<(Code, &'static str)>) {
        self.state.lock().unwrap().refusal = refusal;
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().calls
    }
}

/// The guard that an honest vault sends.
pub(crate) fn guard(denied: &[Value], granted: &[Value]) -> LeakGuard {
    let key = LeakKey::new(&LEAK_KEY).unwrap();
    let prints = key.fingerprints(denied, granted).into_iter();
    let prints = prints.map(|print| Fingerprint {
        length: print.length.try_into().unwrap(),
        rolling: print.rolling,
        tag: print.tag.to_vec(),
    });
    LeakGuard {
        key: LEAK_KEY.to_vec(),
        fingerprints: prints.collect(),
    }
}

#[tonic::async_trait]
impl VaultService for FakeVault {
    async fn resolve_claims(
        &self,
        request: Request<ResolveClaimsRequest>,
    ) -> Result<Response<ResolveClaimsResponse>, Status> {
        let request = request.into_inner();
        let value = read_canonical(&request.request).unwrap();
        let context_request = ContextRequest::read(&value).unwrap();
        let grant = SignedGrant::read(request.grant).unwrap();
        let keys = [decision_key().public_key()].into_iter().collect();
        let now = UnixTime::from_milliseconds(self.clock.now_unix_ms());
        let own = spiffe_id("vault/cl-vault");
        VerifiedGrant::verify(
            &grant.scope,
            &grant.plan,
            &context_request,
            &keys,
            &own,
            now,
        )
        .unwrap();
        assert!(OperationId::parse(&request.operation_id).is_some());
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        if let Some((code, reason)) = state.refusal {
            return Err(status(code, reason, "refused"));
        }
        let granted: Vec<Value> = state
            .claims
            .iter()
            .filter_map(|claim| serde_json::from_slice(&claim.value).ok())
            .collect();
        let honest = Some(guard(&state.denied, &granted));
        Ok(Response::new(ResolveClaimsResponse {
            claims: state.claims.clone(),
            withheld: state.withheld,
            leak_guard: state.guard.clone().unwrap_or(honest),
        }))
    }
}

/// A claim as an honest vault sends it.
pub(crate) fn claim(predicate: &str, datatype: &str, value: &Value, handle: &str) -> ResolvedClaim {
    ResolvedClaim {
        predicate: predicate.to_owned(),
        value: bytes(value),
        datatype: datatype.to_owned(),
        confidence: 0.9,
        status: "asserted".to_owned(),
        trust: "verified".to_owned(),
        label: "private".to_owned(),
        valid_from: None,
        valid_until: None,
        provenance_handles: vec![handle.to_owned()],
    }
}

#[derive(Clone)]
pub(crate) struct FakeReceipts {
    clock: ManualClock,
    state: Arc<Mutex<ReceiptState>>,
}

#[derive(Default)]
struct ReceiptState {
    is_begin_down: bool,
    is_complete_down: bool,
    open: BTreeMap<String, (BeginRequest, i64)>,
    log: Vec<(Routing, Value)>,
}

impl FakeReceipts {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            clock,
            state: Arc::default(),
        }
    }

    pub(crate) fn set_begin_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_begin_down = is_down;
    }

    pub(crate) fn set_complete_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_complete_down = is_down;
    }

    pub(crate) fn open_intents(&self) -> usize {
        self.state.lock().unwrap().open.len()
    }

    pub(crate) fn log(&self) -> Vec<(Routing, Value)> {
        self.state.lock().unwrap().log.clone()
    }

    /// The newest receipt.
    pub(crate) fn last(&self) -> Value {
        self.log().last().unwrap().1.clone()
    }
}

fn down() -> Status {
    status(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", "away")
}

fn members(bytes: &[u8]) -> Value {
    let value = json::parse(bytes, Limits::network(65_536)).unwrap();
    assert_eq!(canonical::to_text(&value).as_bytes(), bytes);
    value
}

#[tonic::async_trait]
impl ReceiptService for FakeReceipts {
    async fn begin(
        &self,
        request: Request<BeginRequest>,
    ) -> Result<Response<BeginResponse>, Status> {
        let request = request.into_inner();
        let mut state = self.state.lock().unwrap();
        if state.is_begin_down {
            return Err(down());
        }
        let routing = request.routing.clone().unwrap();
        let fixed = members(&request.members);
        for name in ["operation", "actor", "issuer", "subject_ref", "started_at"] {
            assert!(!fixed[name].is_null(), "{name}");
        }
        assert_eq!(fixed["operation"], "semantic_proxy.project");
        assert_eq!(fixed["actor"], spiffe_id("exchange/cl-semantic-proxy"));
        let now = self.clock.now_unix_ms();
        let deadline = request.deadline.as_ref().unwrap().seconds * 1000;
        assert!(deadline > now && deadline <= now + 24 * 3_600_000);
        let earlier = state
            .open
            .insert(routing.operation_id.clone(), (request, now));
        assert!(earlier.is_none(), "one intent an operation");
        Ok(Response::new(BeginResponse {
            state: IntentState::Open.into(),
            entry: None,
        }))
    }

    async fn complete(
        &self,
        request: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        let request = request.into_inner();
        let mut state = self.state.lock().unwrap();
        if state.is_complete_down {
            return Err(down());
        }
        let routing = request.routing.unwrap();
        let Some((begun, _)) = state.open.get(&routing.operation_id).cloned() else {
            return Err(status(Code::NotFound, "INTENT_NOT_FOUND", "no intent"));
        };
        assert_eq!(begun.routing.as_ref(), Some(&routing));
        let mut whole = members(&begun.members);
        let sent = members(&request.members);
        for (name, value) in sent.as_object().unwrap() {
            let fixed = &whole[name.as_str()];
            assert!(fixed.is_null() || fixed == value, "{name} is fixed");
            whole[name.as_str()] = value.clone();
        }
        let receipt = record::finalize(whole, "urn:cl:receipt:").unwrap();
        receipt::check(receipt.value()).unwrap();
        state.open.remove(&routing.operation_id);
        let receipt = receipt.into_value();
        assert_eq!(receipt["metadata"]["operation_id"], routing.operation_id);
        let entry = LogEntry {
            sequence: (state.log.len() + 1).try_into().unwrap(),
            receipt_ref: receipt["id"].as_str().unwrap().to_owned(),
            supersedes_ref: None,
        };
        state.log.push((routing, receipt));
        Ok(Response::new(CompleteResponse {
            entry: Some(entry),
            ..CompleteResponse::default()
        }))
    }

    async fn list_open(
        &self,
        _: Request<ListOpenRequest>,
    ) -> Result<Response<ListOpenResponse>, Status> {
        let state = self.state.lock().unwrap();
        let intents = state.open.values().map(|(request, begun_ms)| Intent {
            routing: request.routing.clone(),
            state: IntentState::Open.into(),
            deadline: request.deadline,
            begun_at: Some(Timestamp {
                seconds: begun_ms / 1000,
                nanos: 0,
            }),
            members: request.members.clone(),
            entry: None,
        });
        Ok(Response::new(ListOpenResponse {
            intents: intents.collect(),
            next_page_token: String::new(),
            total_size: state.open.len().try_into().unwrap(),
        }))
    }

    async fn preflight(
        &self,
        _: Request<PreflightRequest>,
    ) -> Result<Response<PreflightResponse>, Status> {
        Err(Status::unimplemented("not for this writer"))
    }

    async fn append(&self, _: Request<AppendRequest>) -> Result<Response<AppendResponse>, Status> {
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

/// An amount as claims write it.
pub(crate) fn euros(amount: &str) -> Value {
    json!({"amount": amount, "currency": "EUR"})
}
