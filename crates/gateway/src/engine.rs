//! The policy engine, as the gateway needs it.

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::urn::{BundleId, RequestId};
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::status::is_reason;
use tonic::{Code, Status, Streaming};

use crate::auth::Caller;
use crate::error::{Error, Peer};
use crate::idempotency::OperationId;
use crate::peer::{document_refused, refused, within};

/// Where a request stands, as the engine says.
#[derive(Clone, PartialEq, Eq)]
pub struct Standing {
    /// The request.
    pub request: RequestId,
    /// Its state.
    pub state: State,
    /// The newest decision, exactly as it was recorded.
    pub decision: Vec<u8>,
    /// When to ask again, in seconds, if the state can still change.
    pub retry_after_seconds: Option<u32>,
}

/// The states of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A person has to approve first.
    PendingApproval,
    /// Decided; no bundle exists, or not yet.
    Decided,
    /// A bundle was issued.
    Issued(BundleId),
    /// Issuing failed for good, with this code.
    Failed(String),
    /// Too late.
    Expired,
    /// A person took back what was granted.
    Revoked,
}

impl Standing {
    /// Whether waiting is worthwhile.
    pub(crate) const fn can_change(&self) -> bool {
        match &self.state {
            State::PendingApproval => true,
            State::Decided => self.retry_after_seconds.is_some(),
            State::Issued(_) | State::Failed(_) | State::Expired | State::Revoked => false,
        }
    }
}

/// A request that is followed.
#[derive(Debug)]
pub struct Following {
    stream: Streaming<wire::WatchRequestResponse>,
}

impl Following {
    /// Where the request stands next; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Standing>, Error> {
        let message = self.stream.message().await;
        match message.map_err(|status| meant(&status))? {
            None => Ok(None),
            Some(message) => read(message.status).map(Some),
        }
    }
}

/// The policy engine over gRPC.
///
/// **Idempotent:** a submission may be repeated with the same operation id, also when its first
/// answer was lost; the engine decides once.
#[derive(Clone, Debug)]
pub struct Engine {
    client: PolicyServiceClient<PeerChannel>,
}

