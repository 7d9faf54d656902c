//! Forged grants: vault, semantic proxy and bundle issuer each refuse them, on their own.
//!
//! The forger sits in the place of the legitimate caller of each service and has its certificate.
//! Even with the decision key in hand, what does not belong together is refused.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use cl_model::alias::subject_tag;
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::document::{Document, sign};
use cl_model::grant::{ResolvePlan, ScopeStatement};
use cl_model::key::{MacKey, Seed, SigningKey};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifierOutcome,
};
use cl_model::scalar::KeyId;
use cl_model::time::UnixTime;
use cl_wire::bundle::v1::IssueBundleRequest;
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use cl_wire::policy::v1::Grant;
use cl_wire::semantic::v1::ProjectClaimsRequest;
use cl_wire::semantic::v1::semantic_proxy_service_client::SemanticProxyServiceClient;
use cl_wire::status::reason;
use cl_wire::vault::v1::ResolveClaimsRequest;
use cl_wire::vault::v1::vault_service_client::VaultServiceClient;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tonic::Status;

use crate::deployment::{BUNDLE_ISSUER, Deployment, POLICY_ENGINE, SEMANTIC_PROXY, VAULT};

const SUBJECT: &str = "vault://subjects/primary";
const TENANT: &str = "default";
const AGENT: &str = "urn:agent:forger";
const RECIPIENT: &str = "urn:model:forger";

fn now() -> UnixTime {
    #[expect(clippy::disallowed_methods, reason = "the services use the real clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixTime::from_milliseconds(i64::try_from(now.as_millis()).unwrap())
}

fn later(seconds: i64) -> String {
    UnixTime::from_milliseconds(now().milliseconds() + seconds * 1000).to_string()
}

/// The documents of one grant, before they are signed.
struct Forgery {
    key: SigningKey,
    tenant: String,
    request: Value,
    statement: Value,
    plan: Value,
    /// Bound to the statement before the plan is signed.
    binds: bool,
}

fn request(id: &str) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": format!("urn:cl:request:{id}"),
        "created_at": later(-1),
        "issuer": {"id": AGENT},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": AGENT,
            "authenticated_by": "oauth2",
            "client_instance": "urn:client:forger",
        },
        "recipient": {"principal": RECIPIENT, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [{"predicate": "requested_delivery_date"}],
        "requested_actions": ["email.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": later(600),
    })
}

fn decision(request: &Value) -> Value {
    let policy = json!({
        "version": "forged-1",
        "allowed_subjects": [SUBJECT],
        "allowed_requesters": [AGENT],
        "allowed_clients": ["urn:client:forger"],
        "allowed_recipients": [RECIPIENT],
        "allowed_purpose_codes": ["draft.response"],
        "allowed_tasks": ["draft_only"],
        "allowed_selectors": ["requested_delivery_date"],
        "allowed_actions": ["email.create_draft"],
        "maximum_retention": {"mode": "ephemeral", "max_seconds": 600},
        "decision_ttl_seconds": 300,
        "bundle_instructions": ["Draft only."],
    });
    Evaluation {
        request: &Asked::read(request).unwrap(),
        policy: &ListPolicy::read(&policy).unwrap(),
        approval: &PresentedApproval::read(&Value::Null, ApprovalRule::AllOrNothing),
        approval_rule: ApprovalRule::AllOrNothing,
        verifier: VerifierOutcome::Authenticated,
        preflight: Preflight::Available,
        now: now(),
    }
    .evaluate()
    .unwrap()
    .into_value()
}

/// The deployment's own decision key.
fn decision_key(deployment: &Deployment) -> SigningKey {
    let pem = fs::read(deployment.home().join("keys/decision.pem")).unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(&pem).unwrap();
    let kid = |text: String| KeyId::new(text).unwrap();
    let unnamed = SigningKey::from_pkcs8(kid("unnamed".to_owned()), der.secret_pkcs8_der());
    let digest = Digest::of_bytes(unnamed.unwrap().public_key().as_bytes());
    let named = kid(format!("urn:cl:key:decision:{}", digest.to_hex()));
    SigningKey::from_pkcs8(named, der.secret_pkcs8_der()).unwrap()
}

