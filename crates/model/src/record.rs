//! Content-addressed records: an id and a digest that follow from the contents (spec 6.4).

use std::fmt;

use serde_json::{Map, Value, json};

use crate::canonical::{self, MemberTexts};
use crate::digest::Digest;
use crate::refusal::{Code, Refusal};

const COMPUTED_MEMBERS: [&str; 2] = ["id", "integrity"];

/// A record whose `id` and `integrity` follow from its other members.
///
/// Only [`finalize`] makes one.
#[derive(Clone, PartialEq)]
pub struct Record {
    value: Value,
    digest: Digest,
    text: String,
}

impl Record {
    /// The record as JSON, computed members included.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The digest of the contents without the computed members.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The canonical text of the whole record.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The canonical text of the whole record.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The record as JSON.
    pub fn into_value(self) -> Value {
        self.value
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Record({})", self.digest)
    }
}

/// Adds `id` and `integrity` to a record's contents.
///
/// # Errors
///
/// [`Code::InvalidObject`] unless `unsigned` is an object, [`Code::InvalidIdPrefix`] if the prefix
/// is empty, [`Code::RecordAlreadyFinalized`] if a computed member is there already: replacing it
/// would give a record whose digest covers something else than it says.
pub fn finalize(unsigned: Value, id_prefix: &str) -> Result<Record, Refusal> {
    let mut value = unsigned;
    let object = value.as_object_mut().ok_or(Code::InvalidObject)?;
    if id_prefix.is_empty() {
        return Err(Code::InvalidIdPrefix.into());
    }
    if COMPUTED_MEMBERS
        .iter()
        .any(|name| object.contains_key(*name))
    {
        return Err(Code::RecordAlreadyFinalized.into());
    }
    let mut members = MemberTexts::of(object);
    let computed = Computed::of(&members, id_prefix);
    computed.put_into(&mut members);
    object.insert("id".to_owned(), Value::String(computed.id.clone()));
    object.insert(
        "integrity".to_owned(),
        json!({"algorithm": "sha-256", "digest": computed.digest.to_string()}),
    );
    Ok(Record {
        text: members.to_text(),
        digest: computed.digest,
        value,
    })
}

/// The computed members of a record.
pub(crate) struct Computed {
    pub(crate) id: String,
    pub(crate) digest: Digest,
}

impl Computed {
    /// The computed members that follow from the others.
    pub(crate) fn of(members: &MemberTexts, id_prefix: &str) -> Self {
        let digest = Digest::of_bytes(members.to_text_without(&COMPUTED_MEMBERS).as_bytes());
        Self {
            id: record_id(id_prefix, digest),
            digest,
        }
    }

    /// Adds them to the others.
    pub(crate) fn put_into(&self, members: &mut MemberTexts) {
        let digest = self.digest;
        members.put("id", canonical::to_text(&Value::from(self.id.as_str())));
        members.put(
            "integrity",
            format!(r#"{{"algorithm":"sha-256","digest":"{digest}"}}"#),
        );
    }
}

/// Checks that a record's `id` and `integrity` follow from its contents.
///
/// # Errors
///
/// [`Code::InvalidObject`] unless the value is an object, [`Code::InvalidRecordIntegrity`] if the
/// integrity member is missing, has other members or another algorithm,
/// [`Code::RecordIntegrityMismatch`] if the digest or the id is another one.
pub fn verify(value: &Value, id_prefix: &str) -> Result<Digest, Refusal> {
    verify_text(value, id_prefix).map(|(digest, _)| digest)
}

/// As [`verify`]; also gives the record's canonical text, which signatures cover.
pub(crate) fn verify_text(value: &Value, id_prefix: &str) -> Result<(Digest, String), Refusal> {
    let object = value.as_object().ok_or(Code::InvalidObject)?;
    let stated = stated_digest(object).ok_or(Code::InvalidRecordIntegrity)?;
    let members = MemberTexts::of(object);
    let computed = Computed::of(&members, id_prefix);
    let has_digest = stated.as_str().and_then(Digest::parse) == Some(computed.digest);
    let id = object.get("id").and_then(Value::as_str);
    if has_digest && id == Some(computed.id.as_str()) {
        return Ok((computed.digest, members.to_text()));
    }
    Err(Code::RecordIntegrityMismatch.into())
}

fn stated_digest(object: &Map<String, Value>) -> Option<&Value> {
    let integrity = object.get("integrity")?.as_object()?;
    let is_closed = integrity.len() == 2 && integrity.get("algorithm")? == "sha-256";
    integrity.get("digest").filter(|_| is_closed)
}

fn record_id(prefix: &str, digest: Digest) -> String {
    format!("{prefix}{}", digest.to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "urn:cl:test-vector:";

    fn code<T>(result: Result<T, Refusal>) -> Option<Code> {
        result.err().map(|refusal| refusal.code())
    }

    #[test]
    fn verifies_what_it_finalizes() {
        let record = finalize(json!({"b": [1, 2], "a": "é"}), PREFIX).expect("a record");
        assert_eq!(verify(record.value(), PREFIX), Ok(record.digest()));
        assert_eq!(
            record.value()["id"],
            json!(format!("{PREFIX}{}", record.digest().to_hex()))
        );
    }

    #[test]
    fn refuses_every_change() {
        let record = finalize(json!({"a": 1}), PREFIX)
            .expect("a record")
            .into_value();
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut value = record.clone();
            change(&mut value);
            code(verify(&value, PREFIX))
        };
        let mismatch = Some(Code::RecordIntegrityMismatch);
        let invalid = Some(Code::InvalidRecordIntegrity);
        assert_eq!(changed(&|value| value["a"] = json!(2)), mismatch);
        assert_eq!(changed(&|value| value["b"] = json!(2)), mismatch);
        assert_eq!(changed(&|value| value["id"] = json!("x")), mismatch);
        assert_eq!(changed(&|value| value["id"] = json!(7)), mismatch);
        assert_eq!(
            changed(&|value| value["integrity"]["digest"] = json!(7)),
            mismatch
        );
        assert_eq!(
            changed(&|value| value["integrity"]["extra"] = json!(7)),
            invalid
        );
        assert_eq!(
            changed(&|value| value["integrity"]["algorithm"] = json!("sha-1")),
            invalid
        );
        assert_eq!(
            changed(&|value| value["integrity"] = json!(["sha-256"])),
            invalid
        );
        assert_eq!(code(verify(&record, "urn:cl:other:")), mismatch);
        assert_eq!(code(verify(&json!([]), PREFIX)), Some(Code::InvalidObject));
    }

    #[test]
    fn never_finalizes_twice() {
        let record = finalize(json!({"a": 1}), PREFIX)
            .expect("a record")
            .into_value();
        assert_eq!(
            code(finalize(record, PREFIX)),
            Some(Code::RecordAlreadyFinalized)
        );
        assert_eq!(code(finalize(json!({}), "")), Some(Code::InvalidIdPrefix));
        assert_eq!(code(finalize(json!([]), PREFIX)), Some(Code::InvalidObject));
    }
}
