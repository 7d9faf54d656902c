//! Documents that callers send.

use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::time::UnixTime;
use cl_model::urn::ProposalId;
use cl_model::{canonical, record};
use serde_json::{Value, json};

use crate::support::NOW_S;

pub(crate) const TENANT: &str = "acme";
pub(crate) const PRINCIPAL: &str = "urn:agent:scheduler";
/// The subject, as the ordinary principal knows it.
pub(crate) const ALIAS: &str = "urn:cl:alias:a-1";
/// What a bundle here allows to be done.
pub(crate) const DRAFT: &str = "calendar.create_draft";
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

/// A finished receipt of `actor` about a bundle.
pub(crate) fn receipt(bundle: &str, operation: &str, actor: &str, summary: &str) -> Value {
    let now = UnixTime::from_milliseconds(NOW_S * 1000);
    Draft::new(operation, actor, ALIAS, Outcome::Success, summary, now)
        .about("urn:cl:request:r-1", "urn:cl:decision:d-1", bundle)
        .finish()
        .unwrap()
        .into_value()
}

/// A finished proposal of `submitter` about a subject.
pub(crate) fn proposal(subject: &str, submitter: &str, rationale: &str) -> Value {
    let unsigned = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "memory_update_proposal",
        "created_at": "2030-06-01T08:00:00.000Z",
        "issuer": {"id": submitter},
        "subject_ref": subject,
        "operation": "add_or_contradict",
        "proposed_claims": [{
            "predicate": "travel_date",
            "object": {"value": "2030-07-01", "datatype": "date"},
            "confidence": 0.5,
        }],
        "provenance_refs": ["urn:cl:provenance:p-1"],
        "rationale": rationale,
        "submitted_by": submitter,
        "status": "pending_validation",
        "approval_requirement": ["user_confirm"],
        "expires_at": "2030-06-08T08:00:00.000Z",
    });
    let record = record::finalize(unsigned, ProposalId::PREFIX).unwrap();
    record.into_value()
}
