//! What can go wrong, sorted by who can do something about it.

use std::time::Duration;

use cl_model::refusal::{self, Refusal};
use cl_wire::status::{reason, retry_delay};
use tonic::{Code, Status};

/// Why a call of this library failed. No variant carries context or a credential.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule of the protocol refused, on this side: the bundle is expired, revoked, replayed, not
    /// inside its grant, or does not allow the action.
    #[error(transparent)]
    Refused(#[from] Refusal),

    /// The exchange refused, with a stable code such as `BUNDLE_REPLAY` or `CALLER_NOT_ALLOWED`.
    #[error("the exchange refused: {code}")]
    Exchange {
        /// The stable code.
        code: String,
        /// When a repeat may succeed, if it may.
        retry_after: Option<Duration>,
    },

    /// The exchange could not be reached, or gave no answer in time. Nothing is known about the
    /// call; repeat it with the same idempotency key.
    #[error("the exchange is unreachable")]
    Unreachable,

    /// The exchange answered with something that is not part of its contract.
    #[error("the exchange gave a malformed answer: {0}")]
    Malformed(&'static str),

    /// The configuration cannot be used.
    #[error("the configuration cannot be used: {0}")]
    Configuration(&'static str),
}

impl Error {
    /// The stable code, if a rule or the exchange refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(refusal.code().as_str()),
            Self::Exchange { code, .. } => Some(code),
            Self::Unreachable | Self::Malformed(_) | Self::Configuration(_) => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Exchange { retry_after, .. } => retry_after.is_some(),
            Self::Unreachable => true,
            Self::Refused(_) | Self::Malformed(_) | Self::Configuration(_) => false,
        }
    }
}

impl From<refusal::Code> for Error {
    fn from(code: refusal::Code) -> Self {
        Self::Refused(code.into())
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        match reason(&status) {
            Some(code) => Self::Exchange {
                code,
                retry_after: retry_delay(&status),
            },
            None if status.code() == Code::Internal => Self::Malformed("an error without a code"),
            None => Self::Unreachable,
        }
    }
}
