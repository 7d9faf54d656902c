//! The proxy's service.

mod parse;

use std::sync::Arc;

use cl_host::deadline::Deadline;
use cl_host::telemetry::CorrelationId;
use cl_model::canonical;
use cl_model::scalar::{Confidence, Handle};
use cl_wire::semantic::v1::semantic_proxy_service_server::SemanticProxyService;
use cl_wire::semantic::v1::{
    AppliedTransform, ProjectClaimsRequest, ProjectClaimsResponse, ProjectedItem,
};
use cl_wire::time;
use tonic::{Request, Response, Status};

use crate::core::projection::{Item, Projected};
use crate::error::Error;
use crate::service::SemanticProxy;

/// Projections, for the bundle issuer.
pub(crate) struct ProxyRpc {
    proxy: Arc<SemanticProxy>,
}

impl ProxyRpc {
    pub(crate) fn new(proxy: Arc<SemanticProxy>) -> Self {
        Self { proxy }
    }
}

#[tonic::async_trait]
impl SemanticProxyService for ProxyRpc {
    async fn project_claims(
        &self,
        request: Request<ProjectClaimsRequest>,
    ) -> Result<Response<ProjectClaimsResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let deadline = request.extensions().get::<Deadline>().copied();
        let proxy = Arc::clone(&self.proxy);
        let answer = async {
            let call = parse::call(request.into_inner(), deadline)?;
            // On a task of its own, so that it leaves its receipt when the caller hangs up.
            let work = tokio::spawn(async move { proxy.project(call).await });
            work.await.map_err(|_| Error::Internal)?
        };
        answer
            .await
            .map(|projected| Response::new(projected.into()))
            .map_err(|error| {
                if error.is_fault() {
                    let correlation_id = correlation_id.map(tracing::field::display);
                    tracing::error!(%error, correlation_id, "call failed");
                }
                error.to_status(correlation_id)
            })
    }
}

impl From<Projected> for ProjectClaimsResponse {
    fn from(projected: Projected) -> Self {
        Self {
            items: projected.items.into_iter().map(Into::into).collect(),
            withheld: projected.withheld,
        }
    }
}

impl From<Item> for ProjectedItem {
    fn from(item: Item) -> Self {
        let transform = |(name, confidence): (&str, Confidence)| AppliedTransform {
            name: name.to_owned(),
            confidence: confidence.get(),
        };
        let handle = |handle: Handle| handle.as_str().to_owned();
        Self {
            predicate: item.predicate.as_str().to_owned(),
            claim: item.claim,
            value: canonical::to_text(&item.value).into_bytes(),
            confidence: item.confidence.get(),
            provenance_handles: item.handles.into_iter().map(handle).collect(),
            status: item.status.as_str().to_owned(),
            trust: item.trust.as_str().to_owned(),
            valid_from: item.validity.from.map(time::to_message),
            valid_until: item.validity.until.map(time::to_message),
            transforms: item.transforms.into_iter().map(transform).collect(),
        }
    }
}
