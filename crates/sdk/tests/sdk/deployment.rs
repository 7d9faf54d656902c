//! Keys, documents and certificates of a small deployment.

use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::delivery::Delivery;
use cl_model::digest::Digest;
use cl_model::document::{Document, sign};
use cl_model::grant::ScopeStatement;
use cl_model::issue::Issuance;
use cl_model::key::{Seed, SigningKey};
use cl_model::notes::{DisclosureNotes, item_digest};
use cl_model::object::{ContextRequest, ProtocolObject, ScopedContextBundle};
use cl_model::part::Issuer;
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifiedDecision,
    VerifierOutcome,
};
use cl_model::record;
use cl_model::scalar::KeyId;
use cl_model::time::UnixTime;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

pub(crate) const RECIPIENT: &str = "urn:model:drafting";
pub(crate) const CANARY: &str = "Halcyon-canary";
pub(crate) const TOKEN: &str = "token-canary";

const AGENT: &str = "urn:agent:drafter";

pub(crate) fn at(text: &str) -> UnixTime {
    UnixTime::parse(text).unwrap()
}

pub(crate) fn issued_at() -> UnixTime {
    at("2031-05-04T09:30:00Z")
}

fn key(purpose: &str) -> SigningKey {
    let kid = KeyId::new(format!("urn:cl:key:{purpose}:1")).unwrap();
    let seed = Digest::of_bytes(purpose.as_bytes());
    SigningKey::from_seed(kid, &Seed::new(seed.as_bytes()).unwrap()).unwrap()
}

/// The trust file of the deployment.
pub(crate) fn trust_file() -> Vec<u8> {
    let keys = ["bundle", "decision", "notes"].map(|purpose| {
        let key = key(purpose);
        json!({
            "kid": key.kid().as_str(),
            "purpose": purpose,
            "alg": "Ed25519",
            "x": BASE64URL_NOPAD.encode(key.public_key().as_bytes()),
            "not_before": null,
            "not_after": null,
            "revoked": false,
        })
    });
    json!({"keys": keys}).to_string().into_bytes()
}

fn request() -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": "urn:cl:request:sdk-1",
        "created_at": "2031-05-04T09:29:58Z",
        "issuer": {"id": AGENT},
        "subject_ref": "vault://subjects/primary",
        "requester": {
            "principal": AGENT,
            "authenticated_by": "oauth2",
            "client_instance": "urn:device:one",
        },
        "recipient": {"principal": RECIPIENT, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "project.name"}, {"predicate": "project.owner"}],
        "requested_actions": ["email.create_draft", "memory.propose"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2031-05-04T10:00:00Z",
    })
}

fn policy() -> Value {
    json!({
        "version": "sdk-1",
        "issuer": {"id": "urn:cl:policy-engine:test"},
        "allowed_subjects": ["vault://subjects/primary"],
        "allowed_requesters": [AGENT],
        "allowed_clients": ["urn:device:one"],
        "allowed_recipients": [RECIPIENT],
        "allowed_purpose_codes": ["draft.response"],
        "allowed_tasks": ["draft_only"],
        "allowed_selectors": ["project.name", "project.owner"],
        "allowed_actions": ["email.create_draft", "memory.propose"],
        "maximum_retention": {"mode": "ephemeral", "max_seconds": 600},
        "decision_ttl_seconds": 300,
        "bundle_instructions": ["Draft only."],
    })
}

fn decision(request: &Value) -> Value {
    Evaluation {
        request: &Asked::read(request).unwrap(),
        policy: &ListPolicy::read(&policy()).unwrap(),
        approval: &PresentedApproval::read(&Value::Null, ApprovalRule::AllOrNothing),
        approval_rule: ApprovalRule::AllOrNothing,
        verifier: VerifierOutcome::Authenticated,
        preflight: Preflight::Available,
        now: issued_at(),
    }
    .evaluate()
    .unwrap()
    .into_value()
}

/// What the issuer hands to the recipient.
pub(crate) fn delivery() -> Delivery {
    delivery_with(|_| ())
}

