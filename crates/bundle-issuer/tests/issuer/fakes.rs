//! A semantic proxy in memory that enforces its contract.

use std::sync::{Arc, Mutex};

use cl_host::clock::{Clock, ManualClock};
use cl_model::document::read_canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::operation::OperationId;
use cl_model::time::UnixTime;
use cl_testbed::{TURNS, spiffe_id};
use cl_wire::grant::SignedGrant;
use cl_wire::semantic::v1::semantic_proxy_service_server::SemanticProxyService;
use cl_wire::semantic::v1::{
    AppliedTransform, ProjectClaimsRequest, ProjectClaimsResponse, ProjectedItem,
};
use cl_wire::status::status;
use serde_json::Value;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Response, Status};

use crate::exchange::{bytes, decision_key};

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
