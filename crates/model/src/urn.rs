//! Identifiers of the protocol's objects: opaque URNs of one kind each (spec 6.1).

use std::fmt;

use serde_json::Value;

use crate::digest::Digest;
use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};

/// The longest identifier that a service takes, in bytes: receipts and stored keys name it, and have
/// limits of their own.
pub const MAX_ID_BYTES: usize = 512;

fn is_tail(tail: &str) -> bool {
    !tail.is_empty()
        && tail
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte))
}

macro_rules! urn_types {
    ($( $(#[$meta:meta])* pub struct $name:ident = $prefix:literal; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// What every identifier of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Parses the prefix and a tail of letters, digits and `. _ ~ -`.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix($prefix)
                    .is_some_and(is_tail)
                    .then(|| Self(text.to_owned()))
            }

            /// The identifier whose tail is the hex form of a digest.
            pub fn from_digest(digest: Digest) -> Self {
                Self(format!("{}{}", $prefix, digest.to_hex()))
            }

            /// The identifier as objects write it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl FromJson for $name {
            fn from_json(value: &Value) -> Result<Self, Mismatch> {
                Self::parse(string(value)?)
                    .ok_or_else(|| Expected::Pattern(concat!("an identifier ", $prefix)).into())
            }
        }

        impl ToJson for $name {
            fn to_json(&self) -> Value {
                Value::String(self.0.clone())
            }
        }
    )* };
}

urn_types! {
    /// A context request.
    pub struct RequestId = "urn:cl:request:";
    /// A policy decision.
    pub struct DecisionId = "urn:cl:decision:";
    /// What waits for, or has, a person's approval.
    pub struct ApprovalId = "urn:cl:approval:";
    /// A passkey of a person who approves.
    pub struct CredentialId = "urn:cl:credential:";
    /// A scoped context bundle.
    pub struct BundleId = "urn:cl:bundle:";
    /// A receipt.
    pub struct ReceiptId = "urn:cl:receipt:";
    /// A memory update proposal.
    pub struct ProposalId = "urn:cl:proposal:";
    /// A source event.
    pub struct EventId = "urn:cl:event:";
    /// A context claim.
    pub struct ClaimId = "urn:cl:claim:";
    /// A discovery request.
    pub struct DiscoveryRequestId = "urn:cl:discovery-request:";
    /// A minimum-reveal response.
    pub struct DiscoveryResultId = "urn:cl:discovery-result:";
    /// An error object.
    pub struct ErrorId = "urn:cl:error:";
    /// What a subject is called outside the vault.
    pub struct Alias = "urn:cl:alias:";
    /// What a source is called outside the vault.
    pub struct ProvenanceRef = "urn:cl:provenance:";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_its_own_kind() {
        assert!(RequestId::parse("urn:cl:request:req_701~a.B-9").is_some());
        for bad in [
            "urn:cl:request:",
            "urn:cl:request:a\n",
            "urn:cl:request:a b",
            "urn:cl:request:a/b",
            "urn:cl:request:é",
            "urn:cl:bundle:a",
            "URN:cl:request:a",
            "xurn:cl:request:a",
        ] {
            assert!(RequestId::parse(bad).is_none(), "{bad:?}");
        }
    }
}
