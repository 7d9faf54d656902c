//! Why a call is refused, and the only conversion to a gRPC status.

use std::time::Duration;

use cl_model::refusal::Refusal;
use cl_wire::field_path::FieldPath;
use cl_wire::status::StatusBuilder;
use tonic::{Code, Status};

use crate::cosigning::CosigningFailed;
use crate::pin::PinFailed;

/// After what time an unavailable store is worth another try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a call is refused. No variant carries a part of what the caller sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A typed field is malformed.
    #[error("{field}: {description}")]
    Field {
        /// The field.
        field: FieldPath,
        /// What it must be, in fixed words.
        description: &'static str,
    },
    /// A receipt, or the members of one, break a rule of the specification.
    #[error("receipt: {code}")]
    Receipt {
        /// The stable code.
        code: &'static str,
        /// The fixed text of the code.
        meaning: &'static str,
        /// The member at fault, where one is.
        member: Option<&'static str>,
    },
    /// The peer has no SPIFFE id.
    #[error("the caller is unknown")]
    NoCaller,
    /// The writers table does not allow it.
    #[error("the caller may not write this")]
    OperationNotAllowed,
    /// The operation id was used with other content.
    #[error("the operation id was used with other content")]
    OperationConflict,
    /// The actor consumed the bundle before.
    #[error("the bundle was consumed before")]
    ReplayConflict,
    /// A new intent is over already.
    #[error("the deadline has passed")]
    DeadlinePassed,
    /// A member that the intent fixed has another value.
    #[error("a member is fixed to another value")]
    MemberConflict,
    /// What an earlier operation did to the bundle is not known.
    #[error("an earlier operation about the bundle is indeterminate")]
    BundleUnsettled,
    /// The caller has no such intent.
    #[error("no such intent")]
    IntentNotFound,
    /// The tenant has no such receipt.
    #[error("no such receipt")]
    ReceiptNotFound,
    /// Only the receipt's tombstone is left.
    #[error("the receipt was erased")]
    ReceiptErased,
    /// The tenant has no such hold.
    #[error("no such hold")]
    HoldNotFound,
    /// The tenant has as many holds as it can have.
    #[error("the tenant has too many holds")]
    TooManyHolds,
    /// The peer is no reader.
    #[error("the caller is no reader")]
    NotReader,
    /// Too many calls wait.
    #[error("too many calls wait")]
    Busy,
    /// The store drains.
    #[error("the store drains")]
    Draining,
    /// The store under the log failed; what the call asked for may or may not be there.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] cl_kv::Error),
    /// The pins cannot be read or written; what the call asked for may or may not be there.
    #[error("the pins are unavailable: {0}")]
    Unpinned(#[from] PinFailed),
    /// No quorum of witnesses cosigns; what the call asked for may or may not be there.
    #[error("the log is not cosigned: {0}")]
    Uncosigned(#[from] CosigningFailed),
    /// A stored record is not what was written, or the log is not what its pin says.
    #[error("the store is damaged: {0}")]
    Corrupt(&'static str),
    /// Something broke inside.
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl Error {
    /// Operators need the cause of what callers cannot help; the span around it has the call's ids.
    pub(crate) fn log(&self) {
        if matches!(
            self,
            Self::Unavailable(_) | Self::Unpinned(_) | Self::Uncosigned(_)
        ) {
            tracing::warn!(error = %self, cause = cause(self), "call failed");
        } else if matches!(self, Self::Corrupt(_) | Self::Internal(_)) {
            tracing::error!(error = %self, "call failed");
        }
    }

    /// Whether the store, and not the call, is the cause.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_)
                | Self::Unpinned(_)
                | Self::Uncosigned(_)
                | Self::Corrupt(_)
                | Self::Internal(_)
        )
    }

    /// A malformed field.
    pub fn field(field: impl Into<FieldPath>, description: &'static str) -> Self {
        Self::Field {
            field: field.into(),
            description,
        }
    }
}

impl From<cl_kv::Error> for Error {
    fn from(error: cl_kv::Error) -> Self {
        match error {
            cl_kv::Error::Corrupt(_) => Self::Corrupt("a sealed value does not open"),
            cl_kv::Error::WrongKey => Self::Corrupt("the keys do not open"),
            cl_kv::Error::TooLarge(_) => Self::Internal("a record is over a limit of the engine"),
            cl_kv::Error::KeyInUse(_) | cl_kv::Error::NoSuchKey(_) => {
                Self::Internal("a call of key rotation came up")
            }
            error @ (cl_kv::Error::Conflict { .. }
            | cl_kv::Error::Full
            | cl_kv::Error::Locked
            | cl_kv::Error::Unavailable(_)) => Self::Unavailable(error),
        }
    }
}

/// The members of a receipt that a refusal can be about.
const MEMBERS: &[&str] = &[
    "spec_version",
    "type",
    "id",
    "created_at",
    "issuer",
    "operation",
    "actor",
    "subject_ref",
    "request_ref",
    "decision_ref",
    "bundle_ref",
    "supersedes_ref",
    "started_at",
    "completed_at",
    "outcome",
    "policy_snapshot",
    "input_digest",
    "output_digest",
    "user_summary",
    "metadata",
    "payload_included",
    "integrity",
];

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        use cl_model::refusal::Code as Model;

        let mut code = refusal.code();
        let is_public = matches!(
            code,
            Model::InvalidReceipt
                | Model::InvalidDateTime
                | Model::InvalidReceiptTimeRange
                | Model::InvalidDigest
                | Model::ReceiptPayloadForbidden
                | Model::ReceiptContainsForbiddenMaterial
                | Model::RecordIntegrityMismatch
        );
        if code == Model::InvalidRecordIntegrity {
            code = Model::RecordIntegrityMismatch;
        } else if !is_public {
            code = Model::InvalidReceipt;
        }
        let place = refusal.place();
        let member = MEMBERS
            .iter()
            .find(|name| place.is_some_and(|place| place.is_member(name)));
        Self::Receipt {
            code: code.as_str(),
            meaning: code.meaning(),
            member: member.copied(),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        error.log();
        let (code, reason, text) = public(&error);
        let mut status = StatusBuilder::new(code, reason, text);
        if matches!(code, Code::Unavailable | Code::ResourceExhausted) {
            status = status.retry_delay(RETRY_AFTER);
        }
        let violated = match &error {
            Error::Field { field, description } => Some((field.clone(), *description)),
            Error::Receipt { member, .. } => member.map(|member| (member.into(), text)),
            Error::NoCaller
            | Error::OperationNotAllowed
            | Error::OperationConflict
            | Error::ReplayConflict
            | Error::DeadlinePassed
            | Error::MemberConflict
            | Error::BundleUnsettled
            | Error::IntentNotFound
            | Error::ReceiptNotFound
            | Error::ReceiptErased
            | Error::HoldNotFound
            | Error::TooManyHolds
            | Error::NotReader
            | Error::Busy
            | Error::Draining
            | Error::Unavailable(_)
            | Error::Unpinned(_)
            | Error::Uncosigned(_)
            | Error::Corrupt(_)
            | Error::Internal(_) => None,
        };
        if let Some((field, description)) = violated {
            status = status.violation(field, reason, description);
        }
        status.build()
    }
}

