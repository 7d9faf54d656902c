//! The issuer's service.

mod parse;

use std::sync::Arc;

use cl_host::deadline::Deadline;
use cl_host::telemetry::CorrelationId;
use cl_wire::bundle::v1::bundle_service_server::BundleService;
use cl_wire::bundle::v1::{
    BundleState, CheckBundleRequest, CheckBundleResponse, IssueBundleRequest, IssueBundleResponse,
    RecordConsumerReceiptRequest, RecordConsumerReceiptResponse, RedeemBundleRequest,
    RedeemBundleResponse, RevokeBundlesRequest, RevokeBundlesResponse,
};
use cl_wire::time;
use tonic::{Request, Response, Status};

use crate::core::bundle::State;
use crate::error::Error;
use crate::service::{BundleIssuer, Delivery};

/// Bundles, for policy engine, gateway, vault and operators.
pub(crate) struct BundleRpc {
    issuer: Arc<BundleIssuer>,
}

impl BundleRpc {
    pub(crate) fn new(issuer: Arc<BundleIssuer>) -> Self {
        Self { issuer }
    }

    /// Runs a call on a task of its own, so that it comes to its end when the caller hangs up.
    async fn run<T, C, F, Fut>(&self, call: C, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        C: Send + 'static,
        F: FnOnce(Arc<BundleIssuer>, C) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = tokio::spawn(work(Arc::clone(&self.issuer), call));
        task.await.map_err(|_| Error::Internal)?
    }
}

#[tonic::async_trait]
impl BundleService for BundleRpc {
    async fn issue_bundle(
        &self,
        request: Request<IssueBundleRequest>,
    ) -> Result<Response<IssueBundleResponse>, Status> {
        let call = Call::of(&request);
        let deadline = request.extensions().get::<Deadline>().copied();
        call.answer(async {
            let issue = parse::issue(request.into_inner(), deadline)?;
            let issued = self.run(issue, async |issuer: Arc<BundleIssuer>, call| {
                issuer.issue(&call).await
            });
            let issued = issued.await?;
            Ok(IssueBundleResponse {
                bundle_ref: issued.id.as_str().to_owned(),
                expires_at: Some(time::to_message(issued.expires_at)),
            })
        })
        .await
    }

    async fn redeem_bundle(
        &self,
        request: Request<RedeemBundleRequest>,
    ) -> Result<Response<RedeemBundleResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let redeem = parse::redeem(request.into_inner())?;
            let delivery = self.run(redeem, async |issuer: Arc<BundleIssuer>, call| {
                issuer.redeem(&call).await
            });
            Ok(delivery.await?.into())
        })
        .await
    }

    async fn check_bundle(
        &self,
        request: Request<CheckBundleRequest>,
    ) -> Result<Response<CheckBundleResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let request = request.into_inner();
            let key = parse::key(&request.tenant, &request.bundle_ref, request.recipient)?;
            let standing = self.issuer.check(&key).await?;
            Ok(CheckBundleResponse {
                state: shown(standing.state).into(),
                expires_at: Some(time::to_message(standing.expires_at)),
            })
        })
        .await
    }

    async fn record_consumer_receipt(
        &self,
        request: Request<RecordConsumerReceiptRequest>,
    ) -> Result<Response<RecordConsumerReceiptResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let record = parse::receipt(request.into_inner())?;
            let entry = self.run(record, async |issuer: Arc<BundleIssuer>, call| {
                issuer.record(&call).await
            });
            let entry = entry.await?;
            Ok(RecordConsumerReceiptResponse {
                receipt_ref: entry.receipt_ref,
                sequence: entry.sequence,
            })
        })
        .await
    }

    async fn revoke_bundles(
        &self,
        request: Request<RevokeBundlesRequest>,
    ) -> Result<Response<RevokeBundlesResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let revoke = parse::revoke(request.into_inner())?;
            let revoked = self.run(revoke, async |issuer: Arc<BundleIssuer>, call| {
                issuer.revoke(&call).await
            });
            Ok(RevokeBundlesResponse {
                revoked: revoked.await?,
            })
        })
        .await
    }
}

/// One call: where its fault is logged, once.
struct Call {
    correlation_id: Option<CorrelationId>,
}

impl Call {
    fn of<T>(request: &Request<T>) -> Self {
        Self {
            correlation_id: request.extensions().get::<CorrelationId>().copied(),
        }
    }

    async fn answer<T>(
        self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Response<T>, Status> {
        let correlation_id = self.correlation_id;
        work.await.map(Response::new).map_err(|error| {
            if error.is_fault() {
                let correlation_id = correlation_id.map(tracing::field::display);
                tracing::error!(%error, correlation_id, "call failed");
            }
            error.to_status(correlation_id)
        })
    }
}

impl From<Delivery> for RedeemBundleResponse {
    fn from(delivery: Delivery) -> Self {
        let content = delivery.content;
        Self {
            envelope: content.envelope,
            scope_statement: content.scope.document,
            scope_signature: content.scope.signature.as_bytes().to_vec(),
            notes: content.notes.document,
            notes_signature: content.notes.signature.as_bytes().to_vec(),
            repeated: delivery.is_repeated,
        }
    }
}

/// A state as its recipient sees it: until the receipt of a delivery is durable nothing has left.
const fn shown(state: State) -> BundleState {
    match state {
        State::Pending | State::Live | State::Redeeming => BundleState::Live,
        State::Redeemed => BundleState::Redeemed,
        State::Consumed => BundleState::Consumed,
        State::Revoked => BundleState::Revoked,
        State::Expired => BundleState::Expired,
    }
}
