//! What the target of Cedar policies does with one input; the ordinary tests of the policies replay
//! its corpus.

#![allow(clippy::expect_used, reason = "a broken promise must panic here")]

use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, Preflight, PresentedApproval, Treatment, VerifierOutcome,
};
use cl_model::time::UnixTime;
use cl_policy_cedar::CompiledSnapshot;
use serde_json::{Value, json};

/// Never a panic. A policy that is accepted decides, each time alike, and opens nothing that another
/// one forbids.
pub(crate) fn cedar_policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let policies = json!({"read": text});
    let Ok(snapshot) = CompiledSnapshot::read(&document(&policies)) else {
        return;
    };
    let treated = treat(&snapshot);
    assert_eq!(treated, treat(&snapshot), "a decision is a function");
    let forbidden = json!({"read": text, "none": "forbid (principal, action, resource);"});
    let forbidden = CompiledSnapshot::read(&document(&forbidden)).expect("one more policy");
    for treatment in treat(&forbidden) {
        assert!(treatment.ordinary.is_empty() && treatment.gated.is_empty());
    }
}

fn document(policies: &Value) -> Value {
    json!({
        "snapshot_version": 1,
        "version": "v1",
        "cedar": {
            "policies": policies,
            "entities": [{
                "uid": {"type": "Agent", "id": "urn:agent:a"},
                "attrs": {}, "parents": [{"type": "Group", "id": "agents"}],
                "tags": {"team": ["red"]},
            }],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 3600},
            "allowed_onward_disclosure": ["forbidden"],
        },
        "predicates": {
            "city": {"datatype": "text", "label": "public"},
            "budget": {"datatype": "text", "label": "sensitive"},
        },
        "resolve": {},
        "clients": [{"client_instance": "urn:device:d", "principals": ["urn:agent:a"]}],
        "approvers": [],
        "limits": {},
        "expires_at": null,
    })
}

fn treat(snapshot: &CompiledSnapshot) -> [Treatment; 2] {
    let request = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": "urn:cl:request:r",
        "created_at": "2027-03-01T09:00:00Z",
        "issuer": {"id": "urn:agent:a"},
        "subject_ref": "vault://subjects/s",
        "requester": {
            "principal": "urn:agent:a", "authenticated_by": "oauth2",
            "client_instance": "urn:device:d",
        },
        "recipient": {"principal": "urn:model:m", "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "city"}, {"predicate": "budget"}],
        "requested_actions": ["draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2027-03-01T09:10:00Z",
    });
    let asked = Asked::read(&request).expect("a request");
    let (selectors, actions) = Evaluation {
        request: &asked,
        policy: snapshot.policy(),
        approval: &PresentedApproval::read(&Value::Null, ApprovalRule::GrantOrDecline),
        approval_rule: ApprovalRule::GrantOrDecline,
        verifier: VerifierOutcome::Absent,
        preflight: Preflight::Available,
        now: UnixTime::parse("2027-03-01T09:00:00Z").expect("a time"),
    }
    .treatments();
    [selectors, actions]
}