/// What callers are told.
fn public(error: &Error) -> (Code, &'static str, &'static str) {
    match error {
        Error::Field { .. } => (
            Code::InvalidArgument,
            "INVALID_FIELD",
            "a field is malformed",
        ),
        Error::Receipt { code, meaning, .. } => (Code::InvalidArgument, code, meaning),
        Error::NoCaller => (
            Code::Unauthenticated,
            "CALLER_UNAUTHENTICATED",
            "the caller has no SPIFFE id",
        ),
        Error::OperationNotAllowed => (
            Code::PermissionDenied,
            "OPERATION_NOT_ALLOWED",
            "the caller may not write receipts of this actor and operation",
        ),
        Error::OperationConflict => (
            Code::AlreadyExists,
            "OPERATION_CONFLICT",
            "the operation id was used with other content",
        ),
        Error::ReplayConflict => (
            Code::AlreadyExists,
            "RECEIPT_REPLAY_CONFLICT",
            "this actor already consumed this bundle",
        ),
        Error::DeadlinePassed => (
            Code::FailedPrecondition,
            "DEADLINE_PASSED",
            "the deadline is not in the future",
        ),
        Error::MemberConflict => (
            Code::FailedPrecondition,
            "RECEIPT_MEMBER_CONFLICT",
            "a member that the intent fixed has another value",
        ),
        Error::BundleUnsettled => (
            Code::FailedPrecondition,
            "BUNDLE_UNSETTLED",
            "an earlier operation about the bundle is indeterminate; settle it first",
        ),
        Error::IntentNotFound => (Code::NotFound, "INTENT_NOT_FOUND", "no such intent"),
        Error::ReceiptNotFound => (Code::NotFound, "RECEIPT_NOT_FOUND", "no such receipt"),
        Error::ReceiptErased => (
            Code::NotFound,
            "RECEIPT_ERASED",
            "the receipt was erased; a tombstone is left of it",
        ),
        Error::HoldNotFound => (Code::NotFound, "HOLD_NOT_FOUND", "no such hold"),
        Error::TooManyHolds => (
            Code::FailedPrecondition,
            "TOO_MANY_HOLDS",
            "the tenant has as many holds as it can have",
        ),
        Error::NotReader => (
            Code::PermissionDenied,
            "CALLER_NOT_ALLOWED",
            "the caller may not read receipts",
        ),
        Error::Busy => (
            Code::ResourceExhausted,
            "RATE_LIMITED",
            "too many calls wait",
        ),
        Error::Draining | Error::Unavailable(_) | Error::Unpinned(_) | Error::Uncosigned(_) => (
            Code::Unavailable,
            "RECEIPT_STORE_UNAVAILABLE",
            "the receipt store cannot take receipts now",
        ),
        Error::Corrupt(_) => (
            Code::DataLoss,
            "STORE_CORRUPT",
            "a stored record does not verify",
        ),
        Error::Internal(_) => (Code::Internal, "INTERNAL", "internal error"),
    }
}

