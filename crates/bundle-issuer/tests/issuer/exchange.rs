//! A request, its decision and the grant of it, as the policy engine makes them. Tests change one
//! thing about it.

use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::document::{Document, Signed, sign};
use cl_model::grant::{ResolvePlan, ScopeStatement};
use cl_model::key::{MacKey, Seed, SigningKey};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifierOutcome,
};
use cl_model::scalar::{Handle, KeyId};
use cl_model::time::UnixTime;
use cl_model::urn::RequestId;
use cl_wire::grant::SignedGrant;
use cl_wire::policy::v1::Grant;
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "acme";
pub(crate) const AGENT: &str = "urn:agent:reply-drafter";
pub(crate) const RECIPIENT: &str = "urn:model:drafting";
pub(crate) const SUBJECT: &str = "vault://subjects/primary";
pub(crate) const DATE: &str = "requested_delivery_date";
pub(crate) const PERSON: &str = "requesting_stakeholder";
pub(crate) const AMOUNT: &str = "amount_due";
pub(crate) const DECISION_KID: &str = "urn:cl:key:decision:test";

/// 2030-01-01T12:00:00Z.
pub(crate) const NOW_MS: i64 = 1_893_499_200_000;

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
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

pub(crate) fn signing_key(kid: &str, byte: u8) -> SigningKey {
    SigningKey::from_seed(KeyId::new(kid).unwrap(), &Seed::new(&[byte; 32]).unwrap()).unwrap()
}

pub(crate) fn decision_key() -> SigningKey {
    signing_key(DECISION_KID, 1)
}

/// The file of trusted keys, with the decision key alone.
pub(crate) fn trust_json() -> String {
    let x = data_encoding::BASE64URL_NOPAD.encode(decision_key().public_key().as_bytes());
    json!({"keys": [{
        "kid": DECISION_KID, "purpose": "decision", "alg": "Ed25519", "x": x,
        "not_before": null, "not_after": null, "revoked": false,
    }]})
    .to_string()
}

fn policy() -> Value {
    json!({
        "version": "v1",
        "issuer": {"id": "urn:cl:policy-engine:test"},
        "allowed_subjects": [SUBJECT],
        "allowed_requesters": [AGENT],
        "allowed_clients": ["urn:device:workstation"],
        "allowed_recipients": [RECIPIENT],
        "allowed_purpose_codes": ["draft.response"],
        "allowed_tasks": ["draft_only"],
        "allowed_selectors": [AMOUNT, DATE, PERSON],
        "allowed_actions": ["email.create_draft"],
        "approval_required_selectors": [],
        "approval_required_actions": [],
        "maximum_retention": {"mode": "ephemeral", "max_seconds": 600},
        "decision_ttl_seconds": 300,
        "bundle_instructions": ["Use the context for this draft only."],
    })
}

fn request(tail: &str) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": format!("urn:cl:request:{tail}"),
        "created_at": "2030-01-01T11:59:59Z",
        "issuer": {"id": AGENT},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": AGENT,
            "authenticated_by": "oauth2",
            "client_instance": "urn:device:workstation",
        },
        "recipient": {"principal": RECIPIENT, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": AMOUNT}, {"predicate": DATE}, {"predicate": PERSON}],
        "requested_actions": ["email.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2030-01-01T12:10:00Z",
    })
}

fn rule(predicate: &str) -> Value {
    json!({
        "predicate": predicate,
        "max_label": "sensitive",
        "min_trust": "untrusted",
        "min_confidence": 0.5,
        "statuses": ["asserted", "derived", "disputed"],
        "transforms": [],
        "projections": [],
    })
}

/// One exchange, before anything is signed.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) request: Value,
    pub(crate) policy: Value,
    /// The rules of the plan.
    pub(crate) rules: Vec<Value>,
    pub(crate) decided_at_ms: i64,
}

impl Exchange {
    pub(crate) fn new(tail: &str) -> Self {
        Self {
            request: request(tail),
            policy: policy(),
            rules: [AMOUNT, DATE, PERSON].map(rule).to_vec(),
            decided_at_ms: NOW_MS,
        }
    }

    fn scheme() -> AliasScheme {
        AliasScheme::Keyed(MacKey::from_seed(&Seed::new(&[7; 32]).unwrap()))
    }

    fn id(&self) -> RequestId {
        RequestId::parse(self.request["id"].as_str().unwrap()).unwrap()
    }

    /// The handle that the vault gives a source in this exchange.
    pub(crate) fn handle(&self, source: &str) -> String {
        let provenance = Self::scheme().provenance(source, &self.id()).unwrap();
        let handle: Handle = provenance.handle();
        handle.as_str().to_owned()
    }

    pub(crate) fn alias(&self) -> String {
        let alias = Self::scheme().subject_alias(SUBJECT, &self.id(), RECIPIENT);
        alias.as_str().to_owned()
    }

    pub(crate) fn decision(&self) -> Value {
        let record = Evaluation {
            request: &Asked::read(&self.request).unwrap(),
            policy: &ListPolicy::read(&self.policy).unwrap(),
            approval: &PresentedApproval::None,
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier: VerifierOutcome::Absent,
            preflight: Preflight::Available,
            now: UnixTime::from_milliseconds(self.decided_at_ms),
        };
        record.evaluate().unwrap().into_value()
    }

