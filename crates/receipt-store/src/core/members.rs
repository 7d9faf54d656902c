//! Receipts as writers send them: whole ones, parts of one, and those that consumers made.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::part::SPEC_VERSION;
use cl_model::refusal::Code;
use serde_json::{Map, Value, json};

use super::finished::Finished;
use super::routing::OperationId;
use crate::error::Error;

/// The most bytes of members or of a consumer's receipt.
pub const MAX_MEMBERS_BYTES: usize = 65_536;

/// Members of a receipt, in canonical form when they came; not yet a receipt.
#[derive(Clone)]
pub struct Members(Map<String, Value>);

impl Members {
    /// Reads canonical JSON of one object.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match parse_canonical(bytes)? {
            Value::Object(members) => Ok(Self(members)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(invalid(None)),
        }
    }

    /// The receipt that has exactly these members, and those that follow from them.
    ///
    /// Its metadata must name its operation, so that the receipts of equal operations differ.
    pub fn finish(self, operation_id: &OperationId) -> Result<Finished, Error> {
        let finished = Finished::new(Value::Object(self.0))?;
        let metadata = finished.receipt().metadata.as_ref();
        let named = metadata.and_then(|metadata| metadata.get("operation_id"));
        if named.is_none_or(|named| named.as_str() != operation_id.as_str()) {
            return Err(Error::Receipt {
                code: Code::InvalidReceipt.as_str(),
                meaning: "the metadata must have the operation's own operation_id",
                member: Some("metadata"),
            });
        }
        Ok(finished)
    }

    /// Checks the members of an intent as far as they go: with stand-ins for those that are open,
    /// they must make a receipt.
    pub fn check_intent(&self, operation_id: &OperationId) -> Result<Finished, Error> {
        if self.value("supersedes_ref").is_some() {
            // The store may need the place for a reference of its own.
            return Err(invalid(Some("supersedes_ref")));
        }
        let mut members = self.0.clone();
        let nothing = Value::from(Digest::of_json(&Value::Null).to_string());
        let started_at = members.get("started_at").cloned().unwrap_or_default();
        for (name, stand_in) in [
            ("spec_version", json!(SPEC_VERSION)),
            ("type", json!("receipt")),
            ("created_at", started_at.clone()),
            ("request_ref", Value::Null),
            ("decision_ref", Value::Null),
            ("bundle_ref", Value::Null),
            ("completed_at", started_at),
            ("outcome", json!("indeterminate")),
            ("policy_snapshot", Value::Null),
            ("input_digest", nothing.clone()),
            ("output_digest", nothing),
            ("user_summary", json!("Open.")),
            ("metadata", json!({"operation_id": operation_id.as_str()})),
            ("payload_included", json!(false)),
        ] {
            if members.get(name).is_none_or(Value::is_null) {
                members.insert(name.to_owned(), stand_in);
            }
        }
        Self(members).finish(operation_id)
    }

    /// The members of an intent and those that complete it.
    ///
    /// A member that the intent fixed must be absent or the same here. `overdue_ref` is the store's
    /// own receipt, which the whole receipt then supersedes.
    pub fn complete(&self, intent: &Self, overdue_ref: Option<&str>) -> Result<Self, Error> {
        let mut merged = intent.0.clone();
        for (name, value) in &self.0 {
            match intent.value(name) {
                Some(fixed) if fixed != value => return Err(Error::MemberConflict),
                Some(_) => {}
                None => {
                    merged.insert(name.clone(), value.clone());
                }
            }
        }
        let sent = self.value("supersedes_ref").map(Value::as_str);
        if sent.is_some_and(|sent| sent.is_none() || sent != overdue_ref) {
            return Err(Error::MemberConflict);
        }
        if let Some(reference) = overdue_ref {
            merged.insert("supersedes_ref".to_owned(), reference.into());
        }
        Ok(Self(merged))
    }

    /// A member that is there and not null.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// Reads a receipt that a consumer finished.
pub fn read_consumer_receipt(bytes: &[u8]) -> Result<Finished, Error> {
    Ok(Finished::check(&parse_canonical(bytes)?)?)
}

/// Two texts of one value would have one digest, so only the canonical one is taken.
fn parse_canonical(bytes: &[u8]) -> Result<Value, Error> {
    if bytes.len() > MAX_MEMBERS_BYTES {
        return Err(Error::Receipt {
            code: "DOCUMENT_TOO_LARGE",
            meaning: "the document is over 65536 bytes",
            member: None,
        });
    }
    let value = json::parse(bytes, Limits::network(MAX_MEMBERS_BYTES))?;
    if canonical::to_text(&value).as_bytes() != bytes {
        return Err(invalid(None));
    }
    Ok(value)
}

fn invalid(member: Option<&'static str>) -> Error {
    Error::Receipt {
        code: Code::InvalidReceipt.as_str(),
        meaning: Code::InvalidReceipt.meaning(),
        member,
    }
}
