//! Events, requests, grants and proposals that belong together.

use cl_model::alias::{AliasScheme, Provenance, subject_tag};
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::document::{Document, Signed, sign};
use cl_model::grant::{ResolvePlan, ScopeStatement};
use cl_model::key::{MacKey, Seed, SigningKey};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifierOutcome,
};
use cl_model::record;
use cl_model::scalar::KeyId;
use cl_model::time::UnixTime;
use cl_model::urn::RequestId;
use cl_testbed::spiffe_id;
use cl_wire::policy::v1::Grant;
use cl_wire::vault::v1::captured_item::{Content, Payload};
use cl_wire::vault::v1::{
    CaptureEventsRequest, CapturedItem, MailContent, Mailbox, ResolveClaimsRequest,
    SubmitProposalRequest, TextOrigin, TextPart,
};
use serde_json::{Value, json};

pub(crate) const TENANT: &str = "acme";
pub(crate) const SUBJECT: &str = "vault://subjects/primary";
pub(crate) const RECIPIENT: &str = "urn:model:drafting";
pub(crate) const AGENT: &str = "urn:agent:reply-drafter";
pub(crate) const DEVICE: &str = "urn:device:workstation";
pub(crate) const KID: &str = "urn:cl:key:decision:test";
pub(crate) const ALIAS: &str = "urn:cl:alias:exchange-1";

pub(crate) const DATE: &str = "requested_delivery_date";
pub(crate) const AMOUNT: &str = "amount_due";
pub(crate) const PERSON: &str = "requesting_stakeholder";

pub(crate) const ALIAS_SEED: [u8; 32] = [2; 32];
pub(crate) const TAG_SEED: [u8; 32] = [3; 32];

/// 2030-01-01T12:00:00Z.
pub(crate) const NOW_MS: i64 = 1_893_499_200_000;

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
}

/// An operation id, different for each number.
pub(crate) fn operation(number: u32) -> String {
    format!("urn:cl:operation:01890000-0000-7000-8000-{number:012x}")
}

pub(crate) fn event_without_id(native: &str, payload: &[u8]) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "source_event",
        "created_at": "2030-01-01T11:00:00Z",
        "issuer": {"id": "urn:cl:adapter:email"},
        "subject_ref": SUBJECT,
        "occurred_at": "2030-01-01T10:00:00Z",
        "captured_at": "2030-01-01T11:00:00Z",
        "source": {
            "adapter": "email",
            "native_id_digest": Digest::of_bytes(native.as_bytes()).to_string(),
        },
        "payload_ref": {
            "ref": "vault://objects/message",
            "media_type": "message/rfc822",
            "digest": Digest::of_bytes(payload).to_string(),
            "byte_length": payload.len(),
        },
        "classification": ["communications"],
        "provenance": [{"kind": "direct_capture", "confidence": 1.0}],
    })
}

pub(crate) fn finalized(event: Value) -> Value {
    let record = record::finalize(event, "urn:cl:event:").unwrap();
    record.into_value()
}

/// An item about a topic whose text states claims, one a line.
pub(crate) fn item(native: &str, topic: &str, lines: &[&str]) -> CapturedItem {
    let payload = format!("{native}: {}", lines.join("\n")).into_bytes();
    CapturedItem {
        event: bytes(&finalized(event_without_id(native, &payload))),
        payload: Some(Payload::Inline(payload)),
        content: Some(Content::Mail(mail(topic, lines))),
    }
}

pub(crate) fn mail(topic: &str, lines: &[&str]) -> MailContent {
    let mailbox = |address: &str| Mailbox {
        address: address.to_owned(),
        name: String::new(),
    };
    MailContent {
        from: Some(mailbox("ann@example.org")),
        to: vec![mailbox("owner@example.org")],
        subject_line: topic.to_owned(),
        text: vec![TextPart {
            origin: TextOrigin::Author.into(),
            text: lines.join("\n"),
        }],
        ..MailContent::default()
    }
}

