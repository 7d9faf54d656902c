//! What calls to the services behind the gateway have in common.

use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_model::refusal;
use cl_wire::status::{reason, retry_delay};
use tonic::{Code, Request, Status};

use crate::error::{Error, Peer};

/// A call that ends at the deadline of the one it serves.
pub(crate) fn within<T>(message: T, deadline: Deadline) -> Request<T> {
    let mut call = Request::new(message);
    deadline.limit(&mut call);
    call
}

/// What a peer's refusal means for the caller. `known` has the reasons that its contract names;
/// whatever else it says is for the log.
pub(crate) fn refused(
    peer: Peer,
    status: &Status,
    known: impl FnOnce(Code, &str, Option<Duration>) -> Option<Error>,
) -> Error {
    let reason = reason(status);
    let after = retry_delay(status);
    let error = match (status.code(), reason.as_deref()) {
        (Code::ResourceExhausted, _) => Some(Error::RateLimited(after)),
        // A store that cannot be read is away like any other service.
        (Code::Unavailable, Some("RECEIPT_STORE_UNAVAILABLE")) if peer != Peer::ReceiptStore => {
            Some(Error::ReceiptStoreUnavailable(peer, after))
        }
        (Code::Unavailable, _) => Some(Error::PeerUnavailable(peer, after)),
        (Code::DeadlineExceeded | Code::Cancelled, _) => Some(Error::DeadlineExceeded),
        (code, Some(reason)) => known(code, reason, after),
        (_, None) => None,
    };
    error.unwrap_or(Error::PeerFailed {
        peer,
        code: status.code(),
        reason,
    })
}

/// A peer's refusal of the document in `field`, by the code of the rule that it violates.
pub(crate) fn document_refused(field: &'static str, reason: &str) -> Option<Error> {
    if reason == "DOCUMENT_TOO_LARGE" {
        return Some(Error::DocumentTooLarge);
    }
    let mut codes = refusal::Code::ALL.iter();
    let code = codes.find(|code| code.as_str() == reason)?;
    Some(Error::Document(field, (*code).into()))
}
