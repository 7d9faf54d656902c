//! Snapshot, requests and receipts, a fresh one for each number.

use std::sync::LazyLock;

use cl_host::clock::{Clock, SystemClock};
use cl_model::canonical;
use cl_model::time::UnixTime;
use cl_wire::policy::v1::{
    Assurance, AuthenticatedFacts, AuthenticationMethod, SubmitRequestRequest,
};
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::{AppendRequest, Routing};
use serde_json::{Value, json};

use crate::deployment::{ENGINE, id};

pub(crate) const TENANT: &str = "acme";
const AGENT: &str = "urn:agent:reply-drafter";
const DEVICE: &str = "urn:device:workstation";
const SUBJECT: &str = "vault://subjects/primary";
const TAG: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

pub(crate) fn now() -> UnixTime {
    UnixTime::from_milliseconds(SystemClock.now_unix_ms())
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
}

/// An operation id made when this process first asked for one, different for each number.
pub(crate) fn operation(number: u64) -> String {
    static MADE_AT: LazyLock<String> = LazyLock::new(|| format!("{:012x}", now().milliseconds()));
    let (high, low) = MADE_AT.split_at(8);
    format!("urn:cl:operation:{high}-{low}-7000-8000-{number:012x}")
}

/// A receipt of a decision, as the policy engine sends it.
pub(crate) fn append(number: u64) -> AppendRequest {
    let nothing = cl_model::digest::Digest::of_json(&Value::Null).to_string();
    let members = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "receipt",
        "created_at": "2030-03-17T17:46:40.000Z",
        "issuer": {"id": id(ENGINE)},
        "operation": "policy.decide",
        "actor": id(ENGINE),
        "subject_ref": "urn:cl:alias:subject",
        "request_ref": format!("urn:cl:request:{number}"),
        "decision_ref": null,
        "bundle_ref": null,
        "started_at": "2030-03-17T17:46:40.000Z",
        "completed_at": "2030-03-17T17:46:40.000Z",
        "outcome": "success",
        "policy_snapshot": nothing,
        "input_digest": nothing,
        "output_digest": nothing,
        "payload_included": false,
        "user_summary": "A context request was decided.",
        "metadata": {"operation_id": operation(number), "decision": "allow"},
    });
    AppendRequest {
        routing: Some(Routing {
            tenant: TENANT.to_owned(),
            operation_id: operation(number),
            subject_tag: Some(TAG.to_owned()),
        }),
        body: Some(Body::Members(bytes(&members))),
    }
}

/// Allows what [`submission`] asks for.
pub(crate) fn snapshot() -> Value {
    json!({
        "snapshot_version": 1,
        "version": "bench/1",
        "policy": {
            "allowed_subjects": [SUBJECT],
            "allowed_requesters": [AGENT],
            "allowed_clients": [DEVICE],
            "allowed_recipients": ["urn:model:drafting"],
            "allowed_purpose_codes": ["draft.response"],
            "allowed_tasks": ["draft_only"],
            "allowed_selectors": ["delivery_date", "timeline"],
            "approval_required_selectors": ["stakeholder"],
            "allowed_actions": ["email.create_draft"],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 86400},
            "require_receipts": true,
        },
        "predicates": {
            "delivery_date": {"datatype": "date", "label": "private"},
            "timeline": {"datatype": "text", "label": "internal"},
            "stakeholder": {"datatype": "text"},
        },
        "resolve": {},
        "clients": [{"client_instance": DEVICE, "principals": [AGENT]}],
        "approvers": [],
        "limits": {},
        "expires_at": null,
    })
}

/// Asks for two facts and a draft.
pub(crate) fn submission(number: u64, now: UnixTime) -> SubmitRequestRequest {
    let request = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": format!("urn:cl:request:bench-{number}"),
        "created_at": now.to_string(),
        "issuer": {"id": AGENT},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": AGENT, "authenticated_by": "oauth2", "client_instance": DEVICE,
        },
        "recipient": {"principal": "urn:model:drafting", "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "delivery_date"}, {"predicate": "timeline"}],
        "requested_actions": ["email.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": now.plus_seconds(3600).to_string(),
    });
    SubmitRequestRequest {
        tenant: TENANT.to_owned(),
        request: bytes(&request),
        facts: Some(AuthenticatedFacts {
            principal: AGENT.to_owned(),
            client_instance: DEVICE.to_owned(),
            method: AuthenticationMethod::Oauth2.into(),
            assurance: Assurance::Substantial.into(),
            bound_key: None,
        }),
        operation_id: operation(number),
    }
}