impl Forgery {
    /// A grant as the policy engine would sign it.
    fn new(deployment: &Deployment, id: &str) -> Self {
        let key = decision_key(deployment);
        let request = request(id);
        let decision = decision(&request);
        let tags = fs::read(deployment.home().join("keys/subject-tag.key")).unwrap();
        let tags = MacKey::from_seed(&Seed::new(&tags).unwrap());
        let kid = key.kid().as_str();
        let statement = json!({
            "scope_version": 1,
            "decision_id": decision["id"],
            "decision_digest": decision["integrity"]["digest"],
            "request_digest": decision["request_digest"],
            "recipient": RECIPIENT,
            "recipient_key_id": null,
            "purpose_code": "draft.response",
            "task": request["task"],
            "granted_predicates": ["requested_delivery_date"],
            "granted_actions": ["email.create_draft"],
            "retention": {"mode": "ephemeral", "max_seconds": 600},
            "onward_disclosure": "forbidden",
            "not_before": later(-5),
            "expires_at": decision["expires_at"],
            "kid": kid,
        });
        let audience = |path: &str| format!("spiffe://context-layer.local/{path}");
        let plan = json!({
            "plan_version": 1,
            "scope_digest": "",
            "tenant": TENANT,
            "subject_ref": SUBJECT,
            "subject_alias": format!("urn:cl:alias:{id}"),
            "subject_tag": subject_tag(&tags, TENANT, SUBJECT),
            "requester": AGENT,
            "client_instance": "urn:client:forger",
            "decision": decision,
            "rules": [{
                "predicate": "requested_delivery_date",
                "max_label": "private",
                "min_trust": "untrusted",
                "min_confidence": 0,
                "statuses": ["asserted", "derived", "disputed"],
                "transforms": [],
                "projections": [],
            }],
            "audiences": [
                audience("exchange/cl-bundle-issuer"),
                audience("exchange/cl-semantic-proxy"),
                audience("vault/cl-vault"),
            ],
            "kid": kid,
        });
        Self {
            key,
            tenant: TENANT.to_owned(),
            request,
            statement,
            plan,
            binds: true,
        }
    }

    fn grant(&self) -> Grant {
        let scope = signed::<ScopeStatement>(&self.statement, &self.key);
        let mut plan = self.plan.clone();
        if self.binds {
            plan["scope_digest"] = json!(Digest::of_bytes(&scope.0).to_string());
        }
        let plan = signed::<ResolvePlan>(&plan, &self.key);
        Grant {
            scope_statement: scope.0,
            scope_signature: scope.1,
            plan: plan.0,
            plan_signature: plan.1,
        }
    }

    fn request(&self) -> Vec<u8> {
        canonical::to_text(&self.request).into_bytes()
    }

    fn operation_id(&self) -> String {
        let digest = Digest::of_bytes(&self.request()).to_hex();
        let uuid = [
            &digest[..8],
            &digest[8..12],
            "7000",
            "8000",
            &digest[12..24],
        ];
        format!("urn:cl:operation:{}", uuid.join("-"))
    }

    /// What vault, proxy and issuer answer to it.
    async fn answers(&self, deployment: &Deployment) -> [Result<(), Status>; 3] {
        let channel = |service, caller| deployment.channel(service, deployment.credentials(caller));
        let vault = ResolveClaimsRequest {
            tenant: self.tenant.clone(),
            request: self.request(),
            grant: Some(self.grant()),
            operation_id: self.operation_id(),
        };
        let proxy = ProjectClaimsRequest {
            tenant: self.tenant.clone(),
            request: self.request(),
            grant: Some(self.grant()),
            operation_id: self.operation_id(),
        };
        let issuer = IssueBundleRequest {
            tenant: self.tenant.clone(),
            request: self.request(),
            grant: Some(self.grant()),
            operation_id: self.operation_id(),
        };
        let vault = VaultServiceClient::new(channel(VAULT, SEMANTIC_PROXY))
            .resolve_claims(vault)
            .await
            .map(|_| ());
        let proxy = SemanticProxyServiceClient::new(channel(SEMANTIC_PROXY, BUNDLE_ISSUER))
            .project_claims(proxy)
            .await
            .map(|_| ());
        let issuer = BundleServiceClient::new(channel(BUNDLE_ISSUER, POLICY_ENGINE))
            .issue_bundle(issuer)
            .await
            .map(|_| ());
        [vault, proxy, issuer]
    }
}

