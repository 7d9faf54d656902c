//! Why a call failed, and what its caller is told.

use std::time::Duration;

use cl_host::telemetry::CorrelationId;
use cl_model::document::InvalidBytes;
use cl_model::refusal::Refusal;
use cl_wire::field_path::FieldPath;
use cl_wire::grant::InvalidGrant;
use cl_wire::status::{self, invalid_document, invalid_field, status};
use tonic::{Code, Status};

use crate::store::StoreError;

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The code of what was ended before its time.
pub(crate) const REVOKED: &str = "BUNDLE_REVOKED";

/// Why no bundle can ever be issued under a decision, as a stable code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no bundle can be issued: {0}")]
pub struct Final(String);

impl Final {
    /// The reason with this code.
    pub(crate) fn of(code: &str) -> Self {
        Self(code.to_owned())
    }

    /// The code.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a call failed. Nothing in it repeats what a caller or a peer sent.
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
    /// The request violates a rule.
    #[error("request: {0}")]
    Request(InvalidBytes),
    /// A consumer's receipt violates a rule.
    #[error("receipt: {0}")]
    Receipt(InvalidBytes),
    /// The grant does not hold here and now.
    #[error("grant: {0}")]
    Grant(Refusal),
    /// The grant is of another tenant.
    #[error("the grant is of another tenant")]
    TenantMismatch,
    /// The proxy or the vault does not accept the grant.
    #[error("the grant was refused: {0}")]
    GrantRefused(&'static str),
    /// No bundle can ever be issued under this decision.
    #[error(transparent)]
    NoBundle(Final),
    /// Another call issues for this decision.
    #[error("another call issues for this decision")]
    IssueInProgress,
    /// The proxy, or somebody behind it, is away.
    #[error("the claims cannot be projected now: {0}")]
    ProxyUnavailable(&'static str),
    /// The recipient has no such bundle.
    #[error("no such bundle")]
    BundleNotFound,
    /// The bundle was handed out.
    #[error("the bundle was handed out")]
    BundleReplay,
    /// The bundle has ended.
    #[error("the bundle has expired")]
    BundleExpired,
    /// The bundle was revoked.
    #[error("the bundle was revoked")]
    BundleRevoked,
    /// Others change the same bundle, again and again.
    #[error("others change the same bundle")]
    RedemptionInProgress,
    /// The bundle was not handed out.
    #[error("the bundle was not handed out")]
    BundleNotRedeemed,
    /// The receipt is not one that the contract names.
    #[error("the receipt is outside the contract")]
    ReceiptOutsideContract,
    /// The bundle was consumed before.
    #[error("the bundle was consumed before")]
    ReceiptReplayConflict,
    /// The operation id was used for something else.
    #[error("the operation id is in use")]
    OperationConflict,
    /// The operation id is so old that nobody knows any more what it was used for.
    #[error("the operation id is too old")]
    OperationTooOld,
    /// The clock has jumped, and whether time has passed cannot be told yet.
    #[error("the clock has jumped")]
    ClockUnsettled,
    /// The receipt store does not confirm.
    #[error("the receipt store is unavailable")]
    ReceiptStoreUnavailable,
    /// The issuer's own store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something broke inside.
    #[error("internal")]
    Internal,
}

impl From<InvalidGrant> for Error {
    fn from(invalid: InvalidGrant) -> Self {
        Self::Field {
            field: invalid.field,
            rule: invalid.rule,
        }
    }
}

impl Error {
    /// The stable code; that of [`Error::NoBundle`] is in it.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Field { .. } => "INVALID_FIELD",
            Self::Request(_) => "INVALID_REQUEST",
            Self::Receipt(_) => "INVALID_RECEIPT",
            Self::Grant(refusal) => refusal.code().as_str(),
            Self::TenantMismatch => "TENANT_MISMATCH",
            Self::GrantRefused(code) | Self::ProxyUnavailable(code) => code,
            Self::NoBundle(_) => "NO_BUNDLE",
            Self::IssueInProgress => "ISSUE_IN_PROGRESS",
            Self::BundleNotFound => "BUNDLE_NOT_FOUND",
            Self::BundleReplay => "BUNDLE_REPLAY",
            Self::BundleExpired => "BUNDLE_EXPIRED",
            Self::BundleRevoked => REVOKED,
            Self::RedemptionInProgress => "REDEMPTION_IN_PROGRESS",
            Self::BundleNotRedeemed => "BUNDLE_NOT_REDEEMED",
            Self::ReceiptOutsideContract => "RECEIPT_OUTSIDE_CONTRACT",
            Self::ReceiptReplayConflict => "RECEIPT_REPLAY_CONFLICT",
            Self::OperationConflict => "OPERATION_CONFLICT",
            Self::OperationTooOld => "OPERATION_TOO_OLD",
            Self::ClockUnsettled => "CLOCK_UNSETTLED",
            Self::ReceiptStoreUnavailable => "RECEIPT_STORE_UNAVAILABLE",
            Self::Store(StoreError::Corrupt) => "STORE_CORRUPT",
            Self::Store(StoreError::Conflict | StoreError::Unavailable(_)) => "SERVICE_UNAVAILABLE",
            Self::Store(StoreError::Panicked) | Self::Internal => "INTERNAL",
        }
    }

