//! Request documents.

use cl_model::canonical;
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "acme";
pub(crate) const PRINCIPAL: &str = "urn:agent:scheduler";
pub(crate) const CLIENT: &str = "urn:device:desk-7";

pub(crate) fn canonical_bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
}

/// A request that fits its schema, of any principal.
pub(crate) fn request(tail: &str) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": format!("urn:cl:request:{tail}"),
        "created_at": "2030-06-01T08:00:00Z",
        "issuer": {"id": PRINCIPAL},
        "subject_ref": "vault://subjects/household",
        "requester": {
            "principal": PRINCIPAL, "authenticated_by": "oauth2", "client_instance": CLIENT,
        },
        "recipient": {"principal": "urn:model:planner", "onward_disclosure": "forbidden"},
        "purpose_code": "plan.task",
        "purpose": "plan a trip",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "travel_date"}],
        "requested_actions": ["calendar.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 300},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2030-06-01T08:10:00Z",
    })
}
