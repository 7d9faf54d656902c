//! From bytes to what they say: requests and snapshots.

use cl_model::digest::Digest;
pub use cl_model::document::InvalidBytes;
use cl_model::document::read_canonical;
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::policy::Asked;
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::Action;
use cl_model::urn::MAX_ID_BYTES;
use cl_policy_cedar::{CompiledSnapshot, InvalidPolicies, InvalidSnapshot};

/// The longest name of a predicate or an action. Whatever a request names is kept and shown with its
/// decision, also what was denied.
pub const MAX_NAME_BYTES: usize = 256;

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
        let value = read_canonical(&bytes)?;
        let request = ContextRequest::read(&value)?;
        let predicates = request.selectors.iter().map(|it| it.predicate.as_str());
        let actions = request.requested_actions.iter().map(Action::as_str);
        let is_long = |name: &str| name.len() > MAX_NAME_BYTES;
        if request.id.as_str().len() > MAX_ID_BYTES || predicates.chain(actions).any(is_long) {
            return Err(Refusal::from(Code::InvalidRequest).into());
        }
        Ok(Self {
            request,
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
    pub snapshot: CompiledSnapshot,
}

/// Why bytes are no snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadSnapshot {
    /// They are no document of this kind.
    Bytes(InvalidBytes),
    /// Its policies are not accepted.
    Policies(InvalidPolicies),
}

impl ReadSnapshot {
    /// Reads a snapshot, and compiles its policy.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, UnreadSnapshot> {
        let value = read_canonical(&bytes).map_err(UnreadSnapshot::Bytes)?;
        let snapshot = CompiledSnapshot::read(&value).map_err(|invalid| match invalid {
            InvalidSnapshot::Refused(refusal) => UnreadSnapshot::Bytes(refusal.into()),
            InvalidSnapshot::Policies(policies) => UnreadSnapshot::Policies(policies),
        })?;
        Ok(Self { snapshot, bytes })
    }

    /// The digest of the bytes.
    pub fn digest(&self) -> Digest {
        self.snapshot.identity().digest
    }
}

#[cfg(test)]
mod tests {
    use cl_model::document::MAX_DOCUMENT_BYTES;
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
