//! Writing and checking receipts (spec 7.8, 8).

use serde_json::{Map, Value, json};

use crate::canonical;
use crate::digest::Digest;
use crate::forbidden::contains_forbidden_material;
use crate::json::read::{Expected, FromJson, Mismatch};
use crate::object::{Outcome, Receipt};
use crate::opaque::opaque_debug;
use crate::part::SPEC_VERSION;
use crate::record::{self, Record};
use crate::refusal::{Code, Refusal};
use crate::time::UnixTime;
use crate::urn::ReceiptId;

const DEFAULT_ISSUER: &str = "urn:cl:receipt-writer:local";

/// The operation of opening a bundle, which succeeds at most once per actor and bundle.
pub const BUNDLE_CONSUME: &str = "bundle.consume";

/// The longest receipt, in bytes of canonical text. Names and identifiers have no length limit of
/// their own, and a receipt that is written must always be readable again.
pub const MAX_RECEIPT_BYTES: usize = 60 * 1024;

/// A receipt about to be written, with the profile's defaults.
#[derive(Clone)]
pub struct Draft<'a> {
    operation: &'a str,
    actor: &'a str,
    issuer: &'a str,
    subject: &'a str,
    outcome: Outcome,
    user_summary: &'a str,
    now: UnixTime,
    started_at: UnixTime,
    references: [Option<&'a str>; 3],
    supersedes: Option<&'a str>,
    policy_snapshot: Option<Digest>,
    input: Digest,
    output: Digest,
    metadata: Map<String, Value>,
}

