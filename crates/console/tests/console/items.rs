//! What the fake engine shows.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_wire::policy::v1 as wire;
use prost_types::Timestamp;
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "default";
pub(crate) const PERSON: &str = "urn:example:person:ada";
pub(crate) const SUBJECT: &str = "urn:example:person:ada-canary-subject";
pub(crate) const REQUESTER: &str = "spiffe://example.org/client/default/agent";
pub(crate) const TAG: &str = "dGFnLW9mLWFkYS1jYW5hcnktdGFnLW9mLWFkYS1jYW4";
/// Untrusted text with everything that a page must not take for its own.
pub(crate) const PURPOSE: &str =
    "Reply to \u{202e}<script>alert(1)</script> \"canary-purpose\" & go.";

/// Seconds after 2030-06-01T08:00:05Z.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp {
        seconds: crate::world::NOW_S + seconds,
        nanos: 0,
    }
}

fn digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

fn selector(
    predicate: &str,
    label: &str,
    treatment: wire::ScopeTreatment,
) -> wire::ApprovalSelector {
    wire::ApprovalSelector {
        predicate: predicate.to_owned(),
        label: label.to_owned(),
        sensitive: matches!(label, "sensitive" | "restricted"),
        treatment: treatment.into(),
    }
}

fn action(
    name: &str,
    side_effect: wire::SideEffect,
    treatment: wire::ScopeTreatment,
) -> wire::ApprovalAction {
    wire::ApprovalAction {
        action: name.to_owned(),
        side_effect: side_effect.into(),
        treatment: treatment.into(),
    }
}

/// An ordinary item that waits.
pub(crate) fn item(name: &str) -> wire::ApprovalItem {
    use wire::ScopeTreatment::{Denied, Gated, Ordinary};

    wire::ApprovalItem {
        summary: Some(wire::PendingApproval {
            approval_ref: format!("urn:cl:approval:{name}"),
            subject: SUBJECT.to_owned(),
            requester: REQUESTER.to_owned(),
            recipient: "spiffe://example.org/client/default/assistant".to_owned(),
            purpose_code: "draft.response".to_owned(),
            created_at: Some(at(-60)),
            expires_at: Some(at(3540)),
        }),
        state: wire::ApprovalState::Pending.into(),
        item_digest: digest(name),
        request_digest: digest("request"),
        request_ref: format!("urn:cl:request:{name}"),
        client_instance: "spiffe://example.org/client/default/agent".to_owned(),
        authenticated_by: wire::AuthenticationMethod::Mtls.into(),
        purpose: PURPOSE.to_owned(),
        task_kind: "reply_to_message".to_owned(),
        selectors: vec![
            selector("requested_delivery_date", "private", Ordinary),
            selector("amount_due", "sensitive", Gated),
            selector("requesting_stakeholder", "private", Gated),
            selector("bank_account", "restricted", Denied),
        ],
        actions: vec![
            action("email.create_draft", wire::SideEffect::None, Ordinary),
            action("email.send", wire::SideEffect::External, Gated),
        ],
        retention_mode: "ephemeral".to_owned(),
        retention_seconds: 900,
        onward_disclosure: "forbidden".to_owned(),
        access_ends_at: Some(at(900)),
        policy_version: "home/7".to_owned(),
        policy_digest: digest("policy"),
        policy_changed: false,
        reason_codes: vec!["APPROVAL_REQUIRED".to_owned()],
        receipt_level: "operation".to_owned(),
        evidence_operations: vec!["policy.approve".to_owned(), "policy.decide".to_owned()],
    }
}

/// An ordinary decision whose grant is active.
pub(crate) fn decision(name: &str) -> wire::DecisionSummary {
    wire::DecisionSummary {
        decision_ref: format!("urn:cl:decision:{name}"),
        subject: SUBJECT.to_owned(),
        requester: REQUESTER.to_owned(),
        recipient: "spiffe://example.org/client/default/assistant".to_owned(),
        purpose_code: "draft.response".to_owned(),
        decided_at: Some(at(-30)),
        expires_at: Some(at(600)),
        decision: "allow_with_reductions".to_owned(),
        state: wire::RequestState::Issued.into(),
        granted_selectors: vec!["requested_delivery_date".to_owned()],
        granted_actions: vec!["email.create_draft".to_owned()],
        active_grant: true,
        approval_ref: Some("urn:cl:approval:done".to_owned()),
        bundle_ref: Some("urn:cl:bundle:b1".to_owned()),
        denied_selectors: vec!["amount_due".to_owned()],
        denied_actions: vec!["email.send".to_owned()],
        reason_codes: vec!["SCOPE_REDUCED".to_owned(), "SELECTORS_WITHHELD".to_owned()],
    }
}

/// What an answer comes to.
pub(crate) fn decided(answer: &wire::BeginAnswerRequest) -> wire::RequestStatus {
    let grants = !answer.granted_selectors.is_empty() || !answer.granted_actions.is_empty();
    let predicates = |names: &[String]| -> Vec<Value> {
        names
            .iter()
            .map(|name| json!({"predicate": name}))
            .collect()
    };
    let document = json!({
        "spec_version": "context-layer/0.2-draft", "type": "policy_decision",
        "id": "urn:cl:decision:d1", "created_at": "2030-06-01T08:00:05Z",
        "issuer": {"id": "urn:example:policy"}, "request_ref": "urn:cl:request:r1",
        "decision": if grants { "allow_with_reductions" } else { "deny" },
        "policy_snapshot": {"version": "home/7", "digest": digest("policy")},
        "granted_selectors": predicates(&answer.granted_selectors),
        "denied_selectors": predicates(&answer.declined_selectors),
        "granted_actions": answer.granted_actions, "denied_actions": answer.declined_actions,
        "transform_requirements": [],
        "retention": {"mode": "ephemeral", "max_seconds": if grants { 900 } else { 0 }},
        "onward_disclosure": "forbidden",
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2030-06-01T08:15:05Z",
        "reason_codes": [if grants { "SCOPE_REDUCED" } else { "NO_SELECTOR_GRANTED" }],
    });
    wire::RequestStatus {
        request_ref: "urn:cl:request:r1".to_owned(),
        state: if grants {
            wire::RequestState::Issued
        } else {
            wire::RequestState::Decided
        }
        .into(),
        decision: canonical::to_text(&document).into_bytes(),
        bundle_ref: grants.then(|| "urn:cl:bundle:b1".to_owned()),
        ..wire::RequestStatus::default()
    }
}
