//! The engine's services.

mod admin;
mod approvals;
mod approvers;
mod delegations;
mod examined;
mod parse;
mod people;
mod settings;
mod shown;

use std::sync::Arc;

use cl_host::deadline::Deadline;
use cl_host::life::Shutdown;
use cl_host::telemetry::CorrelationId;
use cl_wire::policy::v1::policy_service_server::PolicyService;
use cl_wire::policy::v1::{
    GetRequestRequest, GetRequestResponse, RequestState, RequestStatus, SubmitRequestRequest,
    SubmitRequestResponse, WatchRequestRequest, WatchRequestResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

pub(crate) use self::admin::AdminRpc;
pub(crate) use self::approvals::ApprovalRpc;
pub(crate) use self::approvers::ApproverAdminRpc;
use crate::core::state::State;
use crate::error::Error;
use crate::service::{self, PolicyEngine};
use crate::store::Conclusion;

/// Seconds after which a pending request is worth another look.
const PENDING_RETRY_SECONDS: u32 = 5;

/// Seconds after which a request whose bundle is on its way is worth another look.
const BUNDLE_RETRY_SECONDS: u32 = 1;

/// Decisions, for the gateway.
pub(crate) struct PolicyRpc {
    engine: Arc<PolicyEngine>,
    shutdown: Shutdown,
}

impl PolicyRpc {
    pub(crate) fn new(engine: Arc<PolicyEngine>, shutdown: Shutdown) -> Self {
        Self { engine, shutdown }
    }
}

#[tonic::async_trait]
impl PolicyService for PolicyRpc {
    async fn submit_request(
        &self,
        request: Request<SubmitRequestRequest>,
    ) -> Result<Response<SubmitRequestResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let deadline = request.extensions().get::<Deadline>().copied();
            let submission = parse::submission(request.into_inner(), deadline, &self.engine)?;
            let status = self.engine.submit(&submission).await?;
            Ok(SubmitRequestResponse {
                status: Some(status.into()),
            })
        })
        .await
    }

    async fn get_request(
        &self,
        request: Request<GetRequestRequest>,
    ) -> Result<Response<GetRequestResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let key = parse::request_key(request.into_inner(), &self.engine)?;
            let status = self.engine.request(&key).await?;
            Ok(GetRequestResponse {
                status: Some(status.into()),
            })
        })
        .await
    }

    type WatchRequestStream = ReceiverStream<Result<WatchRequestResponse, Status>>;

    async fn watch_request(
        &self,
        request: Request<WatchRequestRequest>,
    ) -> Result<Response<Self::WatchRequestStream>, Status> {
        let call = Call::of(&request);
        let correlation_id = call.correlation_id;
        call.answer(async {
            let key = parse::watched(request.into_inner(), &self.engine)?;
            let mut watcher = self.engine.watcher(key)?;
            let (engine, shutdown) = (Arc::clone(&self.engine), self.shutdown.clone());
            // What the request is refused for is the answer, not the end of a stream.
            let first = watcher.next(&engine, &shutdown).await?;
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(async move {
                let mut next = Ok(first);
                loop {
                    let message = match next {
                        Ok(None) => return,
                        Ok(Some(status)) => Ok(WatchRequestResponse {
                            status: Some(status.into()),
                        }),
                        Err(error) => Err(log_fault(&error, correlation_id)),
                    };
                    let is_last = message.is_err();
                    if sender.send(message).await.is_err() || is_last {
                        return;
                    }
                    next = tokio::select! {
                        () = sender.closed() => return,
                        next = watcher.next(&engine, &shutdown) => next,
                    };
                }
            });
            Ok(ReceiverStream::new(receiver))
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
        let result = work.await.map(Response::new);
        result.map_err(|error| log_fault(&error, self.correlation_id))
    }
}

fn log_fault(error: &Error, correlation_id: Option<CorrelationId>) -> Status {
    if error.is_fault() {
        let correlation_id = correlation_id.map(tracing::field::display);
        tracing::error!(%error, correlation_id, "call failed");
    }
    error.to_status(correlation_id)
}

const fn request_state(state: State) -> RequestState {
    match state {
        State::PendingApproval => RequestState::PendingApproval,
        State::Decided => RequestState::Decided,
        State::Issued => RequestState::Issued,
        State::Failed => RequestState::Failed,
        State::Expired => RequestState::Expired,
        State::Revoked => RequestState::Revoked,
    }
}

impl From<service::RequestStatus> for RequestStatus {
    fn from(status: service::RequestStatus) -> Self {
        let state = request_state(status.state);
        let retry_after_seconds = if status.awaits_bundle {
            Some(BUNDLE_RETRY_SECONDS)
        } else {
            (state == RequestState::PendingApproval).then_some(PENDING_RETRY_SECONDS)
        };
        let (bundle_ref, failure_code) = match status.conclusion {
            None => (None, None),
            // A revoked bundle is the issuer's to speak of.
            Some(Conclusion::Issued(_)) if state == RequestState::Revoked => (None, None),
            Some(Conclusion::Issued(id)) => (Some(id.to_string()), None),
            Some(Conclusion::Failed(code)) => (None, Some(code)),
        };
        Self {
            request_ref: status.request_ref,
            state: state.into(),
            decision: status.decision,
            bundle_ref,
            failure_code,
            retry_after_seconds,
        }
    }
}
