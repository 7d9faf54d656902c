//! Why a call failed, and what its caller is told.

use std::time::Duration;

use cl_host::telemetry::CorrelationId;
use cl_model::document::InvalidBytes;
use cl_model::refusal::Refusal;
use cl_wire::field_path::FieldPath;
use cl_wire::grant::InvalidGrant;
use cl_wire::status::{self, invalid_document, invalid_field, status};
use tonic::{Code, Status};

use crate::core::claim::Violation;
use crate::vault::VaultRefusal;

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a call failed. Nothing in it repeats what the caller or the vault sent.
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
    /// The grant does not hold here and now.
    #[error("grant: {0}")]
    Grant(Refusal),
    /// The grant is of another tenant.
    #[error("the grant is of another tenant")]
    TenantMismatch,
    /// The vault gave no claims.
    #[error(transparent)]
    Vault(VaultRefusal),
    /// Nothing of the vault's answer leaves.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The receipt store does not confirm; nothing leaves.
    #[error("the receipt store is unavailable")]
    ReceiptStoreUnavailable,
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
    /// The stable code, for the receipt.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Field { .. } => "INVALID_FIELD",
            Self::Request(_) => "INVALID_REQUEST",
            Self::Grant(refusal) => refusal.code().as_str(),
            Self::TenantMismatch => "TENANT_MISMATCH",
            Self::Vault(VaultRefusal::Grant(code)) => code,
            Self::Vault(VaultRefusal::Unavailable) => "VAULT_UNAVAILABLE",
            Self::Vault(VaultRefusal::Receipts) | Self::ReceiptStoreUnavailable => {
                "RECEIPT_STORE_UNAVAILABLE"
            }
            Self::Violation(violation) => violation.code(),
            Self::Internal => "INTERNAL",
        }
    }

    /// The one conversion to what a caller sees.
    pub(crate) fn to_status(&self, correlation_id: Option<CorrelationId>) -> Status {
        match self {
            Self::Field { field, rule } => invalid_field("INVALID_FIELD", field.clone(), rule),
            Self::Request(cause) => invalid_document("request", cause),
            Self::Grant(_) | Self::TenantMismatch | Self::Vault(VaultRefusal::Grant(_)) => status(
                Code::PermissionDenied,
                self.code(),
                "the grant does not allow this call",
            ),
            Self::Vault(VaultRefusal::Unavailable) => retryable(
                self.code(),
                "the vault did not answer; nothing was disclosed",
            ),
            Self::Vault(VaultRefusal::Receipts) | Self::ReceiptStoreUnavailable => retryable(
                self.code(),
                "no receipt can be written; nothing was disclosed",
            ),
            Self::Violation(_) => status(
                Code::FailedPrecondition,
                self.code(),
                "nothing may leave under this grant",
            ),
            Self::Internal => correlation_id.map_or_else(
                || status(Code::Internal, "INTERNAL", "internal error"),
                cl_host::status::internal,
            ),
        }
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Internal | Self::Violation(_) | Self::Vault(VaultRefusal::Unavailable)
        )
    }
}

fn retryable(reason: &str, message: &'static str) -> Status {
    status::retryable(Code::Unavailable, reason, message, RETRY_AFTER)
}