pub(crate) fn batch(items: Vec<CapturedItem>, number: u32) -> CaptureEventsRequest {
    CaptureEventsRequest {
        tenant: TENANT.to_owned(),
        subject_ref: SUBJECT.to_owned(),
        owner_addresses: vec!["owner@example.org".to_owned()],
        items,
        operation_id: operation(number),
    }
}

pub(crate) fn decision_key(byte: u8) -> SigningKey {
    let kid = KeyId::new(KID).unwrap();
    SigningKey::from_seed(kid, &Seed::new(&[byte; 32]).unwrap()).unwrap()
}

/// Asks for some predicates and the right to propose.
pub(crate) fn request(tail: &str, predicates: &[&str]) -> Value {
    let selectors: Vec<_> = predicates
        .iter()
        .map(|predicate| json!({"predicate": predicate}))
        .collect();
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
        "recipient": {"principal": RECIPIENT, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": selectors,
        "requested_actions": ["email.create_draft", "memory.propose"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2030-01-01T12:10:00Z",
    })
}

fn decide(request: &Value, actions: &[&str]) -> Value {
    let selectors: Vec<_> = request["selectors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|selector| selector["predicate"].clone())
        .collect();
    let policy = json!({
        "version": "v1",
        "issuer": {"id": "urn:cl:policy-engine:test"},
        "allowed_subjects": [request["subject_ref"]],
        "allowed_requesters": [AGENT],
        "allowed_clients": [DEVICE],
        "allowed_recipients": [RECIPIENT],
        "allowed_purpose_codes": ["draft.response"],
        "allowed_tasks": ["draft_only"],
        "allowed_selectors": selectors,
        "allowed_actions": actions,
        "maximum_retention": {"mode": "ephemeral", "max_seconds": 86400},
        "decision_ttl_seconds": 300,
        "require_receipts": true,
    });
    let decision = Evaluation {
        request: &Asked::read(request).unwrap(),
        policy: &ListPolicy::read(&policy).unwrap(),
        approval: &PresentedApproval::None,
        approval_rule: ApprovalRule::GrantOrDecline,
        verifier: VerifierOutcome::Absent,
        preflight: Preflight::Available,
        now: UnixTime::from_milliseconds(NOW_MS),
    };
    decision.evaluate().unwrap().into_value()
}

pub(crate) fn rule(predicate: &str) -> Value {
    json!({
        "predicate": predicate,
        "max_label": "sensitive",
        "min_trust": "untrusted",
        "min_confidence": 0,
        "statuses": ["asserted", "derived", "disputed"],
        "transforms": [],
        "projections": [],
    })
}

/// A grant before it is signed.
#[derive(Clone)]
pub(crate) struct GrantDraft {
    pub(crate) tenant: String,
    pub(crate) request: Value,
    pub(crate) scope: Value,
    pub(crate) plan: Value,
    pub(crate) key: u8,
}

impl GrantDraft {
    pub(crate) fn new(tail: &str, predicates: &[&str]) -> Self {
        Self::of(
            request(tail, predicates),
            &["email.create_draft", "memory.propose"],
        )
    }

    pub(crate) fn of(request: Value, actions: &[&str]) -> Self {
        let decision = decide(&request, actions);
        assert_ne!(decision["decision"], "deny", "{decision}");
        let granted = decision["granted_selectors"].as_array().unwrap();
        let predicates: Vec<_> = granted.iter().map(|it| it["predicate"].clone()).collect();
        let subject = request["subject_ref"].as_str().unwrap().to_owned();
        let scope = json!({
            "scope_version": 1,
            "decision_id": decision["id"],
            "decision_digest": decision["integrity"]["digest"],
            "request_digest": decision["request_digest"],
            "recipient": RECIPIENT,
            "recipient_key_id": null,
            "purpose_code": "draft.response",
            "task": request["task"],
            "granted_predicates": predicates,
            "granted_actions": decision["granted_actions"],
            "retention": {"mode": "ephemeral", "max_seconds": 600},
            "onward_disclosure": "forbidden",
            "not_before": "2030-01-01T12:00:00Z",
            "expires_at": decision["expires_at"],
            "kid": KID,
        });
        let tag_key = MacKey::from_seed(&Seed::new(&TAG_SEED).unwrap());
        let rules = predicates.iter().map(|it| rule(it.as_str().unwrap()));
        let plan = json!({
            "plan_version": 1,
            "scope_digest": null,
            "tenant": TENANT,
            "subject_ref": subject,
            "subject_alias": ALIAS,
            "subject_tag": subject_tag(&tag_key, TENANT, &subject),
            "requester": AGENT,
            "client_instance": DEVICE,
            "decision": decision,
            "rules": rules.collect::<Vec<_>>(),
            "audiences": [
                spiffe_id("exchange/cl-bundle-issuer"),
                spiffe_id("exchange/cl-semantic-proxy"),
                spiffe_id("vault/cl-vault"),
            ],
            "kid": KID,
        });
        Self {
            tenant: TENANT.to_owned(),
            request,
            scope,
            plan,
            key: 1,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Signed, with the plan bound to the scope statement.
    pub(crate) fn call(&self, number: u32) -> ResolveClaimsRequest {
        let scope = self.sign::<ScopeStatement>(&self.scope);
        let mut plan = self.plan.clone();
        if plan["scope_digest"].is_null() {
            plan["scope_digest"] = json!(Digest::of_bytes(&scope.document).to_string());
        }
        let plan = self.sign::<ResolvePlan>(&plan);
        ResolveClaimsRequest {
            tenant: self.tenant.clone(),
            request: bytes(&self.request),
            grant: Some(Grant {
                scope_statement: scope.document,
                scope_signature: scope.signature.as_bytes().to_vec(),
                plan: plan.document,
                plan_signature: plan.signature.as_bytes().to_vec(),
            }),
            operation_id: operation(number),
        }
    }

    fn sign<D: Document>(&self, document: &Value) -> Signed {
        let document = D::from_json(document).unwrap();
        sign(&document, &decision_key(self.key)).unwrap()
    }
}

pub(crate) fn proposal_without_id(sources: &[String]) -> Value {
    let mut requirement = vec!["user_confirm"];
    if sources.is_empty() {
        requirement = vec!["source_required", "user_confirm"];
    }
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "memory_update_proposal",
        "created_at": "2030-01-01T12:00:00Z",
        "issuer": {"id": RECIPIENT},
        "subject_ref": ALIAS,
        "bundle_ref": "urn:cl:bundle:b1",
        "operation": "add_or_contradict",
        "proposed_claims": [{
            "predicate": DATE,
            "object": {"value": "2030-02-03", "datatype": "date"},
            "confidence": 0.5,
        }],
        "provenance_refs": sources,
        "rationale": "The conversation implies it.",
        "submitted_by": RECIPIENT,
        "status": "pending_validation",
        "approval_requirement": requirement,
        "expires_at": "2030-01-01T12:05:00Z",
    })
}

pub(crate) fn submission(proposal: Value, number: u32) -> SubmitProposalRequest {
    let record = record::finalize(proposal, "urn:cl:proposal:").unwrap();
    SubmitProposalRequest {
        tenant: TENANT.to_owned(),
        submitter: RECIPIENT.to_owned(),
        proposal: record.text().as_bytes().to_vec(),
        operation_id: operation(number),
    }
}

/// How a source is called in the exchange of this request, whose subject has the ordinary alias.
pub(crate) fn provenance(event: &str, request: &str) -> Provenance {
    let scheme = AliasScheme::Keyed(MacKey::from_seed(&Seed::new(&ALIAS_SEED).unwrap()));
    let source = json!([ALIAS, event]).to_string();
    let request = RequestId::parse(&format!("urn:cl:request:{request}")).unwrap();
    scheme.provenance(&source, &request).unwrap()
}
