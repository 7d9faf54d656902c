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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text that is nearly a document, so that the later checks see some of it.
    fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
        let member = prop_oneof![
            Just("\"type\":\"context_request\""),
            Just("\"spec_version\":\"context-layer/0.2-draft\""),
            Just("\"selectors\":[]"),
            Just("\"policy\":{}"),
            Just("\"snapshot_version\":1"),
            Just("\"limits\":null"),
        ];
        let members = proptest::collection::vec(member, 0..5);
        members.prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes())
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_without_a_panic(
            bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..256), nearly_json()],
        ) {
            prop_assert!(ReadRequest::parse(bytes.clone()).is_err());
            prop_assert!(ReadSnapshot::parse(bytes).is_err());
        }
    }

    #[test]
    fn bounds_come_before_parsing() {
        let large = vec![b'['; MAX_DOCUMENT_BYTES + 1];
        assert_eq!(
            ReadRequest::parse(large).err(),
            Some(InvalidBytes::TooLarge)
        );
        let spaced = ReadRequest::parse(b"{ }".to_vec()).err();
        assert_eq!(spaced, Some(InvalidBytes::NotCanonical));
    }
}
