//! Why a call failed, and what its caller is told.

use std::time::Duration;

use cl_host::telemetry::CorrelationId;
use cl_model::document::InvalidBytes;
use cl_model::refusal::Refusal;
use cl_wire::field_path::FieldPath;
use cl_wire::status::{self, invalid_document, invalid_field, status};
use tonic::{Code, Status};

use crate::store::StoreError;

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a call failed. Nothing in it repeats what the caller sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A typed field is malformed.
    #[error("{field}: {rule}")]
    Field {
        /// The field.
        field: FieldPath,
        /// The violated rule, as a code.
        rule: &'static str,
    },
    /// A message or what it announces is over its bounds.
    #[error("{0} is too large")]
    TooLarge(&'static str),
    /// A document violates a rule.
    #[error("{member}: {cause}")]
    Document {
        /// The field that holds the document.
        member: &'static str,
        /// What is wrong with it.
        cause: InvalidBytes,
    },
    /// The grant does not hold.
    #[error("the grant does not hold: {0}")]
    Grant(Refusal),
    /// The grant is for another tenant, or for another subject than it says.
    #[error("the grant is for another tenant")]
    TenantMismatch,
    /// The peer has no identity.
    #[error("the peer has no identity")]
    NoCaller,
    /// The caller's certificate is for another tenant.
    #[error("the caller may not use this tenant")]
    CallerNotAllowed,
    /// The pieces of a payload do not have its digest.
    #[error("the payload has another digest")]
    PayloadDigestMismatch,
    /// The subject was erased.
    #[error("the subject was erased")]
    SubjectErased,
    /// The subject has no such event.
    #[error("no such event")]
    EventNotFound,
    /// The subject has no such claim.
    #[error("no such claim")]
    ClaimNotFound,
    /// The submitter had no such exchange.
    #[error("no such exchange")]
    ExchangeNotFound,
    /// The exchange is over.
    #[error("the exchange has expired")]
    ExchangeExpired,
    /// The recipient may not propose.
    #[error("proposing was not granted")]
    CapabilityNotGranted,
    /// Somebody else submits.
    #[error("the submitter is not the one who is authenticated")]
    SubmitterMismatch,
    /// A source is none of the exchange.
    #[error("a provenance reference is none of the exchange")]
    UnknownProvenance,
    /// The operation id was used with other content.
    #[error("the operation id is in use")]
    OperationConflict,
    /// Somebody else was first, again and again.
    #[error("others change the same state")]
    InProgress,
    /// The receipt store does not take a receipt; nothing was done.
    #[error("the receipt store is unavailable")]
    ReceiptStoreUnavailable,
    /// Everything is stored, but its receipt is not durable yet.
    #[error("the operation's receipt is not durable yet")]
    Unsettled,
    /// The vault's own store is in trouble.
    #[error(transparent)]
    Store(StoreError),
    /// Something broke inside.
    #[error("internal")]
    Internal,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Erased => Self::SubjectErased,
            StoreError::Conflict
            | StoreError::Unavailable(_)
            | StoreError::NoRandomness
            | StoreError::Corrupt => Self::Store(error),
        }
    }
}

impl Error {
    /// A document in a field that violates a rule.
    pub(crate) fn document(member: &'static str) -> impl Fn(InvalidBytes) -> Self {
        move |cause| Self::Document { member, cause }
    }

    /// The one conversion to what a caller sees.
    pub(crate) fn to_status(&self, correlation_id: Option<CorrelationId>) -> Status {
        match self {
            Self::Field { field, rule } => invalid_field("INVALID_FIELD", field.clone(), rule),
            Self::TooLarge(member) => invalid_field("DOCUMENT_TOO_LARGE", *member, "TOO_LARGE"),
            Self::Document { member, cause } => invalid_document(member, cause),
            Self::Grant(refusal) => status(
                Code::PermissionDenied,
                refusal.code().as_str(),
                "the grant does not hold here and now",
            ),
            Self::TenantMismatch => status(
                Code::PermissionDenied,
                "TENANT_MISMATCH",
                "the grant is for another tenant",
            ),
            Self::NoCaller => status(
                Code::Unauthenticated,
                "CALLER_UNAUTHENTICATED",
                "a client certificate is required",
            ),
            Self::CallerNotAllowed => status(
                Code::PermissionDenied,
                "CALLER_NOT_ALLOWED",
                "the caller may not use this tenant",
            ),
            Self::PayloadDigestMismatch => {
                invalid_field("PAYLOAD_DIGEST_MISMATCH", "data", "PAYLOAD_DIGEST_MISMATCH")
            }
            Self::SubjectErased => status(
                Code::FailedPrecondition,
                "SUBJECT_ERASED",
                "the subject was erased",
            ),
            Self::EventNotFound => status(Code::NotFound, "EVENT_NOT_FOUND", "no such event"),
            Self::ClaimNotFound => status(Code::NotFound, "CLAIM_NOT_FOUND", "no such claim"),
            Self::ExchangeNotFound => {
                status(Code::NotFound, "EXCHANGE_NOT_FOUND", "no such exchange")
            }
            Self::ExchangeExpired => status(
                Code::FailedPrecondition,
                "EXCHANGE_EXPIRED",
                "the exchange has expired",
            ),
            Self::CapabilityNotGranted => status(
                Code::PermissionDenied,
                "CAPABILITY_NOT_GRANTED",
                "the exchange does not allow proposals",
            ),
            Self::SubmitterMismatch => status(
                Code::PermissionDenied,
                "SUBMITTER_MISMATCH",
                "the proposal names another submitter",
            ),
            Self::UnknownProvenance => invalid_field(
                "UNKNOWN_PROVENANCE_HANDLE",
                FieldPath::new("proposal").field("provenance_refs"),
                "UNKNOWN_PROVENANCE_HANDLE",
            ),
            Self::OperationConflict => status(
                Code::AlreadyExists,
                "OPERATION_CONFLICT",
                "the operation id was used with other content",
            ),
            Self::InProgress | Self::Store(StoreError::Conflict) => retryable(
                Code::Aborted,
                "CONCURRENT_CHANGE",
                "another call changes the same state",
            ),
            Self::ReceiptStoreUnavailable => retryable(
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "no receipt can be written; nothing was done",
            ),
            Self::Unsettled | Self::Store(StoreError::Unavailable(_)) => retryable(
                Code::Unavailable,
                "SERVICE_UNAVAILABLE",
                "the operation is not settled; repeat the call",
            ),
            Self::Store(StoreError::Corrupt) => status(
                Code::DataLoss,
                "STORE_CORRUPT",
                "a stored record does not verify",
            ),
            Self::Store(StoreError::Erased | StoreError::NoRandomness) | Self::Internal => {
                correlation_id.map_or_else(
                    || status(Code::Internal, "INTERNAL", "internal error"),
                    cl_host::status::internal,
                )
            }
        }
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Internal)
    }
}

fn retryable(code: Code, reason: &str, message: &'static str) -> Status {
    status::retryable(code, reason, message, RETRY_AFTER)
}
