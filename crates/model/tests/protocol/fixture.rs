//! One exchange that is accepted as it stands. Tests change one thing about it.

use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::envelope::{TrustedAuthority, VerifiedBundle};
use cl_model::issue::{Issuance, PendingEnvelope};
use cl_model::key::{MacKey, Seed, SigningKey};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::part::Issuer;
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifiedDecision,
    VerifierOutcome,
};
use cl_model::record::{self, Record};
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::KeyId;
use cl_model::session::{Circumstances, Opening, Revocation, Session, Stored};
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, DecisionId};
use serde_json::{Value, json};

pub(crate) const RECIPIENT: &str = "urn:agent:drafting-helper";
pub(crate) const SUBJECT: &str = "urn:person:example.test:ada";
pub(crate) const BUNDLE_KID: &str = "urn:cl:key:example.test:bundles";

/// A word that stands for private content: where it must not be, it is looked for.
pub(crate) const CANARY: &str = "canaryword";

pub(crate) fn at(text: &str) -> UnixTime {
    UnixTime::parse(text).expect("a time")
}

pub(crate) fn now() -> UnixTime {
    at("2031-05-04T09:30:00Z")
}

/// The code of a refusal; `None` if there was none.
pub(crate) fn refused<T>(result: Result<T, Refusal>) -> Option<Code> {
    result.err().map(|refusal| refusal.code())
}

pub(crate) fn remove(object: &mut Value, name: &str) {
    let object = object.as_object_mut().expect("an object");
    object.remove(name).expect("the member to remove");
}

pub(crate) fn signing_key(kid: &str, byte: u8) -> SigningKey {
    let seed = Seed::new(&[byte; 32]).expect("32 bytes");
    SigningKey::from_seed(KeyId::new(kid).expect("a key id"), &seed).expect("a key")
}

pub(crate) fn bundle_key() -> SigningKey {
    signing_key(BUNDLE_KID, 0x31)
}

pub(crate) fn mac_key(byte: u8) -> MacKey {
    MacKey::from_seed(&Seed::new(&[byte; 32]).expect("32 bytes"))
}

pub(crate) fn request() -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": "urn:cl:request:trip-reply-7",
        "created_at": "2031-05-04T09:29:58Z",
        "issuer": {"id": "urn:agent:drafting-helper"},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": "urn:agent:drafting-helper",
            "authenticated_by": "mtls",
            "client_instance": "urn:client:example.test:laptop",
        },
        "recipient": {"principal": RECIPIENT, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "Answer a letter about a journey.",
        "task": {"kind": "letter.reply", "user_visible": true},
        "selectors": [{"predicate": "trip.destination"}, {"predicate": "trip.dates"}],
        "requested_actions": ["letter.draft", "memory.propose"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2031-05-04T10:00:00Z",
    })
}

pub(crate) fn policy() -> Value {
    json!({
        "version": "journeys-3",
        "issuer": {"id": "urn:cl:policy-engine:example.test"},
        "allowed_subjects": [SUBJECT],
        "allowed_requesters": ["urn:agent:drafting-helper"],
        "allowed_clients": ["urn:client:example.test:laptop"],
        "allowed_recipients": [RECIPIENT],
        "allowed_purpose_codes": ["draft.response"],
        "allowed_tasks": ["letter.reply"],
        "allowed_selectors": ["trip.dates", "trip.destination"],
        "allowed_actions": ["letter.draft", "memory.propose"],
        "approval_required_selectors": ["health.allergy", "home.address"],
        "approval_required_actions": ["calendar.hold"],
        "maximum_retention": {"mode": "ephemeral", "max_seconds": 900},
        "decision_ttl_seconds": 300,
        "bundle_instructions": ["Use the context for this letter only."],
    })
}

pub(crate) fn claims() -> Vec<Value> {
    vec![
        json!({
            "claim": "The journey goes to Trondheim.",
            "predicate": "trip.destination",
            "value": {"town": "Trondheim"},
            "confidence": 0.9,
            "provenance_refs": ["urn:event:example.test:mail-12"],
        }),
        json!({
            "claim": "The journey lasts three days in June.",
            "predicate": "trip.dates",
            "value": ["2031-06-10", "2031-06-12"],
            "confidence": 1,
            "provenance_refs": [
                "urn:event:example.test:mail-12",
                "urn:event:example.test:calendar-4",
            ],
        }),
    ]
}

