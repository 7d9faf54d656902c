//! `error` (spec 10.4).

use super::ProtocolObject;
use crate::json::read::{Expected, Mismatch, constant, object};
use crate::part::{Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{ReasonCode, Text};
use crate::time::Timestamp;
use crate::urn::ErrorId;

constant! {
    /// `type` of an error.
    pub struct ErrorType = "error";
}

const MAX_CODE_LENGTH: usize = 120;

object! {
    /// A refusal as it goes to a caller: a stable code and a safe message (spec 10.4).
    pub struct ErrorObject {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": ErrorType,
        /// The id to quote when asking about this error.
        id: ErrorId,
        /// When it happened.
        created_at: Timestamp,
        /// The component that refused.
        issuer: Issuer,
        /// The stable code, up to 120 characters.
        code: ReasonCode,
        /// One safe sentence, 1 to 500 characters.
        message: Text<1, 500>,
        /// Whether the same call may succeed later.
        retryable: bool,
    }
    check = ErrorObject::code_is_short;
}

impl ProtocolObject for ErrorObject {
    const REFUSED_AS: Code = Code::InvalidErrorObject;
}

impl ErrorObject {
    fn code_is_short(&self) -> Result<(), Mismatch> {
        if self.code.as_str().len() > MAX_CODE_LENGTH {
            return Err(Mismatch::from(Expected::Length).under_member("code"));
        }
        Ok(())
    }
}