impl Engine {
    /// Calls the engine over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: PolicyServiceClient::new(channel),
        }
    }

    /// Submits a canonical request document.
    pub async fn submit(
        &self,
        caller: &Caller,
        document: Vec<u8>,
        operation_id: &OperationId,
        deadline: Deadline,
    ) -> Result<Standing, Error> {
        let message = wire::SubmitRequestRequest {
            tenant: caller.tenant().as_str().to_owned(),
            request: document,
            facts: Some(caller.facts()),
            operation_id: operation_id.to_string(),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().submit_request(call).await;
        read(answer.map_err(|status| meant(&status))?.into_inner().status)
    }

    /// Reads where a request of the caller's own stands.
    pub async fn standing(
        &self,
        caller: &Caller,
        request: &RequestId,
        deadline: Deadline,
    ) -> Result<Standing, Error> {
        let message = wire::GetRequestRequest {
            tenant: caller.tenant().as_str().to_owned(),
            request_ref: request.as_str().to_owned(),
            facts: Some(caller.facts()),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().get_request(call).await;
        read(answer.map_err(|status| meant(&status))?.into_inner().status)
    }

    /// Follows a request of the caller's own.
    pub async fn follow(&self, caller: &Caller, request: &RequestId) -> Result<Following, Error> {
        let message = wire::WatchRequestRequest {
            tenant: caller.tenant().as_str().to_owned(),
            request_ref: request.as_str().to_owned(),
            facts: Some(caller.facts()),
        };
        let answer = self.client.clone().watch_request(message).await;
        let stream = answer.map_err(|status| meant(&status))?.into_inner();
        Ok(Following { stream })
    }
}

const fn broken(what: &'static str) -> Error {
    Error::BrokenContract(Peer::PolicyEngine, what)
}

/// Checks an answer, so that nothing behind this depends on the engine keeping its contract.
fn read(status: Option<wire::RequestStatus>) -> Result<Standing, Error> {
    let status = status.ok_or(broken("no status"))?;
    let bundle = status.bundle_ref.as_deref().map(BundleId::parse);
    let state = wire::RequestState::try_from(status.state);
    let state = match (state, bundle, status.failure_code) {
        (Ok(wire::RequestState::PendingApproval), None, None) => State::PendingApproval,
        (Ok(wire::RequestState::Decided), None, None) => State::Decided,
        (Ok(wire::RequestState::Issued), Some(Some(bundle)), None) => State::Issued(bundle),
        (Ok(wire::RequestState::Failed), None, Some(code)) if is_reason(&code) => {
            State::Failed(code)
        }
        (Ok(wire::RequestState::Expired), None, None) => State::Expired,
        (Ok(wire::RequestState::Revoked), None, None) => State::Revoked,
        _ => return Err(broken("state")),
    };
    if status.decision.is_empty() {
        return Err(broken("no decision"));
    }
    Ok(Standing {
        request: RequestId::parse(&status.request_ref).ok_or(broken("request_ref"))?,
        state,
        decision: status.decision,
        retry_after_seconds: status.retry_after_seconds.filter(|seconds| *seconds > 0),
    })
}

/// What the engine's refusal means for the caller.
fn meant(status: &Status) -> Error {
    refused(Peer::PolicyEngine, status, known)
}

fn known(code: Code, reason: &str, after: Option<Duration>) -> Option<Error> {
    match (code, reason) {
        (Code::InvalidArgument, reason) => document_refused("request", reason),
        (Code::NotFound, "REQUEST_NOT_FOUND") => Some(Error::RequestNotFound),
        (Code::AlreadyExists, "REQUEST_ID_CONFLICT") => Some(Error::RequestIdConflict),
        // The operation id stands for the key: the same body, but from another client instance.
        (Code::AlreadyExists, "OPERATION_CONFLICT") => Some(Error::IdempotencyConflict),
        (Code::FailedPrecondition, "OPERATION_TOO_OLD") => Some(Error::IdempotencyKeyTooOld),
        (Code::Aborted, "REQUEST_IN_PROGRESS") => Some(Error::InProgress(after)),
        (Code::FailedPrecondition, "POLICY_NOT_ACTIVE") => Some(Error::PolicyNotActive),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cl_wire::status::{StatusBuilder, status};

    use super::*;

    fn answered() -> wire::RequestStatus {
        wire::RequestStatus {
            request_ref: "urn:cl:request:r1".to_owned(),
            state: wire::RequestState::Decided.into(),
            decision: b"{}".to_vec(),
            bundle_ref: None,
            failure_code: None,
            retry_after_seconds: None,
        }
    }

    #[test]
    fn answers_that_break_the_contract_are_faults() {
        assert!(read(Some(answered())).is_ok());
        let broken: [fn(&mut wire::RequestStatus); 8] = [
            |it| it.request_ref = "urn:cl:bundle:b".to_owned(),
            |it| it.decision.clear(),
            |it| it.state = 0,
            |it| it.state = 99,
            |it| it.bundle_ref = Some("urn:cl:bundle:b".to_owned()),
            |it| it.state = wire::RequestState::Issued.into(),
            |it| it.state = wire::RequestState::Failed.into(),
            |it| {
                it.state = wire::RequestState::Failed.into();
                it.failure_code = Some("free text".to_owned());
            },
        ];
        for (index, breaks) in broken.into_iter().enumerate() {
            let mut answer = answered();
            breaks(&mut answer);
            let error = read(Some(answer)).err();
            assert!(matches!(error, Some(Error::BrokenContract(..))), "{index}");
        }
        assert!(matches!(read(None), Err(Error::BrokenContract(..))));
    }

    #[test]
    fn only_known_reasons_pass() {
        for (code, reason, told) in [
            (Code::InvalidArgument, "INVALID_REQUEST", "INVALID_REQUEST"),
            (
                Code::InvalidArgument,
                "DOCUMENT_TOO_LARGE",
                "DOCUMENT_TOO_LARGE",
            ),
            (Code::InvalidArgument, "INVALID_FIELD", "INTERNAL"),
            (Code::InvalidArgument, "SECRET_DETAIL", "INTERNAL"),
            (Code::NotFound, "REQUEST_NOT_FOUND", "REQUEST_NOT_FOUND"),
            (Code::NotFound, "OTHER", "INTERNAL"),
            (
                Code::AlreadyExists,
                "REQUEST_ID_CONFLICT",
                "REQUEST_ID_CONFLICT",
            ),
            (
                Code::AlreadyExists,
                "OPERATION_CONFLICT",
                "IDEMPOTENCY_CONFLICT",
            ),
            (
                Code::FailedPrecondition,
                "OPERATION_TOO_OLD",
                "IDEMPOTENCY_KEY_TOO_OLD",
            ),
            (Code::Aborted, "REQUEST_IN_PROGRESS", "REQUEST_IN_PROGRESS"),
            (
                Code::FailedPrecondition,
                "POLICY_NOT_ACTIVE",
                "POLICY_NOT_ACTIVE",
            ),
            (Code::FailedPrecondition, "OTHER", "INTERNAL"),
            (Code::ResourceExhausted, "RATE_LIMITED", "RATE_LIMITED"),
            (
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "RECEIPT_STORE_UNAVAILABLE",
            ),
            (Code::Unavailable, "SECRET_DETAIL", "SERVICE_UNAVAILABLE"),
            (
                Code::DeadlineExceeded,
                "DEADLINE_EXCEEDED",
                "DEADLINE_EXCEEDED",
            ),
            (Code::PermissionDenied, "CALLER_NOT_ALLOWED", "INTERNAL"),
            (Code::Unauthenticated, "CALLER_UNAUTHENTICATED", "INTERNAL"),
            (Code::DataLoss, "STORE_CORRUPT", "INTERNAL"),
            (Code::Internal, "INTERNAL", "INTERNAL"),
            (Code::Unimplemented, "OTHER", "INTERNAL"),
        ] {
            let error = meant(&status(code, reason, "the engine's own words"));
            assert_eq!(error.told().reason, told, "{code:?} {reason}");
        }
    }

    #[test]
    fn the_engines_pause_is_passed_on() {
        let pause = Duration::from_secs(7);
        let asked = StatusBuilder::new(Code::ResourceExhausted, "RATE_LIMITED", "later");
        let error = meant(&asked.retry_delay(pause).build());
        assert_eq!(error.told().retry_after, Some(pause));
    }
}
