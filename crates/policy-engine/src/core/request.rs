//! From bytes to what they say: requests and snapshots.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::document::MAX_DOCUMENT_BYTES;
use cl_model::json::{self, Limits};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::policy::{Asked, Snapshot};
use cl_model::refusal::Refusal;
use serde_json::Value;

/// A request that fits its closed schema, with its exact bytes.
#[derive(Clone)]
pub struct ReadRequest {
    /// The bytes: canonical JSON.
    pub bytes: Vec<u8>,
    /// What they say.
    pub request: ContextRequest,
    /// The same, as evaluation sees it.
    pub asked: Asked,
}

impl ReadRequest {
    /// Reads a request.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, InvalidBytes> {
        let value = canonical_value(&bytes)?;
        Ok(Self {
            request: ContextRequest::read(&value)?,
            asked: Asked::read(&value)?,
            bytes,
        })
    }

    /// The digest of the bytes.
    pub const fn digest(&self) -> Digest {
        self.asked.digest()
    }
}

/// A snapshot with its exact bytes.
#[derive(Clone)]
pub struct ReadSnapshot {
    /// The bytes: canonical JSON.
    pub bytes: Vec<u8>,
    /// What they say.
    pub snapshot: Snapshot,
}

impl ReadSnapshot {
    /// Reads a snapshot.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, InvalidBytes> {
        let value = canonical_value(&bytes)?;
        Ok(Self {
            snapshot: Snapshot::read(&value)?,
            bytes,
        })
    }

    /// The digest of the bytes.
    pub const fn digest(&self) -> Digest {
        self.snapshot.identity().digest
    }
}

fn canonical_value(bytes: &[u8]) -> Result<Value, InvalidBytes> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(InvalidBytes::TooLarge);
    }
    let value = json::parse(bytes, Limits::network(MAX_DOCUMENT_BYTES))?;
    if canonical::to_text(&value).as_bytes() != bytes {
        return Err(InvalidBytes::NotCanonical);
    }
    Ok(value)
}

/// Why bytes are no document of the kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBytes {
    /// More bytes than a document may have.
    #[error("the document is too large")]
    TooLarge,
    /// JSON, but not its canonical form.
    #[error("the document is not canonical JSON")]
    NotCanonical,
    /// It violates a rule.
    #[error(transparent)]
    Refused(#[from] Refusal),
}
