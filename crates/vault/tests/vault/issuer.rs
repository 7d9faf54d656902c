//! A bundle issuer in memory that takes revocations.

use std::sync::{Arc, Mutex};

use cl_wire::bundle::v1::bundle_service_server::BundleService;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use cl_wire::bundle::v1::{
    CheckBundleRequest, CheckBundleResponse, IssueBundleRequest, IssueBundleResponse,
    RecordConsumerReceiptRequest, RecordConsumerReceiptResponse, RedeemBundleRequest,
    RedeemBundleResponse, RevokeBundlesRequest, RevokeBundlesResponse,
};
use cl_wire::status::status;
use tonic::{Code, Request, Response, Status};

#[derive(Clone, Default)]
pub(crate) struct FakeIssuer {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_down: bool,
    taken: Vec<RevokeBundlesRequest>,
}

impl FakeIssuer {
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// What was revoked, each operation once.
    pub(crate) fn revoked(&self) -> Vec<(Target, String)> {
        let state = self.state.lock().unwrap();
        let taken = state.taken.iter();
        taken
            .map(|taken| (taken.target.clone().unwrap(), taken.reason.clone()))
            .collect()
    }
}

#[tonic::async_trait]
impl BundleService for FakeIssuer {
    async fn revoke_bundles(
        &self,
        request: Request<RevokeBundlesRequest>,
    ) -> Result<Response<RevokeBundlesResponse>, Status> {
        let request = request.into_inner();
        assert!(cl_model::operation::OperationId::parse(&request.operation_id).is_some());
        assert!(cl_model::scalar::is_name(&request.reason));
        let mut state = self.state.lock().unwrap();
        if state.is_down {
            return Err(status(Code::Unavailable, "SERVICE_UNAVAILABLE", "away"));
        }
        let known = state
            .taken
            .iter()
            .any(|taken| taken.operation_id == request.operation_id);
        if !known {
            state.taken.push(request);
        }
        Ok(Response::new(RevokeBundlesResponse { revoked: 0 }))
    }

    async fn issue_bundle(
        &self,
        _: Request<IssueBundleRequest>,
    ) -> Result<Response<IssueBundleResponse>, Status> {
        Err(Status::unimplemented("not for this caller"))
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
}
