//! From gRPC codes to HTTP statuses: the one table of the system (spec 10.4).

use http::StatusCode;
use tonic::Code;

use crate::error::Told;

/// Codes that say more than their gRPC code does.
const FINER: [(&str, StatusCode); 16] = [
    ("METHOD_NOT_ALLOWED", StatusCode::METHOD_NOT_ALLOWED),
    ("NOT_ACCEPTABLE", StatusCode::NOT_ACCEPTABLE),
    ("DOCUMENT_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE),
    ("JSON_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE),
    ("URI_TOO_LONG", StatusCode::URI_TOO_LONG),
    ("MEDIA_TYPE_UNSUPPORTED", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    // Well-formed, but not something that the protocol gives a meaning to.
    (
        "UNSUPPORTED_SELECTOR_FIELD",
        StatusCode::UNPROCESSABLE_ENTITY,
    ),
    (
        "INVALID_RECEIPT_REQUIREMENT",
        StatusCode::UNPROCESSABLE_ENTITY,
    ),
    // What stands in the way is the state of the object itself, and not a component that is away.
    ("BUNDLE_REPLAY", StatusCode::CONFLICT),
    ("BUNDLE_NOT_REDEEMED", StatusCode::CONFLICT),
    ("IDEMPOTENCY_KEY_TOO_OLD", StatusCode::CONFLICT),
    ("BUNDLE_EXPIRED", StatusCode::GONE),
    ("BUNDLE_REVOKED", StatusCode::GONE),
    ("EXCHANGE_EXPIRED", StatusCode::GONE),
    ("SUBJECT_ERASED", StatusCode::GONE),
    (
        "HEADERS_TOO_LARGE",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    ),
];

/// The HTTP status of a refusal.
pub(super) fn of(told: &Told) -> StatusCode {
    let finer = FINER.iter().find(|(reason, _)| *reason == told.reason);
    finer.map_or_else(|| of_code(told.code), |(_, status)| *status)
}

fn of_code(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        // A required component is away, or was too slow, or has no policy to decide by.
        Code::Unavailable | Code::DeadlineExceeded | Code::FailedPrecondition => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}
