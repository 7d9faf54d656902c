//! How a call to a peer ended that did not confirm what it was told.

use tonic::{Code, Status};

use crate::status::reason;

/// A peer did not confirm what it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer did not confirm: {code:?}")]
pub struct Unconfirmed {
    /// How the call ended.
    pub code: Code,
    /// The stable code that the peer gave, if any.
    pub reason: Option<String>,
}

impl Unconfirmed {
    /// An answer that does not say so.
    pub const fn without_reason(code: Code) -> Self {
        Self { code, reason: None }
    }

    /// Whether a receipt was written, and erased since: there is nothing left to do.
    pub fn is_erased(&self) -> bool {
        self.code == Code::NotFound && self.reason.as_deref() == Some("RECEIPT_ERASED")
    }
}

impl From<Status> for Unconfirmed {
    fn from(status: Status) -> Self {
        Self {
            code: status.code(),
            reason: reason(&status),
        }
    }
}
