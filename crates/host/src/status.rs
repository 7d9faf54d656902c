//! The form in which this crate refuses a call: a gRPC status with `google.rpc.ErrorInfo`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::telemetry::CorrelationId;

/// Domain of every `ErrorInfo`.
pub const ERROR_DOMAIN: &str = "context-layer";

/// Reason of a refusal by a caller table.
pub const CALLER_NOT_ALLOWED: &str = "CALLER_NOT_ALLOWED";

/// Reason when the connection has no client certificate but the method needs one.
pub const CALLER_UNAUTHENTICATED: &str = "CALLER_UNAUTHENTICATED";

/// Reason when a call ran into its deadline.
pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// Reason, found on the calling side only: the server is not the one that was dialled.
pub const PEER_NOT_VERIFIED: &str = "PEER_NOT_VERIFIED";

/// Reason, found on the calling side only: the server refused our certificate.
pub const OWN_CERTIFICATE_REFUSED: &str = "OWN_CERTIFICATE_REFUSED";

/// Reason when something broke inside.
pub const INTERNAL: &str = "INTERNAL";

/// Reason with which open streams end when the process does.
pub const SHUTTING_DOWN: &str = "SHUTTING_DOWN";

/// A status with a stable reason. `message` is fixed public text.
pub fn refusal(code: Code, reason: &'static str, message: &'static str) -> Status {
    let details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, HashMap::new());
    Status::with_error_details(code, message, details)
}

/// Like [`refusal`], telling the caller when to come back.
pub fn refusal_with_retry(
    code: Code,
    reason: &'static str,
    message: &'static str,
    retry_after: Duration,
) -> Status {
    let mut details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, HashMap::new());
    details.set_retry_info(Some(retry_after));
    Status::with_error_details(code, message, details)
}

/// The answer when something broke inside: fixed text, and the id under which the log has more.
pub fn internal(correlation_id: CorrelationId) -> Status {
    let metadata = HashMap::from([("correlation_id".to_owned(), correlation_id.to_string())]);
    let details = ErrorDetails::with_error_info(INTERNAL, ERROR_DOMAIN, metadata);
    Status::with_error_details(Code::Internal, "internal error", details)
}

/// The stable reason of a status of this system; `None` for any other status.
pub fn reason(status: &Status) -> Option<String> {
    status
        .get_details_error_info()
        .filter(|info| info.domain == ERROR_DOMAIN)
        .map(|info| info.reason)
}

/// Whether a call with these headers is gRPC, so that a status is an answer it understands.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// How an edge tells callers of plain HTTP what this crate tells gRPC callers by a status.
#[derive(Clone)]
pub struct PlainHttp(Arc<Answer>);

type Answer = dyn Fn(&Status) -> Response<Body> + Send + Sync;

impl PlainHttp {
    /// Answers with what `answer` makes of a status.
    pub fn new(answer: impl Fn(&Status) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }
}

impl fmt::Debug for PlainHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainHttp")
    }
}

/// The answer to a refused call, in the form that its caller understands.
pub(crate) fn answer(
    status: &Status,
    to_grpc: bool,
    plain_http: Option<&PlainHttp>,
) -> Response<Body> {
    match plain_http {
        Some(PlainHttp(answer)) if !to_grpc => answer(status),
        Some(_) | None => status.clone().into_http(),
    }
}
