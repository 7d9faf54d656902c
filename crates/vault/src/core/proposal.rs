//! Memory proposals as they arrive (spec 7.7, 8.4).

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::document::{InvalidBytes, read_canonical};
use cl_model::memory;
use cl_model::object::MemoryUpdateProposal;
use cl_model::time::UnixTime;
use serde_json::{Value, json};

/// The longest proposal.
pub const MAX_PROPOSAL_BYTES: usize = 262_144;

/// How long a proposal may wait for its review, whatever it says itself.
pub const MAX_PENDING_SECONDS: u64 = 30 * 24 * 60 * 60;

/// A proposal that fits its closed schema, is pending, harmless, and asks for a confirmation.
#[derive(Clone)]
pub struct ReadProposal {
    bytes: Vec<u8>,
    value: Value,
    /// What it says.
    pub proposal: MemoryUpdateProposal,
}

impl ReadProposal {
    /// Reads a proposal.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, InvalidBytes> {
        if bytes.len() > MAX_PROPOSAL_BYTES {
            return Err(InvalidBytes::TooLarge);
        }
        let value = read_canonical(&bytes)?;
        Ok(Self {
            proposal: memory::check(&value)?,
            value,
            bytes,
        })
    }

    /// The digest of the bytes.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(&self.bytes)
    }

    /// The proposal with what the vault asks for before it may be committed: a person's
    /// confirmation, and a source where it names none. What the submitter asked for beyond stays.
    ///
    /// If that changes the document, its digest no longer covers it and is left out.
    pub fn stored(&self) -> Vec<u8> {
        let mut derived = vec!["user_confirm"];
        if self.proposal.provenance_refs.is_empty() {
            derived.push("source_required");
        }
        let asked = &self.proposal.approval_requirement;
        let missing: Vec<_> = derived
            .into_iter()
            .filter(|name| !asked.iter().any(|asked| asked.as_str() == *name))
            .collect();
        if missing.is_empty() {
            return self.bytes.clone();
        }
        let mut value = self.value.clone();
        let names = asked.iter().map(|name| name.as_str()).chain(missing);
        value["approval_requirement"] = json!(canonical::sort_unique(names));
        if let Some(members) = value.as_object_mut() {
            members.remove("integrity");
        }
        canonical::to_text(&value).into_bytes()
    }

    /// When it expires unless it is decided.
    pub fn expires_at(&self, now: UnixTime) -> UnixTime {
        let stated = self.proposal.expires_at.instant();
        stated.min(now.plus_seconds(MAX_PENDING_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_without_a_panic(bytes in any::<Vec<u8>>()) {
            prop_assert!(ReadProposal::parse(bytes).is_err());
        }
    }
}