/// The innermost cause of a failure: the operating system's or the database's words.
fn cause(error: &Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_reason_and_says_when_to_come_back() {
        for (error, reason) in [
            (Error::NoCaller, "CALLER_UNAUTHENTICATED"),
            (Error::NotReader, "CALLER_NOT_ALLOWED"),
            (Error::ReceiptErased, "RECEIPT_ERASED"),
            (Error::HoldNotFound, "HOLD_NOT_FOUND"),
            (Error::TooManyHolds, "TOO_MANY_HOLDS"),
            (Error::Busy, "RATE_LIMITED"),
            (Error::Draining, "RECEIPT_STORE_UNAVAILABLE"),
            (Error::from(cl_kv::Error::Full), "RECEIPT_STORE_UNAVAILABLE"),
            (Error::from(cl_kv::Error::WrongKey), "STORE_CORRUPT"),
            (Error::Internal("x"), "INTERNAL"),
        ] {
            let is_temporary = reason == "RATE_LIMITED" || reason == "RECEIPT_STORE_UNAVAILABLE";
            let status = Status::from(error);
            assert_eq!(cl_wire::status::reason(&status).as_deref(), Some(reason));
            let delay = cl_wire::status::retry_delay(&status);
            assert_eq!(delay.is_some(), is_temporary, "{reason}");
        }
    }
}