opaque_debug!(Draft<'_>);

impl<'a> Draft<'a> {
    /// A receipt for `operation` by `actor` on the context of `subject` (an alias).
    ///
    /// It starts and completes at `now`, refers to nothing, and its digests are those of null.
    pub fn new(
        operation: &'a str,
        actor: &'a str,
        subject: &'a str,
        outcome: Outcome,
        user_summary: &'a str,
        now: UnixTime,
    ) -> Self {
        let nothing = Digest::of_json(&Value::Null);
        Self {
            operation,
            actor,
            issuer: DEFAULT_ISSUER,
            subject,
            outcome,
            user_summary,
            now,
            started_at: now,
            references: [None; 3],
            supersedes: None,
            policy_snapshot: None,
            input: nothing,
            output: nothing,
            metadata: Map::new(),
        }
    }

    /// Refers to request, decision and bundle.
    #[must_use]
    pub const fn about(mut self, request: &'a str, decision: &'a str, bundle: &'a str) -> Self {
        self.references = [Some(request), Some(decision), Some(bundle)];
        self
    }

    /// Refers to request and decision, where there is no bundle.
    #[must_use]
    pub const fn about_decision(mut self, request: &'a str, decision: &'a str) -> Self {
        self.references = [Some(request), Some(decision), None];
        self
    }

    /// Takes the place of an earlier receipt, which stays.
    #[must_use]
    pub const fn superseding(mut self, receipt: &'a str) -> Self {
        self.supersedes = Some(receipt);
        self
    }

    /// Names the writer.
    #[must_use]
    pub const fn issued_by(mut self, issuer: &'a str) -> Self {
        self.issuer = issuer;
        self
    }

    /// States the policy in force.
    #[must_use]
    pub const fn under_policy(mut self, digest: Option<Digest>) -> Self {
        self.policy_snapshot = digest;
        self
    }

    /// States what went in and what came out, as digests.
    #[must_use]
    pub const fn with_digests(mut self, input: Digest, output: Digest) -> Self {
        self.input = input;
        self.output = output;
        self
    }

    /// States when the operation started.
    #[must_use]
    pub const fn started_at(mut self, started_at: UnixTime) -> Self {
        self.started_at = started_at;
        self
    }

    /// Adds a short fact.
    #[must_use]
    pub fn with_metadata(mut self, name: &str, value: &str) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// The finished receipt.
    ///
    /// # Errors
    ///
    /// As [`check`], if a member is out of its bounds.
    pub fn finish(self) -> Result<Record, Refusal> {
        finalize(self.contents()).map(|(record, _)| record)
    }

    /// The members that a receipt store completes: canonical JSON without `id` and `integrity`.
    ///
    /// # Errors
    ///
    /// As [`Draft::finish`].
    pub fn members(self) -> Result<Vec<u8>, Refusal> {
        let contents = self.contents();
        let bytes = canonical::to_text(&contents).into_bytes();
        finalize(contents)?;
        Ok(bytes)
    }

    fn contents(self) -> Value {
        let [request, decision, bundle] = self.references;
        let mut contents = json!({
            "spec_version": SPEC_VERSION,
            "type": "receipt",
            "created_at": self.now.to_string(),
            "issuer": {"id": self.issuer},
            "operation": self.operation,
            "actor": self.actor,
            "subject_ref": self.subject,
            "request_ref": request,
            "decision_ref": decision,
            "bundle_ref": bundle,
            "started_at": self.started_at.to_string(),
            "completed_at": self.now.max(self.started_at).to_string(),
            "outcome": self.outcome.as_str(),
            "policy_snapshot": self.policy_snapshot.map(|digest| digest.to_string()),
            "input_digest": self.input.to_string(),
            "output_digest": self.output.to_string(),
            "payload_included": false,
            "user_summary": self.user_summary,
            "metadata": self.metadata,
        });
        if let (Some(receipt), Some(members)) = (self.supersedes, contents.as_object_mut()) {
            members.insert("supersedes_ref".to_owned(), receipt.into());
        }
        contents
    }
}

/// Adds the members that follow from the others, and checks the whole receipt.
///
/// # Errors
///
/// Those of [`record::finalize`] and, but for the computed members, of [`check`].
pub fn finalize(members: Value) -> Result<(Record, Receipt), Refusal> {
    let record = record::finalize(members, ReceiptId::PREFIX)?;
    let receipt = check_contents(record.value(), record.text())?;
    Ok((record, receipt))
}

/// Checks a receipt: its record, its closed schema and size, its times, and that it carries no
/// secret.
///
/// # Errors
///
/// [`Code::InvalidRecordIntegrity`], [`Code::RecordIntegrityMismatch`], [`Code::InvalidDateTime`],
/// [`Code::InvalidDigest`], [`Code::ReceiptPayloadForbidden`], [`Code::InvalidReceipt`],
/// [`Code::InvalidReceiptTimeRange`], [`Code::ReceiptContainsForbiddenMaterial`].
pub fn check(value: &Value) -> Result<Receipt, Refusal> {
    let (_, text) = record::verify_text(value, ReceiptId::PREFIX)?;
    check_contents(value, &text)
}

fn check_contents(value: &Value, text: &str) -> Result<Receipt, Refusal> {
    let receipt = Receipt::from_json(value).map_err(refuse)?;
    if text.len() > MAX_RECEIPT_BYTES {
        return Err(Code::InvalidReceipt.into());
    }
    if receipt.completed_at.instant() < receipt.started_at.instant() {
        return Err(Code::InvalidReceiptTimeRange.into());
    }
    if contains_forbidden_material(value) {
        return Err(Code::ReceiptContainsForbiddenMaterial.into());
    }
    Ok(receipt)
}

fn refuse(mismatch: Mismatch) -> Refusal {
    let expected = mismatch.expected();
    let code = if expected == Expected::DateTime {
        Code::InvalidDateTime
    } else if expected == Expected::Digest {
        Code::InvalidDigest
    } else if mismatch.place().is_member("payload_included") {
        Code::ReceiptPayloadForbidden
    } else {
        Code::InvalidReceipt
    };
    mismatch.refuse(code)
}

/// What two successful consume receipts must not share: one actor opens one bundle once.
pub fn consumption(receipt: &Receipt) -> Option<(String, String)> {
    let is_consumption =
        receipt.operation.as_str() == BUNDLE_CONSUME && receipt.outcome == Outcome::Success;
    let bundle = receipt.bundle_ref.get().filter(|_| is_consumption)?;
    Some((
        receipt.actor.as_str().to_owned(),
        bundle.as_str().to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft<'static> {
        Draft::new(
            "synthetic.operation_one",
            "urn:agent:synthetic-receipt-vector",
            "urn:cl:alias:synthetic-receipt-vector",
            Outcome::Success,
            "Synthetic test-only receipt vector.",
            UnixTime::parse("2030-01-01T12:00:00Z").expect("a time"),
        )
    }

    fn changed(change: impl FnOnce(&mut Map<String, Value>)) -> Option<Code> {
        let mut value = draft().finish().expect("a receipt").into_value();
        let object = value.as_object_mut().expect("an object");
        object.remove("id");
        object.remove("integrity");
        change(object);
        let record = record::finalize(value, ReceiptId::PREFIX).expect("a record");
        check(record.value()).err().map(|refusal| refusal.code())
    }

    #[test]
    fn members_lack_only_what_follows_from_them() {
        let named = || {
            draft()
                .issued_by("urn:cl:writer:synthetic")
                .about_decision("urn:cl:request:a", "urn:cl:decision:b")
        };
        let members = named().members().expect("members");
        let value: Value = serde_json::from_slice(&members).expect("JSON");
        assert_eq!(canonical::to_text(&value).into_bytes(), members);
        let record = record::finalize(value, ReceiptId::PREFIX).expect("a record");
        let finished = named().finish().expect("a receipt");
        assert_eq!(record.text(), finished.text());
        assert_eq!(record.value()["issuer"]["id"], "urn:cl:writer:synthetic");
        assert_eq!(record.value()["bundle_ref"], Value::Null);
        let summary = "x".repeat(501);
        let mut long = draft();
        long.user_summary = &summary;
        assert!(long.members().is_err());
    }

    #[test]
    fn has_the_profiles_bytes() {
        let receipt = draft().finish().expect("a receipt");
        assert_eq!(
            receipt.digest().to_string(),
            "sha256:fd85bdfb0d60e63f38321538b3a8b478a9970ef1806ed50869d319e5455e7222"
        );
    }

    #[test]
    fn refuses_each_kind_with_its_code() {
        type Change = fn(&mut Map<String, Value>);
        let cases: &[(Code, Change)] = &[
            (Code::InvalidDateTime, |it| it["started_at"] = json!("2030")),
            (Code::InvalidReceiptTimeRange, |it| {
                it["started_at"] = json!("2031-01-01T00:00:00Z");
            }),
            (Code::InvalidDigest, |it| {
                it["input_digest"] = json!("sha256:00")
            }),
            (Code::ReceiptPayloadForbidden, |it| {
                it["payload_included"] = json!(true)
            }),
            (Code::InvalidReceipt, |it| it["user_summary"] = json!("")),
            (Code::InvalidReceipt, |it| {
                it["metadata"] = json!({"a": {"b": "c"}})
            }),
            (Code::InvalidReceipt, |it| {
                it["metadata"] = json!({"a": "x".repeat(513)})
            }),
            (Code::InvalidReceipt, |it| {
                let members = (0..17).map(|index| (format!("m{index}"), json!("x")));
                it["metadata"] = Value::Object(members.collect());
            }),
            (Code::InvalidReceipt, |it| {
                it["issuer"] = json!({"id": "urn:x", "extra": 1})
            }),
            (Code::InvalidReceipt, |it| {
                it.insert("authorization".to_owned(), json!("x"));
            }),
            (Code::ReceiptContainsForbiddenMaterial, |it| {
                it["metadata"] = json!({"api_key": "x"});
            }),
            (Code::ReceiptContainsForbiddenMaterial, |it| {
                it["user_summary"] = json!("read vault://objects/1");
            }),
        ];
        assert_eq!(changed(|_| ()), None);
        for (code, change) in cases {
            assert_eq!(changed(change), Some(*code));
        }
    }

    #[test]
    fn only_successful_consumption_excludes_another() {
        let consume = |outcome| {
            let draft = Draft::new(
                BUNDLE_CONSUME,
                "urn:a:1",
                "urn:cl:alias:s",
                outcome,
                "x",
                draft().now,
            )
            .about("urn:cl:request:r", "urn:cl:decision:d", "urn:cl:bundle:b");
            consumption(&check(draft.finish().expect("a receipt").value()).expect("checked"))
        };
        let key = ("urn:a:1".to_owned(), "urn:cl:bundle:b".to_owned());
        assert_eq!(consume(Outcome::Success), Some(key));
        assert_eq!(consume(Outcome::Failure), None);
    }
}
