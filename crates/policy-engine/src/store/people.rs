//! What the engine remembers of people who approve: their passkeys, their sessions, what waits for
//! them, and what they answered. The contract is the one of [`Store`](super::Store).

mod approvals;
pub(super) mod approvals_kv;
mod credentials;
pub(super) mod credentials_kv;
mod history;
pub(super) mod history_kv;
pub(super) mod records;

use cl_kv::Version;

pub use self::approvals::{Answer, Approvals, OpenedAnswer, Pending, Queued, RefusedAnswer};
pub use self::credentials::{
    Credential, CredentialState, Credentials, Enrolment, Link, Session, SignIn,
};
pub use self::history::{History, Past, Revocation, Unrevoked};
use crate::core::operation::OperationId;

/// A record with the writing that was read.
#[derive(Clone)]
pub struct Stored<T> {
    /// The record.
    pub value: T,
    /// Which writing was read.
    pub version: Version,
}

/// How a challenge was used up.
#[derive(Clone, PartialEq, Eq)]
pub enum Spent {
    /// Without effect, or by an operation that cannot be repeated.
    Unnamed,
    /// By this operation, which may be repeated.
    By(OperationId),
}
