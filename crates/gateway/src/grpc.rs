//! The gRPC door: `contextlayer.exchange.v1.ExchangeService`.

use std::sync::Arc;
use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_host::identity::PeerId;
use cl_host::telemetry::CorrelationId;
use cl_model::urn::RequestId;
use cl_wire::exchange::v1 as wire;
use cl_wire::exchange::v1::exchange_service_server::ExchangeService;
use http::Extensions;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use crate::auth::Caller;
use crate::engine::{Standing, State};
use crate::error::Error;
use crate::idempotency::IdempotencyKey;
use crate::service::{Document, Gateway};

/// Marks a repeated answer, as the header of the same name does over HTTP.
const REPLAYED: &str = "idempotency-replayed";

/// For a call that came without the host's deadline, which only a test can make.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// The exchange, for requesters outside.
pub(crate) struct ExchangeRpc {
    gateway: Arc<Gateway>,
}

impl ExchangeRpc {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway }
    }

    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        let headers = request.metadata().as_ref();
        let peer = request.extensions().get::<PeerId>();
        Ok(self.gateway.caller(headers, peer)?)
    }
}

#[tonic::async_trait]
impl ExchangeService for ExchangeRpc {
    async fn submit_request(
        &self,
        request: Request<wire::SubmitRequestRequest>,
    ) -> Result<Response<wire::SubmitRequestResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let submitted = async {
            let caller = self.caller(&request)?;
            let deadline = deadline(request.extensions());
            let message = request.into_inner();
            let key = key(message.idempotency_key.as_deref())?;
            let document = Document::take(message.request)?;
            self.gateway.submit(&caller, document, key, deadline).await
        };
        let submitted = submitted.await.map_err(told(correlation_id))?;
        let mut response = Response::new(wire::SubmitRequestResponse {
            status: Some(submitted.standing.into()),
        });
        if submitted.is_replay {
            let yes = MetadataValue::from_static("true");
            response.metadata_mut().insert(REPLAYED, yes);
        }
        Ok(response)
    }

    async fn get_request(
        &self,
        request: Request<wire::GetRequestRequest>,
    ) -> Result<Response<wire::GetRequestResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let standing = async {
            let caller = self.caller(&request)?;
            let deadline = deadline(request.extensions());
            let id = request_id(&request.get_ref().request_ref).ok_or(Error::Field {
                field: "request_ref",
                rule: "NOT_A_REQUEST_ID",
            })?;
            self.gateway.standing(&caller, &id, deadline).await
        };
        let standing = standing.await.map_err(told(correlation_id))?;
        Ok(Response::new(wire::GetRequestResponse {
            status: Some(standing.into()),
        }))
    }
}

/// A request's id of bounded length.
pub(crate) fn request_id(text: &str) -> Option<RequestId> {
    const MAX_BYTES: usize = 512;

    (text.len() <= MAX_BYTES)
        .then(|| RequestId::parse(text))
        .flatten()
}

/// The deadline that the host gave a call.
pub(crate) fn deadline(extensions: &Extensions) -> Deadline {
    let given = extensions.get::<Deadline>().copied();
    given.unwrap_or_else(|| Deadline::after(DEFAULT_DEADLINE))
}

fn key(text: Option<&str>) -> Result<Option<IdempotencyKey>, Error> {
    text.map(|text| IdempotencyKey::parse(text.as_bytes()).ok_or(Error::InvalidIdempotencyKey))
        .transpose()
}

/// The one place where a fault behind a gRPC call is logged.
fn told(correlation_id: Option<CorrelationId>) -> impl Fn(Error) -> Status {
    move |error| {
        if error.is_fault() {
            tracing::error!(%error, "call failed");
        }
        error.to_status(correlation_id)
    }
}

impl From<Standing> for wire::RequestStatus {
    fn from(standing: Standing) -> Self {
        let (state, bundle_ref, failure_code) = match standing.state {
            State::PendingApproval => (wire::RequestState::PendingApproval, None, None),
            State::Decided => (wire::RequestState::Decided, None, None),
            State::Issued(bundle) => {
                let bundle = bundle.as_str().to_owned();
                (wire::RequestState::Issued, Some(bundle), None)
            }
            State::Failed(code) => (wire::RequestState::Failed, None, Some(code)),
            State::Expired => (wire::RequestState::Expired, None, None),
        };
        Self {
            request_ref: standing.request.as_str().to_owned(),
            state: state.into(),
            decision: standing.decision,
            bundle_ref,
            failure_code,
            retry_after_seconds: standing.retry_after_seconds,
        }
    }
}
