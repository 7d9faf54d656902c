//! Documents as callers send them: bounded, strict, canonical, and within their schema.

use cl_model::document::MAX_DOCUMENT_BYTES;
use cl_model::json::{self, Limits};
use cl_model::object::{ContextRequest, MemoryUpdateProposal, ProtocolObject, Receipt};
use cl_model::policy::Asked;
use cl_model::refusal::{Code, Refusal};
use cl_model::urn::MAX_ID_BYTES;
use cl_model::{canonical, memory, receipt};
use serde_json::Value;

use crate::error::Error;
use crate::proposals::MAX_PROPOSAL_BYTES;
use crate::receipts::MAX_RECEIPT_BYTES;

/// What a caller may send.
pub(crate) trait Submittable: Sized {
    /// The longest form, as it is sent.
    const MAX_BYTES: usize;
    /// The field of messages that holds it.
    const FIELD: &'static str;

    fn check(value: &Value) -> Result<Self, Refusal>;
}

impl Submittable for ContextRequest {
    const MAX_BYTES: usize = MAX_DOCUMENT_BYTES;
    const FIELD: &'static str = "request";

    fn check(value: &Value) -> Result<Self, Refusal> {
        // First what has a code of its own, then the schema as a whole.
        Asked::read(value)?;
        let request = Self::read(value)?;
        if request.id.as_str().len() > MAX_ID_BYTES {
            return Err(Code::InvalidRequest.into());
        }
        Ok(request)
    }
}

impl Submittable for Receipt {
    const MAX_BYTES: usize = MAX_RECEIPT_BYTES;
    const FIELD: &'static str = "receipt";

    fn check(value: &Value) -> Result<Self, Refusal> {
        receipt::check(value)
    }
}

impl Submittable for MemoryUpdateProposal {
    const MAX_BYTES: usize = MAX_PROPOSAL_BYTES;
    const FIELD: &'static str = "proposal";

    fn check(value: &Value) -> Result<Self, Refusal> {
        memory::check(value)
    }
}

/// A document that fits its closed schema, in canonical form.
pub(crate) struct Document<T> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) object: T,
}

impl<T: Submittable> Document<T> {
    /// Reads a document in any form of strict JSON.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let (object, value) = Self::parse(bytes)?;
        Ok(Self {
            bytes: canonical::to_text(&value).into_bytes(),
            object,
        })
    }

    /// Takes a document that must be canonical already.
    pub(crate) fn take(bytes: Vec<u8>) -> Result<Self, Error> {
        let (object, value) = Self::parse(&bytes)?;
        if canonical::to_text(&value).as_bytes() != bytes {
            return Err(Error::Field {
                field: T::FIELD,
                rule: "NOT_CANONICAL",
            });
        }
        Ok(Self { bytes, object })
    }

    fn parse(bytes: &[u8]) -> Result<(T, Value), Error> {
        if bytes.len() > T::MAX_BYTES {
            return Err(Error::DocumentTooLarge);
        }
        let refused = |refusal| Error::Document(T::FIELD, refusal);
        let value = json::parse(bytes, Limits::network(T::MAX_BYTES)).map_err(refused)?;
        let object = T::check(&value).map_err(refused)?;
        Ok((object, value))
    }
}