    pub(crate) fn decision_id(&self) -> String {
        self.decision()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn statement(&self) -> Value {
        let decision = self.decision();
        json!({
            "scope_version": 1,
            "decision_id": decision["id"],
            "decision_digest": decision["integrity"]["digest"],
            "request_digest": decision["request_digest"],
            "recipient": RECIPIENT,
            "recipient_key_id": null,
            "purpose_code": "draft.response",
            "task": {"kind": "draft_only", "user_visible": true},
            "granted_predicates": [AMOUNT, DATE, PERSON],
            "granted_actions": ["email.create_draft"],
            "retention": {"mode": "ephemeral", "max_seconds": 600},
            "onward_disclosure": "forbidden",
            "not_before": "2030-01-01T12:00:00.000Z",
            "expires_at": "2030-01-01T12:05:00.000Z",
            "kid": DECISION_KID,
        })
    }

    pub(crate) fn plan(&self, statement: &Value) -> Value {
        json!({
            "plan_version": 1,
            "scope_digest": Digest::of_json(statement).to_string(),
            "tenant": TENANT,
            "subject_ref": SUBJECT,
            "subject_alias": self.alias(),
            "subject_tag": "t".repeat(43),
            "requester": AGENT,
            "client_instance": "urn:device:workstation",
            "decision": self.decision(),
            "rules": self.rules,
            "audiences": [
                "spiffe://example.org/exchange/cl-bundle-issuer",
                "spiffe://example.org/exchange/cl-semantic-proxy",
                "spiffe://example.org/vault/cl-vault",
            ],
            "kid": DECISION_KID,
        })
    }

    pub(crate) fn grant(&self) -> Grant {
        let statement = self.statement();
        grant_of(&statement, &self.plan(&statement), &decision_key())
    }

    /// The grants that hold for no service, each with the code that says why.
    pub(crate) fn bad_grants(&self, audience: &str) -> Vec<(&'static str, Grant)> {
        let key = decision_key();
        let restated = |change: &dyn Fn(&mut Value)| {
            let mut statement = self.statement();
            change(&mut statement);
            grant_of(&statement, &self.plan(&statement), &key)
        };
        let replanned = |change: &dyn Fn(&mut Value)| {
            let statement = self.statement();
            let mut plan = self.plan(&statement);
            change(&mut plan);
            grant_of(&statement, &plan, &key)
        };
        let unknown = "urn:cl:key:decision:unknown";
        let forged = signing_key(DECISION_KID, 99);
        let mut swapped = self.grant();
        let mut other = Self::new("another");
        other.policy = self.policy.clone();
        let others = other.grant();
        swapped.plan = others.plan;
        swapped.plan_signature = others.plan_signature;
        let mut crossed = self.grant();
        crossed.plan_signature = crossed.scope_signature.clone();
        let mut spaced = self.grant();
        spaced.plan.push(b' ');
        let statement = self.statement();
        let others_key = {
            let (mut scope, mut plan) = (statement.clone(), self.plan(&statement));
            scope["kid"] = json!(unknown);
            plan["kid"] = json!(unknown);
            plan["scope_digest"] = json!(Digest::of_json(&scope).to_string());
            grant_of(&scope, &plan, &signing_key(unknown, 1))
        };
        vec![
            ("UNTRUSTED_DOCUMENT_KEY", others_key),
            (
                "DOCUMENT_SIGNATURE_INVALID",
                grant_of(&statement, &self.plan(&statement), &forged),
            ),
            ("DOCUMENT_SIGNATURE_INVALID", crossed),
            ("INVALID_DOCUMENT", spaced),
            ("GRANT_MISMATCH", swapped),
            (
                "GRANT_MISMATCH",
                replanned(&|plan| plan["subject_ref"] = json!("vault://subjects/another")),
            ),
            (
                "GRANT_MISMATCH",
                replanned(&|plan| plan["requester"] = json!("urn:agent:another")),
            ),
            (
                "GRANT_MISMATCH",
                replanned(&|plan| {
                    plan["rules"].as_array_mut().unwrap().pop();
                }),
            ),
            (
                "GRANT_MISMATCH",
                restated(&|scope| scope["recipient"] = json!("urn:model:another")),
            ),
            (
                "GRANT_MISMATCH",
                restated(&|scope| {
                    scope["granted_actions"] = json!(["email.send"]);
                }),
            ),
            (
                "GRANT_AUDIENCE_MISMATCH",
                replanned(&|plan| {
                    let audiences = plan["audiences"].as_array_mut().unwrap();
                    audiences.retain(|it| it != audience);
                }),
            ),
            (
                "GRANT_NOT_YET_VALID",
                restated(&|scope| {
                    scope["not_before"] = json!("2030-01-01T12:00:01.000Z");
                }),
            ),
            (
                "GRANT_EXPIRED",
                restated(&|scope| {
                    scope["expires_at"] = json!("2030-01-01T12:00:00.000Z");
                }),
            ),
            (
                "TENANT_MISMATCH",
                replanned(&|plan| plan["tenant"] = json!("another")),
            ),
        ]
    }
}

pub(crate) fn grant_of(statement: &Value, plan: &Value, key: &SigningKey) -> Grant {
    SignedGrant {
        scope: signed::<ScopeStatement>(statement, key),
        plan: signed::<ResolvePlan>(plan, key),
    }
    .to_message()
}

fn signed<D: Document>(value: &Value, key: &SigningKey) -> Signed {
    sign(&D::from_json(value).unwrap(), key).unwrap()
}
