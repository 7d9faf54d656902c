//! Captured events as they are checked on arrival (spec 7.1, 8.1).

use cl_model::digest::Digest;
use cl_model::document::{InvalidBytes, read_canonical};
use cl_model::json::read::ToJson as _;
use cl_model::object::{ProtocolObject as _, SourceEvent};
use cl_model::part::Label;
use cl_model::record;
use cl_model::scalar::Reference;
use cl_model::urn::EventId;
use serde_json::json;

/// The longest event.
pub const MAX_EVENT_BYTES: usize = 262_144;

/// Why an item is refused: the code of the violated rule.
pub type ItemRefusal = &'static str;

/// An event that fits its schema, with its exact bytes. Its id follows from its contents.
#[derive(Clone)]
pub struct ReadEvent {
    /// The bytes: canonical JSON.
    pub bytes: Vec<u8>,
    /// What they say.
    pub event: SourceEvent,
}

impl ReadEvent {
    /// Reads an event, and checks that its id and its digest follow from its contents.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ItemRefusal> {
        if bytes.len() > MAX_EVENT_BYTES {
            return Err("DOCUMENT_TOO_LARGE");
        }
        let value = read_canonical(&bytes).map_err(|error| match error {
            InvalidBytes::TooLarge => "DOCUMENT_TOO_LARGE",
            InvalidBytes::NotCanonical => "NOT_CANONICAL",
            InvalidBytes::Refused(refusal) => refusal.code().as_str(),
        })?;
        let event = SourceEvent::read(&value).map_err(|refusal| refusal.code().as_str())?;
        record::verify(&value, EventId::PREFIX).map_err(|refusal| refusal.code().as_str())?;
        Ok(Self { bytes, event })
    }

    /// Checks that the event is about a subject and describes a payload.
    pub fn check(&self, subject: &Reference, payload: Payload) -> Result<(), ItemRefusal> {
        if self.event.subject_ref != *subject {
            return Err("SUBJECT_MISMATCH");
        }
        let stated = &self.event.payload_ref;
        let digest = stated.digest.ok_or("PAYLOAD_DIGEST_REQUIRED")?;
        if digest != payload.digest {
            return Err("PAYLOAD_DIGEST_MISMATCH");
        }
        let has_length = stated
            .byte_length
            .is_none_or(|length| u64::try_from(length.get()) == Ok(payload.byte_length));
        if !has_length {
            return Err("PAYLOAD_LENGTH_MISMATCH");
        }
        Ok(())
    }

    /// What makes two captures the same item: adapter, native id and payload.
    pub fn item(&self, payload: Digest) -> Digest {
        let source = &self.event.source;
        let native = source.native_id_digest.or_else(|| {
            let native = source.native_id_ref.as_ref()?;
            Some(Digest::of_bytes(native.as_str().as_bytes()))
        });
        Digest::of_json(&json!([
            source.adapter.as_str(),
            native.map(|native| native.to_string()),
            payload.to_string(),
        ]))
    }

    /// How private it is: what the adapter says, else the most.
    pub fn label(&self) -> Label {
        self.event.evidence.label.unwrap_or(Label::Restricted)
    }

    /// The ways by which it arrived, each as canonical JSON.
    pub fn ways(&self) -> impl Iterator<Item = Vec<u8>> {
        let ways = self.event.provenance.iter();
        ways.map(|way| cl_model::canonical::to_text(&way.to_json()).into_bytes())
    }
}

/// A payload as its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The digest of the bytes.
    pub digest: Digest,
    /// How many there are.
    pub byte_length: u64,
}

impl Payload {
    /// The payload of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            digest: Digest::of_bytes(bytes),
            byte_length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text that is nearly an event, so that the later checks see some of it.
    fn nearly_an_event() -> impl Strategy<Value = Vec<u8>> {
        let member = prop_oneof![
            Just(r#""type":"source_event""#),
            Just(r#""spec_version":"context-layer/0.2-draft""#),
            Just(r#""payload_ref":{}"#),
            Just(r#""provenance":[]"#),
            Just(r#""integrity":{"algorithm":"sha-256","digest":""}"#),
        ];
        let members = proptest::collection::vec(member, 0..5);
        members.prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes())
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_with_a_code(
            bytes in prop_oneof![any::<Vec<u8>>(), nearly_an_event()],
        ) {
            let refusal = ReadEvent::parse(bytes).err();
            prop_assert!(refusal.is_some_and(cl_model::scalar::is_upper_snake));
        }
    }
}
