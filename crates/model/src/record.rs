//! Content-addressed records: an id and a digest that follow from the contents (spec 6.4).

use std::fmt;

use serde_json::{Map, Value, json};

use crate::canonical;
use crate::digest::Digest;
use crate::refusal::{Code, Refusal};

const COMPUTED_MEMBERS: [&str; 2] = ["id", "integrity"];

/// A record whose `id` and `integrity` follow from its other members.
///
/// Only [`finalize`] and [`verify`] make one.
#[derive(Clone, PartialEq)]
pub struct Record {
    value: Value,
    digest: Digest,
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
    pub fn to_text(&self) -> String {
        canonical::to_text(&self.value)
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
    let digest = Digest::of_bytes(canonical::object_to_text(object).as_bytes());
    object.insert("id".to_owned(), record_id(id_prefix, digest).into());
    object.insert(
        "integrity".to_owned(),
        json!({"algorithm": "sha-256", "digest": digest.to_string()}),
    );
    Ok(Record { value, digest })
}

/// Checks that a record's `id` and `integrity` follow from its contents.
///
/// # Errors
///
/// [`Code::InvalidObject`] unless the value is an object, [`Code::InvalidRecordIntegrity`] if the
/// integrity member is missing, has other members or another algorithm,
/// [`Code::RecordIntegrityMismatch`] if the digest or the id is another one.
pub fn verify(value: &Value, id_prefix: &str) -> Result<Digest, Refusal> {
    let object = value.as_object().ok_or(Code::InvalidObject)?;
    let stated = stated_digest(object).ok_or(Code::InvalidRecordIntegrity)?;
    let digest = content_digest(object);
    let has_digest = stated.as_str().and_then(Digest::parse) == Some(digest);
    let id = object.get("id").and_then(Value::as_str);
    if has_digest && id == Some(record_id(id_prefix, digest).as_str()) {
        return Ok(digest);
    }
    Err(Code::RecordIntegrityMismatch.into())
}

/// The digest of a record's contents without its computed members.
pub fn content_digest(object: &Map<String, Value>) -> Digest {
    Digest::of_bytes(canonical::object_without(object, &COMPUTED_MEMBERS).as_bytes())
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