/// The same by an issuer that changes the bundle before it signs it.
pub(crate) fn delivery_with(change: impl FnOnce(&mut Value)) -> Delivery {
    let request = request();
    let typed = ContextRequest::read(&request).unwrap();
    let decision = decision(&request);
    let verified = VerifiedDecision::verify(&decision, &typed).unwrap();
    let claim = |predicate: &str, text: &str, value: &str| {
        json!({"claim": text, "predicate": predicate, "value": value, "confidence": 0.9,
               "provenance_refs": ["urn:cl:event:1"]})
    };
    let pending = Issuance {
        request: &typed,
        decision: &verified,
        claims: &[
            claim("project.name", &format!("It is called {CANARY}."), CANARY),
            claim("project.owner", "Ada owns it.", "Ada"),
        ],
        issuer: &Issuer::new("urn:cl:bundle-issuer:test").unwrap(),
        aliases: &AliasScheme::Parity,
        key: &key("bundle"),
        preflight: Preflight::Available,
        now: issued_at(),
        latest_end: None,
    };
    let (envelope, _) = pending.issue().unwrap().release(true).unwrap();
    let bundle: Value = serde_json::from_str::<Value>(&envelope).unwrap()["bundle"].take();
    let bundle = resigned(bundle, change);
    let typed = ScopedContextBundle::read(&bundle["bundle"]).unwrap();
    Delivery {
        envelope: canonical::to_text(&bundle).into_bytes(),
        scope: signed::<ScopeStatement>("decision", &scope(&decision)),
        notes: signed::<DisclosureNotes>("notes", &notes(&typed)),
    }
}

fn resigned(mut bundle: Value, change: impl FnOnce(&mut Value)) -> Value {
    let members = bundle.as_object_mut().unwrap();
    members.remove("id");
    members.remove("integrity");
    change(&mut bundle);
    let record = record::finalize(bundle, "urn:cl:bundle:").unwrap();
    let key = key("bundle");
    json!({
        "envelope_version": 1,
        "bundle": record.value(),
        "authentication": {
            "algorithm": "Ed25519",
            "kid": key.kid().as_str(),
            "sig": key.sign(record.text().as_bytes()).to_base64url(),
        },
    })
}

fn scope(decision: &Value) -> Value {
    json!({
        "scope_version": 1,
        "decision_id": decision["id"],
        "decision_digest": decision["integrity"]["digest"],
        "request_digest": decision["request_digest"],
        "recipient": RECIPIENT,
        "recipient_key_id": null,
        "purpose_code": "draft.response",
        "task": {"kind": "draft_only", "user_visible": true},
        "granted_predicates": ["project.name", "project.owner"],
        "granted_actions": ["email.create_draft", "memory.propose"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "onward_disclosure": "forbidden",
        "not_before": "2031-05-04T09:30:00.000Z",
        "expires_at": "2031-05-04T09:35:00.000Z",
        "kid": key("decision").kid().as_str(),
    })
}

/// Notes on the first item only.
fn notes(bundle: &ScopedContextBundle) -> Value {
    json!({
        "notes_version": 1,
        "bundle_digest": bundle.integrity.as_ref().unwrap().digest.to_string(),
        "items": [{
            "item": item_digest(bundle.context.first().unwrap()).to_string(),
            "status": "derived",
            "trust": "verified",
            "validity": {"from": null, "expires_at": null},
            "transforms": [{"transform": "truncate", "confidence": 1}],
        }],
        "kid": key("notes").kid().as_str(),
    })
}

fn signed<D: Document>(purpose: &str, value: &Value) -> cl_model::document::Signed {
    sign(&D::from_json(value).unwrap(), &key(purpose)).unwrap()
}

/// The URN of a delivery's bundle.
pub(crate) fn bundle_ref(delivery: &Delivery) -> String {
    let envelope: Value = serde_json::from_slice(&delivery.envelope).unwrap();
    envelope["bundle"]["id"].as_str().unwrap().to_owned()
}
