//! Snapshots, requests and facts that belong together.

use cl_model::canonical;
use cl_wire::policy::v1::{
    Assurance, AuthenticatedFacts, AuthenticationMethod, SubmitRequestRequest,
};
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "acme";
pub(crate) const AGENT: &str = "urn:agent:reply-drafter";
pub(crate) const DEVICE: &str = "urn:device:workstation";
pub(crate) const SUBJECT: &str = "vault://subjects/primary";

/// 2030-01-01T12:00:00Z.
pub(crate) const NOW_MS: i64 = 1_893_499_200_000;

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
}

/// Allows delivery dates and drafts, gates stakeholders and sending.
pub(crate) fn snapshot(version: &str) -> Value {
    json!({
        "snapshot_version": 1,
        "version": version,
        "policy": {
            "issuer": {"id": "urn:cl:policy-engine:test"},
            "allowed_subjects": [SUBJECT],
            "allowed_requesters": [AGENT],
            "allowed_clients": [DEVICE],
            "allowed_authentication_methods": ["oauth2", "mtls"],
            "allowed_recipients": ["urn:model:drafting"],
            "allowed_purpose_codes": ["draft.response"],
            "allowed_tasks": ["draft_only"],
            "allowed_selectors": ["delivery_date", "timeline"],
            "approval_required_selectors": ["stakeholder"],
            "allowed_actions": ["email.create_draft"],
            "approval_required_actions": ["email.send"],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 86400},
            "decision_ttl_seconds": 300,
            "require_receipts": true,
        },
        "predicates": {
            "delivery_date": {"datatype": "date", "label": "private"},
            "timeline": {"datatype": "text", "label": "internal"},
            "stakeholder": {"datatype": "text"},
        },
        "resolve": {"timeline": {"projections": ["generalise"]}},
        "clients": [{"client_instance": DEVICE, "principals": [AGENT]}],
        "approvers": [{"principal": "urn:person:owner", "subjects": [SUBJECT]}],
        "limits": {},
        "expires_at": null,
    })
}

/// Asks for a delivery date and a draft.
pub(crate) fn request(tail: &str) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": format!("urn:cl:request:{tail}"),
        "created_at": "2030-01-01T11:59:59Z",
        "issuer": {"id": AGENT},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": AGENT, "authenticated_by": "oauth2", "client_instance": DEVICE,
        },
        "recipient": {"principal": "urn:model:drafting", "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "delivery_date"}],
        "requested_actions": ["email.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2030-01-01T12:10:00Z",
    })
}

/// As [`request`], and for a stakeholder, which needs an approval.
pub(crate) fn gated(tail: &str) -> Value {
    let mut request = request(tail);
    request["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "stakeholder"}]);
    request
}

pub(crate) fn facts() -> AuthenticatedFacts {
    AuthenticatedFacts {
        principal: AGENT.to_owned(),
        client_instance: DEVICE.to_owned(),
        method: AuthenticationMethod::Oauth2.into(),
        assurance: Assurance::Substantial.into(),
        bound_key: None,
    }
}

/// An operation id made at [`NOW_MS`], different for each number.
pub(crate) fn operation(number: u32) -> String {
    operation_made_at(NOW_MS, number)
}

/// An operation id made at a time.
pub(crate) fn operation_made_at(unix_ms: i64, number: u32) -> String {
    let time = format!("{unix_ms:012x}");
    let (high, low) = time.split_at(8);
    format!("urn:cl:operation:{high}-{low}-7000-8000-{number:012x}")
}

pub(crate) fn submission(request: &Value, number: u32) -> SubmitRequestRequest {
    SubmitRequestRequest {
        tenant: TENANT.to_owned(),
        request: bytes(request),
        facts: Some(facts()),
        operation_id: operation(number),
    }
}