/// One evaluation: allowed as it stands.
pub(crate) struct Case {
    pub(crate) request: Value,
    pub(crate) policy: Value,
    pub(crate) approval: Value,
    pub(crate) rule: ApprovalRule,
    pub(crate) verifier: VerifierOutcome,
    pub(crate) preflight: Preflight,
    pub(crate) now: UnixTime,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self {
            request: request(),
            policy: policy(),
            approval: Value::Null,
            rule: ApprovalRule::AllOrNothing,
            verifier: VerifierOutcome::Authenticated,
            preflight: Preflight::Available,
            now: now(),
        }
    }

    /// A request that also asks for all of the gated scope.
    pub(crate) fn gated() -> Self {
        let mut case = Self::new();
        case.ask(
            &["health.allergy", "trip.dates", "home.address"],
            &["calendar.hold", "letter.draft"],
        );
        case
    }

    /// The gated request with an approval of all that needs one.
    pub(crate) fn approved() -> Self {
        let mut case = Self::gated();
        case.approve(&["home.address", "health.allergy"], &["calendar.hold"]);
        case
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn ask(&mut self, selectors: &[&str], actions: &[&str]) {
        let selectors = selectors.iter().map(|name| json!({"predicate": name}));
        self.request["selectors"] = selectors.collect();
        self.request["requested_actions"] = json!(actions);
    }

    /// Presents an approval of this very request under this very policy.
    pub(crate) fn approve(&mut self, selectors: &[&str], actions: &[&str]) {
        self.approval = json!({
            "id": "urn:approval:example.test:5",
            "request_digest": Digest::of_json(&self.request).to_string(),
            "policy_digest": Digest::of_json(&self.policy).to_string(),
            "expires_at": "2031-05-04T09:34:00Z",
            "granted_selectors": selectors,
            "granted_actions": actions,
        });
    }

    pub(crate) fn evaluate(&self) -> Result<Record, Refusal> {
        Evaluation {
            request: &Asked::read(&self.request)?,
            policy: &ListPolicy::read(&self.policy)?,
            approval: &PresentedApproval::read(&self.approval, self.rule),
            approval_rule: self.rule,
            verifier: self.verifier,
            preflight: self.preflight,
            now: self.now,
        }
        .evaluate()
    }

    pub(crate) fn decision(&self) -> Value {
        let record = self.evaluate().expect("a decision");
        let digest = record::verify(record.value(), DecisionId::PREFIX);
        assert_eq!(digest, Ok(record.digest()), "a decision's record holds");
        record.into_value()
    }

    pub(crate) fn typed_request(&self) -> ContextRequest {
        ContextRequest::read(&self.request).expect("a request")
    }

    pub(crate) fn verified(&self) -> VerifiedDecision {
        VerifiedDecision::verify(&self.decision(), &self.typed_request()).expect("verified")
    }
}

/// One issue of a bundle: accepted as it stands.
pub(crate) struct Exchange {
    pub(crate) case: Case,
    pub(crate) claims: Vec<Value>,
    pub(crate) aliases: AliasScheme,
    pub(crate) preflight: Preflight,
    pub(crate) now: UnixTime,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        Self {
            case: Case::new(),
            claims: claims(),
            aliases: AliasScheme::Parity,
            preflight: Preflight::Available,
            now: now(),
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn issue_under(
        &self,
        decision: &VerifiedDecision,
    ) -> Result<PendingEnvelope, Refusal> {
        Issuance {
            request: &self.case.typed_request(),
            decision,
            claims: &self.claims,
            issuer: &Issuer::new("urn:cl:bundle-issuer:example.test").expect("an issuer"),
            aliases: &self.aliases,
            key: &bundle_key(),
            preflight: self.preflight,
            latest_end: None,
            now: self.now,
        }
        .issue()
    }

    pub(crate) fn issue(&self) -> Result<PendingEnvelope, Refusal> {
        self.issue_under(&self.case.verified())
    }

    pub(crate) fn text(&self) -> String {
        let pending = self.issue().expect("issued");
        pending.release(true).expect("released").0
    }

    pub(crate) fn envelope(&self) -> Value {
        serde_json::from_str(&self.text()).expect("JSON")
    }

    pub(crate) fn bundle(&self) -> Value {
        self.envelope()["bundle"].take()
    }
}

/// A record with other contents and an id and digest to match.
pub(crate) fn rehashed(record: &Value, prefix: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut contents = record.clone();
    remove(&mut contents, "id");
    remove(&mut contents, "integrity");
    change(&mut contents);
    record::finalize(contents, prefix)
        .expect("a record")
        .into_value()
}

/// An envelope of a changed bundle that its authority signed all the same.
pub(crate) fn sealed(bundle: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let bundle = rehashed(bundle, BundleId::PREFIX, change);
    let key = bundle_key();
    let signature = key.sign(canonical::to_text(&bundle).as_bytes());
    json!({
        "envelope_version": 1,
        "bundle": bundle,
        "authentication": {
            "algorithm": "Ed25519",
            "kid": key.kid().as_str(),
            "sig": signature.to_base64url(),
        },
    })
}

pub(crate) fn authority() -> TrustedAuthority {
    TrustedAuthority::new(bundle_key().public_key())
}

pub(crate) fn open(envelope: &Value) -> Result<VerifiedBundle, Refusal> {
    VerifiedBundle::open(canonical::to_text(envelope).as_bytes(), &authority())
}

pub(crate) fn verified_bundle() -> VerifiedBundle {
    open(&Exchange::new().envelope()).expect("a bundle")
}

pub(crate) fn circumstances() -> Circumstances {
    Circumstances {
        now: now(),
        revocation: Revocation::Clear,
        preflight: Preflight::Available,
    }
}

pub(crate) fn session_of(bundle: VerifiedBundle) -> Session {
    Opening::begin(bundle, RECIPIENT, false, circumstances())
        .and_then(|opening| opening.settle(Stored::Durable))
        .expect("a session")
}

pub(crate) fn session() -> Session {
    session_of(verified_bundle())
}
