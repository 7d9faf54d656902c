//! A bundle issuer in memory that enforces the contract of `IssueBundle`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_host::clock::{Clock, ManualClock};
use cl_model::document::read_canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::operation::OperationId;
use cl_model::time::UnixTime;
use cl_testbed::{TURNS, spiffe_id};
use cl_wire::bundle::v1::bundle_service_server::BundleService;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use cl_wire::bundle::v1::{
    CheckBundleRequest, CheckBundleResponse, IssueBundleRequest, IssueBundleResponse,
    RecordConsumerReceiptRequest, RecordConsumerReceiptResponse, RedeemBundleRequest,
    RedeemBundleResponse, RevokeBundlesRequest, RevokeBundlesResponse,
};
use cl_wire::grant::SignedGrant;
use cl_wire::status::status;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Response, Status};

use crate::support::decision_public_key;

#[derive(Clone)]
pub(crate) struct FakeIssuer {
    clock: ManualClock,
    /// A call waits here for its turn.
    pub(crate) gate: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    refusal: Option<(Code, &'static str)>,
    loses_answers: bool,
    calls: Vec<IssueBundleRequest>,
    issued: BTreeMap<String, String>,
    revoked: BTreeMap<String, String>,
}

impl FakeIssuer {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            clock,
            gate: Arc::new(Semaphore::new(TURNS as usize)),
            state: Arc::default(),
        }
    }

    /// Every call is refused like this, or none is any more.
    pub(crate) fn set_refusing(&self, refusal: Option<(Code, &'static str)>) {
        self.state.lock().unwrap().refusal = refusal;
    }

    /// Bundles are issued, but the answers are lost.
    pub(crate) fn set_loses_answers(&self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    pub(crate) fn calls(&self) -> Vec<IssueBundleRequest> {
        self.state.lock().unwrap().calls.clone()
    }

    /// Whether the bundle of a decision was ended.
    pub(crate) fn has_revoked(&self, decision: &str) -> bool {
        self.state.lock().unwrap().revoked.contains_key(decision)
    }

    pub(crate) fn issued(&self) -> usize {
        self.state.lock().unwrap().issued.len()
    }

    fn verified(&self, request: &IssueBundleRequest) -> VerifiedGrant {
        assert!(OperationId::parse(&request.operation_id).is_some());
        let value = read_canonical(&request.request).unwrap();
        let context_request = ContextRequest::read(&value).unwrap();
        let grant = SignedGrant::read(request.grant.clone()).unwrap();
        let keys = [decision_public_key()].into_iter().collect();
        let now = UnixTime::from_milliseconds(self.clock.now_unix_ms());
        let own = spiffe_id("exchange/cl-bundle-issuer");
        let grant = VerifiedGrant::verify(
            &grant.scope,
            &grant.plan,
            &context_request,
            &keys,
            &own,
            now,
        );
        let grant = grant.unwrap();
        assert_eq!(grant.plan().tenant.as_str(), request.tenant);
        grant
    }
}

#[tonic::async_trait]
impl BundleService for FakeIssuer {
    async fn issue_bundle(
        &self,
        request: Request<IssueBundleRequest>,
    ) -> Result<Response<IssueBundleResponse>, Status> {
        let request = request.into_inner();
        let grant = self.verified(&request);
        self.state.lock().unwrap().calls.push(request.clone());
        let _turn = self.gate.acquire().await.unwrap();
        let mut state = self.state.lock().unwrap();
        if let Some((code, reason)) = state.refusal {
            return Err(status(code, reason, "refused"));
        }
        let decision = grant.scope().decision_id.as_str();
        let count = state.issued.len();
        let bundle = state.issued.entry(decision.to_owned());
        let bundle_ref = bundle
            .or_insert_with(|| format!("urn:cl:bundle:{count:064x}"))
            .clone();
        let same = |call: &&IssueBundleRequest| call.grant == request.grant;
        let earlier = state.calls.iter().filter(same);
        for call in earlier {
            assert_eq!(call.operation_id, request.operation_id, "one id a decision");
        }
        if state.loses_answers {
            return Err(status(Code::Unavailable, "SERVICE_UNAVAILABLE", "lost"));
        }
        Ok(Response::new(IssueBundleResponse {
            bundle_ref,
            expires_at: None,
        }))
    }

    async fn redeem_bundle(
        &self,
        _: Request<RedeemBundleRequest>,
    ) -> Result<Response<RedeemBundleResponse>, Status> {
        Err(Status::unimplemented("not for this caller"))
    }

    async fn check_bundle(
        &self,
        _: Request<CheckBundleRequest>,
    ) -> Result<Response<CheckBundleResponse>, Status> {
        Err(Status::unimplemented("not for this caller"))
    }

    async fn record_consumer_receipt(
        &self,
        _: Request<RecordConsumerReceiptRequest>,
    ) -> Result<Response<RecordConsumerReceiptResponse>, Status> {
        Err(Status::unimplemented("not for this caller"))
    }

    async fn revoke_bundles(
        &self,
        request: Request<RevokeBundlesRequest>,
    ) -> Result<Response<RevokeBundlesResponse>, Status> {
        let request = request.into_inner();
        assert!(OperationId::parse(&request.operation_id).is_some());
        let mut state = self.state.lock().unwrap();
        if let Some((code, reason)) = state.refusal {
            return Err(status(code, reason, "refused"));
        }
        let Some(Target::DecisionRef(decision)) = request.target else {
            return Err(Status::invalid_argument("the engine revokes by decision"));
        };
        let known = state.revoked.insert(decision, request.operation_id.clone());
        assert!(known.is_none_or(|known| known == request.operation_id));
        Ok(Response::new(RevokeBundlesResponse { revoked: 1 }))
    }
}
