//! Verifying a decision: what hashes and bindings catch, and what only a signature can.

use cl_model::policy::{ListPolicy, VerifiedDecision};
use cl_model::refusal::Code;
use cl_model::urn::DecisionId;
use serde_json::{Value, json};

use crate::fixture::{Case, policy, refused, rehashed, remove};

type Change = fn(&mut Value);

fn verify(decision: &Value) -> Option<Code> {
    refused(VerifiedDecision::verify(
        decision,
        &Case::new().typed_request(),
    ))
}

#[test]
fn refuses_a_record_that_does_not_hold() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidObject, |it| *it = json!([])),
        (Code::InvalidRecordIntegrity, |it| remove(it, "integrity")),
        (Code::InvalidRecordIntegrity, |it| {
            it["integrity"]["algorithm"] = json!("sha-512")
        }),
        (Code::RecordIntegrityMismatch, |it| remove(it, "id")),
        (Code::RecordIntegrityMismatch, |it| {
            it["decision"] = json!("deny")
        }),
        (Code::RecordIntegrityMismatch, |it| {
            it["granted_actions"] = json!(["letter.draft", "letter.burn"]);
        }),
        (Code::RecordIntegrityMismatch, |it| it["surplus"] = json!(1)),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let mut decision = Case::new().decision();
        assert_eq!(verify(&decision), None);
        change(&mut decision);
        assert_eq!(verify(&decision), Some(*code), "row {index}");
    }
}

#[test]
fn refuses_rehashed_decisions_that_break_schema_or_binding() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidPolicyDecision, |it| it["surplus"] = json!(1)),
        (Code::InvalidPolicyDecision, |it| {
            it["type"] = json!("receipt")
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["decision"] = json!("deny")
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["retention"]["max_seconds"] = json!(0)
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["retention"]["max_seconds"] = json!(86_401)
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["granted_actions"] = json!(["a.b", "a.b"])
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["granted_selectors"] = json!([{"predicate": "*"}]);
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["reason_codes"] = json!([])
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["transform_requirements"] = json!(["hide:a"])
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["expires_at"] = json!("2031")
        }),
        (Code::InvalidPolicyDecision, |it| {
            it["request_digest"] = Value::Null
        }),
        (Code::DecisionRequestMismatch, |it| {
            remove(it, "request_digest")
        }),
        (Code::DecisionRequestMismatch, |it| {
            it["request_digest"] = it["policy_snapshot"]["digest"].clone();
        }),
        (Code::DecisionRequestMismatch, |it| {
            it["request_ref"] = json!("urn:cl:request:trip-reply-8");
        }),
    ];
    let decision = Case::new().decision();
    for (index, (code, change)) in rows.iter().enumerate() {
        assert_eq!(verify(&decision), None);
        let forged = rehashed(&decision, DecisionId::PREFIX, change);
        assert_eq!(verify(&forged), Some(*code), "row {index}");
    }
}

#[test]
fn refuses_the_decision_of_another_request() {
    let other = Case::new().with(|it| it.request["purpose"] = json!("Answer another letter."));
    let other_request = other.typed_request();
    let decision = Case::new().decision();
    assert_eq!(
        refused(VerifiedDecision::verify(&other.decision(), &other_request)),
        None
    );
    assert_eq!(
        refused(VerifiedDecision::verify(&decision, &other_request)),
        Some(Code::DecisionRequestMismatch)
    );
}

/// Digests identify a decision and do not authenticate it. More scope under the right digests is
/// found out by the signature over the grant (see `grant`) or over the bundle (see `envelope`).
#[test]
fn rehashed_scope_verifies_and_is_another_decision() {
    let decision = Case::new().decision();
    let forged = rehashed(&decision, DecisionId::PREFIX, |it| {
        it["granted_actions"] = json!(["letter.draft", "letter.burn"]);
    });
    assert_eq!(verify(&forged), None);
    assert_ne!(forged["id"], decision["id"]);
}

#[test]
fn refuses_the_policy_that_was_not_evaluated() {
    let verified = Case::new().verified();
    let evaluated = ListPolicy::read(&policy()).expect("a policy");
    assert_eq!(refused(verified.check_policy(&evaluated)), None);
    let changes: &[Change] = &[
        |it| it["version"] = json!("journeys-4"),
        |it| it["note"] = json!("covered by the digest"),
    ];
    for change in changes {
        let mut other = policy();
        change(&mut other);
        let other = ListPolicy::read(&other).expect("a policy");
        assert_eq!(
            refused(verified.check_policy(&other)),
            Some(Code::DecisionPolicyMismatch)
        );
    }
}

#[test]
fn a_denial_that_repeats_a_wildcard_is_evidence_only() {
    let case = Case::new().with(|it| it.request["selectors"] = json!([{"predicate": "*"}]));
    let denied = case.decision();
    assert_eq!(denied["denied_selectors"], json!([{"predicate": "*"}]));
    assert_eq!(verify(&denied), Some(Code::InvalidPolicyDecision));
}
