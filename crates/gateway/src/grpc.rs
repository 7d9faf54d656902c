//! The gRPC door: `contextlayer.exchange.v1.ExchangeService`.

use std::sync::Arc;
use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_host::life::Shutdown;
use cl_host::telemetry::CorrelationId;
use cl_model::urn::{BundleId, MAX_ID_BYTES, ReceiptId, RequestId};
use cl_wire::exchange::v1 as wire;
use cl_wire::exchange::v1::exchange_service_server::ExchangeService;
use cl_wire::time;
use http::Extensions;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use crate::auth::{Caller, Scope};
use crate::bundles::{BundleStanding, BundleState, Redeemed};
use crate::engine::{Standing, State};
use crate::error::Error;
use crate::idempotency::IdempotencyKey;
use crate::in_flight::{CallLimits, InFlight};
use crate::service::{Document, Gateway};
use crate::waiting::Wait;

/// Marks a repeated answer, as the header of the same name does over HTTP.
const REPLAYED: &str = "idempotency-replayed";

/// For a call that came without the host's deadline, which only a test can make.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// How many streams follow requests at a time.
const MAX_WATCHES: usize = 1024;

/// Of one tenant.
const MAX_WATCHES_PER_TENANT: usize = 768;

/// Of one principal.
const MAX_WATCHES_PER_CALLER: usize = 16;

/// The exchange, for requesters and recipients outside.
pub(crate) struct ExchangeRpc {
    gateway: Arc<Gateway>,
    /// Streams at a time.
    watches: Arc<InFlight>,
    shutdown: Shutdown,
}

impl ExchangeRpc {
    pub(crate) fn new(gateway: Arc<Gateway>, shutdown: Shutdown) -> Self {
        let watches = InFlight::new(CallLimits {
            max_in_flight: MAX_WATCHES,
            max_in_flight_per_tenant: MAX_WATCHES_PER_TENANT,
            max_in_flight_per_caller: MAX_WATCHES_PER_CALLER,
        });
        Self {
            gateway,
            watches: Arc::new(watches),
            shutdown,
        }
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
            let caller = Caller::of(request.extensions(), Scope::Request)?;
            let deadline = deadline(request.extensions());
            let message = request.into_inner();
            let wait = wait(message.wait_seconds)?;
            let key = key(message.idempotency_key.as_deref())?;
            let document = Document::take(message.request)?;
            let gateway = &self.gateway;
            let mut submitted = gateway.submit(&caller, document, key, deadline).await?;
            let standing = gateway.wait(&caller, submitted.answer, wait, deadline);
            submitted.answer = standing.await;
            Ok(submitted)
        };
        let submitted = submitted.await.map_err(told(correlation_id))?;
        let mut response = Response::new(wire::SubmitRequestResponse {
            status: Some(submitted.answer.into()),
        });
        mark_replay(&mut response, submitted.is_replay);
        Ok(response)
    }

    async fn get_request(
        &self,
        request: Request<wire::GetRequestRequest>,
    ) -> Result<Response<wire::GetRequestResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let standing = async {
            let caller = Caller::of(request.extensions(), Scope::Request)?;
            let deadline = deadline(request.extensions());
            let id = request_id(&request.get_ref().request_ref)?;
            let wait = wait(request.get_ref().wait_seconds)?;
            let gateway = &self.gateway;
            gateway.standing_after(&caller, &id, wait, deadline).await
        };
        let standing = standing.await.map_err(told(correlation_id))?;
        Ok(Response::new(wire::GetRequestResponse {
            status: Some(standing.into()),
        }))
    }

    type WatchRequestStream = ReceiverStream<Result<wire::WatchRequestResponse, Status>>;

    async fn watch_request(
        &self,
        request: Request<wire::WatchRequestRequest>,
    ) -> Result<Response<Self::WatchRequestStream>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let opened = async {
            let caller = Caller::of(request.extensions(), Scope::Request)?;
            let id = request_id(&request.get_ref().request_ref)?;
            let place = self.watches.begin(&caller)?;
            let following = self.gateway.engine.follow(&caller, &id).await?;
            Ok((following, place))
        };
        let (mut following, place) = opened.await.map_err(told(correlation_id))?;
        let shutdown = self.shutdown.clone();
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            // One of the caller's streams, until this one ends.
            let _place = place;
            loop {
                let next = tokio::select! {
                    () = shutdown.requested() => return,
                    () = sender.closed() => return,
                    next = following.next() => next,
                };
                let message = match next {
                    Ok(None) => return,
                    Ok(Some(standing)) => Ok(wire::WatchRequestResponse {
                        status: Some(standing.into()),
                    }),
                    Err(error) => Err(told(correlation_id)(error)),
                };
                let is_last = message.is_err();
                if sender.send(message).await.is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn redeem_bundle(
        &self,
        request: Request<wire::RedeemBundleRequest>,
    ) -> Result<Response<wire::RedeemBundleResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let redeemed = async {
            let caller = Caller::of(request.extensions(), Scope::Redeem)?;
            let deadline = deadline(request.extensions());
            let message = request.get_ref();
            let bundle = bundle_id(&message.bundle_ref)?;
            let key = key(message.idempotency_key.as_deref())?;
            self.gateway.redeem(&caller, &bundle, key, deadline).await
        };
        let redeemed = redeemed.await.map_err(told(correlation_id))?;
        let is_repeat = redeemed.is_repeat;
        let mut response = Response::new(redeemed.into());
        mark_replay(&mut response, is_repeat);
        Ok(response)
    }

    async fn check_bundle(
        &self,
        request: Request<wire::CheckBundleRequest>,
    ) -> Result<Response<wire::CheckBundleResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let standing = async {
            let caller = Caller::of(request.extensions(), Scope::Redeem)?;
            let deadline = deadline(request.extensions());
            let bundle = bundle_id(&request.get_ref().bundle_ref)?;
            self.gateway.check(&caller, &bundle, deadline).await
        };
        let standing = standing.await.map_err(told(correlation_id))?;
        Ok(Response::new(standing.into()))
    }

    async fn submit_receipt(
        &self,
        request: Request<wire::SubmitReceiptRequest>,
    ) -> Result<Response<wire::SubmitReceiptResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let recorded = async {
            let caller = Caller::of(request.extensions(), Scope::WriteReceipts)?;
            let deadline = deadline(request.extensions());
            let message = request.into_inner();
            let bundle = bundle_id(&message.bundle_ref)?;
            let document = Document::take(message.receipt)?;
            let gateway = &self.gateway;
            let recorded = gateway.record(&caller, &bundle, &document, None, deadline);
            Ok((recorded.await?.answer, document))
        };
        let (sequence, document) = recorded.await.map_err(told(correlation_id))?;
        Ok(Response::new(wire::SubmitReceiptResponse {
            receipt_ref: document.object.id.as_str().to_owned(),
            sequence,
        }))
    }

    async fn get_receipt(
        &self,
        request: Request<wire::GetReceiptRequest>,
    ) -> Result<Response<wire::GetReceiptResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let recorded = async {
            let caller = Caller::of(request.extensions(), Scope::ReadReceipts)?;
            let deadline = deadline(request.extensions());
            let id = id(&request.get_ref().receipt_ref, ReceiptId::parse);
            let id = id.ok_or(Error::Field {
                field: "receipt_ref",
                rule: "NOT_A_RECEIPT_ID",
            })?;
            self.gateway.receipt(&caller, &id, deadline).await
        };
        let recorded = recorded.await.map_err(told(correlation_id))?;
        Ok(Response::new(wire::GetReceiptResponse {
            receipt: recorded.bytes,
            sequence: recorded.sequence,
        }))
    }

    async fn submit_proposal(
        &self,
        request: Request<wire::SubmitProposalRequest>,
    ) -> Result<Response<wire::SubmitProposalResponse>, Status> {
        let correlation_id = request.extensions().get::<CorrelationId>().copied();
        let proposed = async {
            let caller = Caller::of(request.extensions(), Scope::ProposeMemory)?;
            let deadline = deadline(request.extensions());
            let document = Document::take(request.into_inner().proposal)?;
            self.gateway
                .propose(&caller, document, None, deadline)
                .await
        };
        let proposed = proposed.await.map_err(told(correlation_id))?.answer;
        Ok(Response::new(wire::SubmitProposalResponse {
            proposal_ref: proposed.proposal.as_str().to_owned(),
            proposal: proposed.bytes,
        }))
    }
}

