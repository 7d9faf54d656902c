//! Why a run ends early.

use std::io;

use cl_host::ids::NoRandomness;
use tonic::{Code, Status};

/// A run cannot go on. What was captured before stays; a repeat captures nothing twice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path cannot be opened.
    #[error("cannot open the path: {0}")]
    Path(#[source] io::Error),
    /// The vault does not answer.
    #[error("the vault stays away ({0:?}); run again when it is back: nothing is captured twice")]
    VaultAway(Code),
    /// The vault refuses the whole batch.
    #[error("the vault refuses: {code:?} {reason}")]
    Refused {
        /// How the call ended.
        code: Code,
        /// The stable code that the vault gave, or `UNKNOWN`.
        reason: String,
    },
    /// The vault broke its contract.
    #[error("the vault's answer does not fit the request")]
    Answer,
    /// No randomness for an operation id.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The reading thread is gone.
    #[error("reading ended unexpectedly")]
    Reader,
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        match status.code() {
            code @ (Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled) => {
                Self::VaultAway(code)
            }
            code @ (Code::Ok
            | Code::Unknown
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated) => Self::Refused {
                code,
                reason: cl_wire::status::reason(&status).unwrap_or_else(|| "UNKNOWN".to_owned()),
            },
        }
    }
}