fn signed<D: Document>(value: &Value, key: &SigningKey) -> (Vec<u8>, Vec<u8>) {
    let signed = sign(&D::from_json(value).unwrap(), key).unwrap();
    let signature = signed.signature.as_bytes().to_vec();
    (signed.document, signature)
}

type Forge = fn(&mut Forgery);

const FORGERIES: [(&str, &str, Forge); 10] = [
    (
        "signed by another key",
        "DOCUMENT_SIGNATURE_INVALID",
        |it| {
            let kid = it.key.kid().clone();
            it.key = SigningKey::from_seed(kid, &Seed::new(&[7; 32]).unwrap()).unwrap();
        },
    ),
    ("signed by an unknown key", "UNTRUSTED_DOCUMENT_KEY", |it| {
        let kid = KeyId::new("urn:cl:key:decision:other").unwrap();
        it.key = SigningKey::from_seed(kid, &Seed::new(&[7; 32]).unwrap()).unwrap();
        it.statement["kid"] = json!("urn:cl:key:decision:other");
        it.plan["kid"] = json!("urn:cl:key:decision:other");
    }),
    ("expired", "GRANT_EXPIRED", |it| {
        it.statement["not_before"] = json!(later(-60));
        it.statement["expires_at"] = json!(later(-1));
    }),
    ("not valid yet", "GRANT_NOT_YET_VALID", |it| {
        it.statement["not_before"] = json!(later(60));
    }),
    ("presented for another tenant", "TENANT_MISMATCH", |it| {
        it.tenant = "other".to_owned();
    }),
    ("for another subject", "GRANT_MISMATCH", |it| {
        it.plan["subject_ref"] = json!("vault://subjects/other");
    }),
    ("for other services", "GRANT_AUDIENCE_MISMATCH", |it| {
        it.plan["audiences"] = json!(["spiffe://context-layer.local/exchange/cl-other"]);
    }),
    ("with a swapped plan", "GRANT_MISMATCH", |it| {
        it.binds = false;
        it.plan["scope_digest"] = json!(Digest::ZERO.to_string());
    }),
    ("with a swapped request", "GRANT_MISMATCH", |it| {
        it.request["purpose_code"] = json!("plan.task");
    }),
    (
        "with a predicate that was not decided",
        "GRANT_MISMATCH",
        |it| {
            it.statement["granted_predicates"] = json!(["amount_due"]);
            it.plan["rules"][0]["predicate"] = json!("amount_due");
        },
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn forged_grants_are_refused_by_each_service_on_its_own() {
    let deployment = Deployment::start().await;
    for (index, (name, expected, forge)) in FORGERIES.into_iter().enumerate() {
        let mut forgery = Forgery::new(&deployment, &format!("forged-{index}"));
        forge(&mut forgery);
        let services = [VAULT, SEMANTIC_PROXY, BUNDLE_ISSUER];
        let answers = forgery.answers(&deployment).await;
        for (service, answer) in services.into_iter().zip(answers) {
            let told = answer.err().and_then(|status| reason(&status));
            assert_eq!(told.as_deref(), Some(expected), "{service}: {name}");
        }
    }
    // The same without a fault is accepted: it was the forgery that was refused. The vault knows
    // nothing of the subject, so there is nothing to issue.
    let [vault, proxy, issuer] = Forgery::new(&deployment, "sound")
        .answers(&deployment)
        .await;
    assert!(vault.is_ok() && proxy.is_ok(), "{vault:?} {proxy:?}");
    let told = issuer.err().and_then(|status| reason(&status));
    assert_eq!(told.as_deref(), Some("NO_CONTEXT_GRANTED"));
}