/// An id of bounded length.
pub(crate) fn id<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    (text.len() <= MAX_ID_BYTES).then(|| parse(text)).flatten()
}

fn request_id(text: &str) -> Result<RequestId, Error> {
    id(text, RequestId::parse).ok_or(Error::Field {
        field: "request_ref",
        rule: "NOT_A_REQUEST_ID",
    })
}

fn wait(seconds: u32) -> Result<Wait, Error> {
    Wait::new(seconds).ok_or(Error::Field {
        field: "wait_seconds",
        rule: "OUT_OF_RANGE",
    })
}

fn bundle_id(text: &str) -> Result<BundleId, Error> {
    id(text, BundleId::parse).ok_or(Error::Field {
        field: "bundle_ref",
        rule: "NOT_A_BUNDLE_ID",
    })
}

fn mark_replay<T>(response: &mut Response<T>, is_replay: bool) {
    if is_replay {
        let yes = MetadataValue::from_static("true");
        response.metadata_mut().insert(REPLAYED, yes);
    }
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
            State::Revoked => (wire::RequestState::Revoked, None, None),
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

impl From<Redeemed> for wire::RedeemBundleResponse {
    fn from(redeemed: Redeemed) -> Self {
        let delivery = redeemed.delivery;
        Self {
            envelope: delivery.envelope,
            scope_statement: delivery.scope.document,
            scope_signature: delivery.scope.signature.as_bytes().to_vec(),
            notes: delivery.notes.document,
            notes_signature: delivery.notes.signature.as_bytes().to_vec(),
        }
    }
}

impl From<BundleStanding> for wire::CheckBundleResponse {
    fn from(standing: BundleStanding) -> Self {
        let state = match standing.state {
            BundleState::Live => wire::BundleState::Live,
            BundleState::Redeemed => wire::BundleState::Redeemed,
            BundleState::Consumed => wire::BundleState::Consumed,
            BundleState::Revoked => wire::BundleState::Revoked,
            BundleState::Expired => wire::BundleState::Expired,
        };
        Self {
            state: state.into(),
            expires_at: Some(time::to_message(standing.expires_at)),
        }
    }
}