    /// The one conversion to what a caller sees.
    pub(crate) fn to_status(&self, correlation_id: Option<CorrelationId>) -> Status {
        let plain = |code, message| status(code, self.code(), message);
        let retryable = |code, message| status::retryable(code, self.code(), message, RETRY_AFTER);
        match self {
            Self::Field { field, rule } => invalid_field("INVALID_FIELD", field.clone(), rule),
            Self::Request(cause) => invalid_document("request", cause),
            Self::Receipt(cause) => invalid_document("receipt", cause),
            Self::Grant(_) | Self::TenantMismatch | Self::GrantRefused(_) => {
                plain(Code::PermissionDenied, "the grant does not allow this call")
            }
            Self::NoBundle(code) => status(
                Code::FailedPrecondition,
                code.as_str(),
                "no bundle can be issued under this decision",
            ),
            Self::IssueInProgress => {
                retryable(Code::Aborted, "another call issues for this decision")
            }
            Self::ProxyUnavailable(_) => retryable(
                Code::Unavailable,
                "the claims cannot be projected now; nothing was disclosed",
            ),
            Self::BundleNotFound => plain(Code::NotFound, "no such bundle"),
            Self::BundleReplay => plain(Code::FailedPrecondition, "the bundle was handed out"),
            Self::BundleExpired => plain(Code::FailedPrecondition, "the bundle has expired"),
            Self::BundleRevoked => plain(Code::FailedPrecondition, "the bundle was revoked"),
            Self::RedemptionInProgress => {
                retryable(Code::Aborted, "other calls change the same bundle")
            }
            Self::BundleNotRedeemed => {
                plain(Code::FailedPrecondition, "the bundle was not handed out")
            }
            Self::ReceiptOutsideContract => plain(
                Code::PermissionDenied,
                "the receipt is not one that the bundle's contract allows",
            ),
            Self::ReceiptReplayConflict => {
                plain(Code::AlreadyExists, "the bundle was consumed before")
            }
            Self::OperationConflict => plain(
                Code::AlreadyExists,
                "the operation id was used for something else",
            ),
            Self::OperationTooOld => plain(
                Code::FailedPrecondition,
                "the operation id is too old; call with a new one",
            ),
            Self::ClockUnsettled => retryable(
                Code::Unavailable,
                "the clock is not settled; repeat the call",
            ),
            Self::ReceiptStoreUnavailable => retryable(
                Code::Unavailable,
                "a receipt cannot be written; repeat the call",
            ),
            Self::Store(StoreError::Conflict | StoreError::Unavailable(_)) => retryable(
                Code::Unavailable,
                "the operation is not settled; repeat the call",
            ),
            Self::Store(StoreError::Corrupt) => {
                plain(Code::DataLoss, "a stored record does not verify")
            }
            Self::Store(StoreError::Panicked) | Self::Internal => correlation_id.map_or_else(
                || plain(Code::Internal, "internal error"),
                cl_host::status::internal,
            ),
        }
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Internal)
    }
}
