//! Grants across services: scope statement and resolve plan.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::document::{Document, Signed, TrustedKeys, Verified, sign};
use cl_model::envelope::VerifiedBundle;
use cl_model::grant::{ResolvePlan, ScopeStatement, VerifiedGrant};
use cl_model::json::read::FromJson;
use cl_model::key::{Signature, SigningKey};
use cl_model::refusal::Code;
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;
use serde_json::{Value, json};

use crate::fixture::{
    CANARY, Case, Exchange, RECIPIENT, SUBJECT, at, now, open, refused, rehashed, remove, sealed,
    signing_key,
};

type Change = fn(&mut Value);

pub(crate) const KID: &str = "urn:cl:key:example.test:decisions";
const VAULT: &str = "spiffe://example.test/vault";

fn key() -> SigningKey {
    signing_key(KID, 0x61)
}

pub(crate) fn keys() -> TrustedKeys {
    [key().public_key()].into_iter().collect()
}

pub(crate) fn signed<D: Document>(value: &Value) -> Signed {
    let document = D::from_json(value).expect("a document");
    sign(&document, &key()).expect("signed")
}

/// The signature that the decision key would make of any bytes as a document of this name.
pub(crate) fn signed_bytes(name: &str, document: &[u8]) -> Signed {
    let message = [format!("context-layer/{name}/v1\0").as_bytes(), document].concat();
    Signed {
        document: document.to_vec(),
        signature: key().sign(&message),
    }
}

pub(crate) fn statement() -> Value {
    let decision = Case::new().decision();
    json!({
        "scope_version": 1,
        "decision_id": decision["id"],
        "decision_digest": decision["integrity"]["digest"],
        "request_digest": decision["request_digest"],
        "recipient": RECIPIENT,
        "recipient_key_id": null,
        "purpose_code": "draft.response",
        "task": {"kind": "letter.reply", "user_visible": true},
        "granted_predicates": ["trip.dates", "trip.destination"],
        "granted_actions": ["letter.draft", "memory.propose"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "onward_disclosure": "forbidden",
        "not_before": "2031-05-04T09:30:00.000Z",
        "expires_at": "2031-05-04T09:35:00.000Z",
        "kid": KID,
    })
}

fn rule(predicate: &str) -> Value {
    json!({
        "predicate": predicate,
        "max_label": "private",
        "min_trust": "verified",
        "min_confidence": 0.5,
        "statuses": ["asserted"],
        "transforms": [],
        "projections": [],
    })
}

fn plan(statement: &Value) -> Value {
    json!({
        "plan_version": 1,
        "scope_digest": Digest::of_json(statement).to_string(),
        "tenant": "example",
        "subject_ref": SUBJECT,
        "subject_alias": "urn:cl:alias:s1",
        "subject_tag": "tag-1",
        "requester": "urn:agent:drafting-helper",
        "client_instance": "urn:client:example.test:laptop",
        "decision": Case::new().decision(),
        "rules": [rule("trip.dates"), rule("trip.destination")],
        "audiences": ["spiffe://example.test/semantic-proxy", VAULT],
        "kid": KID,
    })
}

struct Grant {
    statement: Value,
    plan: Value,
}

impl Grant {
    fn new() -> Self {
        let statement = statement();
        let plan = plan(&statement);
        Self { statement, plan }
    }

    /// A grant with another statement, to which the plan is bound again.
    fn restated(change: impl FnOnce(&mut Value)) -> Self {
        let mut statement = statement();
        change(&mut statement);
        let plan = plan(&statement);
        Self { statement, plan }
    }

    fn verify(&self, audience: &str, now: UnixTime) -> Option<Code> {
        refused(VerifiedGrant::verify(
            &signed::<ScopeStatement>(&self.statement),
            &signed::<ResolvePlan>(&self.plan),
            &Case::new().typed_request(),
            &keys(),
            audience,
            now,
        ))
    }
}

fn open_statement(signed: &Signed) -> Option<Code> {
    refused(Verified::<ScopeStatement>::open(signed, &keys()))
}

#[test]
fn opens_what_it_signs() {
    let signed = signed::<ScopeStatement>(&statement());
    let opened = Verified::<ScopeStatement>::open(&signed, &keys()).expect("opened");
    assert_eq!(signed.document, to_text(&statement()).into_bytes());
    assert_eq!(opened.digest(), Digest::of_json(&statement()));
    assert_eq!(signed, signed_bytes("scope-statement", &signed.document));
    let read = ScopeStatement::from_json(&statement()).ok();
    assert_eq!(Some(opened.get()), read.as_ref());
}

#[test]
fn refuses_bytes_that_are_not_the_canonical_document() {
    let text = to_text(&statement());
    let rows = [
        String::new(),
        format!("{text} "),
        format!("\u{feff}{text}"),
        text.replacen(':', ": ", 1),
        text.replacen("\"scope_version\":1", "\"scope_version\":1.0", 1),
        text.replacen("draft.response", "dr\\u0061ft.response", 1),
        text.replacen('{', "{\"kid\":\"other\",", 1),
        text.replacen(
            "\"scope_version\":1",
            "\"scope_version\":1,\"surplus\":1",
            1,
        ),
        text.replacen("\"scope_version\":1", "\"scope_version\":2", 1),
        text.replacen("\"recipient_key_id\":null,", "", 1),
        "[]".to_owned(),
    ];
    assert_eq!(
        open_statement(&signed_bytes("scope-statement", text.as_bytes())),
        None
    );
    for (index, bytes) in rows.iter().enumerate() {
        assert_ne!(*bytes, text, "row {index}");
        let signed = signed_bytes("scope-statement", bytes.as_bytes());
        assert_eq!(
            open_statement(&signed),
            Some(Code::InvalidDocument),
            "row {index}"
        );
    }
}

#[test]
fn a_signature_is_of_one_kind_of_document_only() {
    let text = to_text(&statement());
    assert_eq!(
        open_statement(&signed_bytes("scope-statement", text.as_bytes())),
        None
    );
    for name in ["resolve-plan", "disclosure-notes", "scope-statement/v1", ""] {
        let signed = signed_bytes(name, text.as_bytes());
        assert_eq!(
            open_statement(&signed),
            Some(Code::DocumentSignatureInvalid),
            "{name}"
        );
    }
    let bare = Signed {
        document: text.clone().into_bytes(),
        signature: key().sign(text.as_bytes()),
    };
    assert_eq!(open_statement(&bare), Some(Code::DocumentSignatureInvalid));
}

#[test]
fn refuses_other_keys_and_other_signatures() {
    let valid = signed::<ScopeStatement>(&statement());
    assert_eq!(open_statement(&valid), None);
    let namesake: TrustedKeys = [signing_key(KID, 0x62).public_key()].into_iter().collect();
    let code = refused(Verified::<ScopeStatement>::open(&valid, &namesake));
    assert_eq!(code, Some(Code::DocumentSignatureInvalid));
    let stranger: TrustedKeys = [signing_key("urn:cl:key:other", 0x61).public_key()]
        .into_iter()
        .collect();
    for keys in [stranger, TrustedKeys::default()] {
        let code = refused(Verified::<ScopeStatement>::open(&valid, &keys));
        assert_eq!(code, Some(Code::UntrustedDocumentKey));
    }
    let mut forged = valid.clone();
    forged.signature = Signature::new([0; 64]);
    assert_eq!(
        open_statement(&forged),
        Some(Code::DocumentSignatureInvalid)
    );
    let text = to_text(&statement()).replacen("600", "601", 1);
    let edited = Signed {
        document: text.into_bytes(),
        ..valid
    };
    assert_eq!(
        open_statement(&edited),
        Some(Code::DocumentSignatureInvalid)
    );
}

#[test]
fn never_signs_for_another_key() {
    let document = ScopeStatement::from_json(&statement()).expect("a document");
    assert_eq!(refused(sign(&document, &key())), None);
    let other = signing_key("urn:cl:key:other", 0x61);
    assert_eq!(
        refused(sign(&document, &other)),
        Some(Code::UntrustedDocumentKey)
    );
}

#[test]
fn holds_for_its_audience_within_its_time() {
    let grant = Grant::new();
    let just_before = |text| UnixTime::from_milliseconds(at(text).milliseconds() - 1);
    let ends = at("2031-05-04T09:35:00Z");
    assert_eq!(grant.verify(VAULT, now()), None);
    assert_eq!(
        grant.verify("spiffe://example.test/semantic-proxy", now()),
        None
    );
    assert_eq!(
        grant.verify(VAULT, just_before("2031-05-04T09:35:00Z")),
        None
    );
    assert_eq!(grant.verify(VAULT, ends), Some(Code::GrantExpired));
    let early = just_before("2031-05-04T09:30:00Z");
    assert_eq!(grant.verify(VAULT, early), Some(Code::GrantNotYetValid));
    for audience in ["spiffe://example.test/vault2", "spiffe://example.test", ""] {
        let code = grant.verify(audience, ends);
        assert_eq!(code, Some(Code::GrantAudienceMismatch), "{audience:?}");
    }
}

#[test]
fn refuses_statements_beyond_or_beside_the_decision() {
    let changes: &[Change] = &[
        |it| it["decision_id"] = json!("urn:cl:decision:other"),
        |it| it["decision_digest"] = json!(Digest::ZERO.to_string()),
        |it| it["request_digest"] = json!(Digest::ZERO.to_string()),
        |it| it["recipient"] = json!("urn:agent:other-helper"),
        |it| it["purpose_code"] = json!("plan.task"),
        |it| it["task"]["kind"] = json!("letter.send"),
        |it| it["task"]["user_visible"] = json!(false),
        |it| it["granted_predicates"] = json!(["trip.dates", "home.address"]),
        |it| it["granted_predicates"] = json!(["trip.dates"]),
        |it| it["granted_predicates"] = json!(["trip.destination", "trip.dates"]),
        |it| it["granted_actions"] = json!(["letter.draft", "letter.burn"]),
        |it| it["retention"]["max_seconds"] = json!(601),
        |it| it["retention"]["mode"] = json!("single_use"),
        |it| it["onward_disclosure"] = json!("allowed"),
        |it| it["expires_at"] = json!("2031-05-04T09:35:00.001Z"),
    ];
    for (index, change) in changes.iter().enumerate() {
        assert_eq!(Grant::new().verify(VAULT, now()), None);
        let code = Grant::restated(change).verify(VAULT, now());
        assert_eq!(code, Some(Code::GrantMismatch), "row {index}");
    }
    let narrower = Grant::restated(|it| {
        it["granted_actions"] = json!([]);
        it["retention"]["max_seconds"] = json!(1);
        it["expires_at"] = json!("2031-05-04T09:30:00.001Z");
    });
    assert_eq!(narrower.verify(VAULT, now()), None);
}

#[test]
fn refuses_plans_that_are_bound_to_something_else() {
    let changes: &[Change] = &[
        |it| it["scope_digest"] = json!(Digest::ZERO.to_string()),
        |it| it["subject_ref"] = json!("urn:person:example.test:bo"),
        |it| it["requester"] = json!("urn:agent:other-helper"),
        |it| it["client_instance"] = json!("urn:client:example.test:phone"),
        |it| it["rules"] = json!([rule("trip.dates")]),
        |it| it["rules"] = json!([rule("trip.destination"), rule("trip.dates")]),
        |it| it["rules"][1] = rule("home.address"),
        |it| {
            it["rules"] = json!([
                rule("trip.dates"),
                rule("trip.dates"),
                rule("trip.destination")
            ])
        },
        |it| it["decision"] = json!({}),
        |it| it["decision"]["decision"] = json!("deny"),
        |it| {
            it["decision"] = rehashed(&it["decision"], DecisionId::PREFIX, |it| {
                it["granted_actions"] = json!(["letter.draft", "letter.burn"]);
            });
        },
        |it| {
            it["decision"] = Case::new()
                .with(|it| it.now = now().plus_seconds(1))
                .decision()
        },
        |it| it["decision"] = Case::gated().decision(),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut grant = Grant::new();
        assert_eq!(grant.verify(VAULT, now()), None);
        change(&mut grant.plan);
        assert_eq!(
            grant.verify(VAULT, now()),
            Some(Code::GrantMismatch),
            "row {index}"
        );
    }
    let grant = Grant::new();
    let other = Case::new().with(|it| it.request["purpose"] = json!("Another letter."));
    let (scope, plan) = (
        signed::<ScopeStatement>(&grant.statement),
        signed::<ResolvePlan>(&grant.plan),
    );
    let verify = |scope: &Signed, plan: &Signed, case: &Case| {
        let request = case.typed_request();
        refused(VerifiedGrant::verify(
            scope,
            plan,
            &request,
            &keys(),
            VAULT,
            now(),
        ))
    };
    assert_eq!(verify(&scope, &plan, &Case::new()), None);
    assert_eq!(verify(&scope, &plan, &other), Some(Code::GrantMismatch));
    assert_eq!(
        verify(&plan, &scope, &Case::new()),
        Some(Code::InvalidDocument)
    );
}

#[test]
fn a_denial_grants_nothing_even_if_everything_else_agrees() {
    let denied = Case::new().with(|it| it.preflight = cl_model::policy::Preflight::Absent);
    let decision = denied.decision();
    let grant = |decision: &Value| {
        let statement = {
            let mut statement = statement();
            statement["decision_id"] = decision["id"].clone();
            statement["decision_digest"] = decision["integrity"]["digest"].clone();
            statement["granted_predicates"] = json!([]);
            statement["granted_actions"] = json!([]);
            statement
        };
        let mut plan = plan(&statement);
        plan["decision"] = decision.clone();
        plan["rules"] = json!([]);
        Grant { statement, plan }
    };
    assert_eq!(grant(&Case::new().decision()).verify(VAULT, now()), None);
    assert_eq!(
        grant(&decision).verify(VAULT, now()),
        Some(Code::GrantMismatch)
    );
}

fn check_bundle(envelope: &Value) -> Option<Code> {
    let signed = signed::<ScopeStatement>(&statement());
    let opened = Verified::<ScopeStatement>::open(&signed, &keys()).expect("opened");
    let bundle: VerifiedBundle = open(envelope).expect("a bundle that its issuer signed");
    refused(opened.check_bundle(&bundle))
}

#[test]
fn finds_out_an_issuer_that_signs_more_than_was_granted() {
    let rows: &[Change] = &[
        |it| it["context"][0]["predicate"] = json!("home.address"),
        |it| it["capabilities"] = json!(["letter.burn", "letter.draft"]),
        |it| {
            it["receipt_contract"]["required_operations"] =
                json!(["bundle.consume", "letter.burn"]);
        },
        |it| it["expires_at"] = json!("2031-05-04T09:35:00.001Z"),
        |it| {
            it["retention"]["max_seconds"] = json!(601);
            it["restrictions"]["retention_seconds"] = json!(601);
        },
        |it| it["retention"]["mode"] = json!("single_use"),
        |it| it["recipient"] = json!("urn:agent:other-helper"),
        |it| it["purpose_code"] = json!("plan.task"),
        |it| it["task"]["kind"] = json!("letter.send"),
        |it| it["restrictions"]["onward_disclosure"] = json!("allowed"),
        |it| it["issued_at"] = json!("2031-05-04T09:29:59.999Z"),
        |it| it["request_digest"] = json!(Digest::ZERO.to_string()),
        |it| remove(it, "request_digest"),
        |it| it["decision_digest"] = json!(Digest::ZERO.to_string()),
        |it| remove(it, "decision_digest"),
        |it| it["decision_ref"] = json!("urn:cl:decision:other"),
    ];
    let envelope = Exchange::new().envelope();
    for (index, change) in rows.iter().enumerate() {
        assert_eq!(check_bundle(&envelope), None);
        let wider = sealed(&envelope["bundle"], change);
        assert_eq!(
            check_bundle(&wider),
            Some(Code::BundleOutsideGrant),
            "row {index}"
        );
    }
    let narrower = sealed(&envelope["bundle"], |it| {
        it["capabilities"] = json!([]);
        it["expires_at"] = json!("2031-05-04T09:31:00Z");
        it["retention"]["max_seconds"] = json!(1);
        it["restrictions"]["retention_seconds"] = json!(1);
    });
    assert_eq!(check_bundle(&narrower), None);
}

#[test]
fn refusals_of_a_document_do_not_repeat_it() {
    let mut bad = statement();
    bad[CANARY] = json!(CANARY);
    let signed = signed_bytes("scope-statement", to_text(&bad).as_bytes());
    let refusal = Verified::<ScopeStatement>::open(&signed, &keys()).expect_err("refused");
    assert_eq!(refusal.code(), Code::InvalidDocument);
    assert!(!format!("{refusal} {refusal:?}").contains(CANARY));
}

#[test]
fn a_bundle_ends_with_the_retention_of_its_grant() {
    let mut short = statement();
    short["retention"]["max_seconds"] = json!(60);
    let signed = signed::<ScopeStatement>(&short);
    let opened = Verified::<ScopeStatement>::open(&signed, &keys()).expect("opened");
    let check = |expires_at: &str| {
        let envelope = sealed(&Exchange::new().bundle(), |it| {
            it["retention"]["max_seconds"] = json!(60);
            it["restrictions"]["retention_seconds"] = json!(60);
            it["expires_at"] = json!(expires_at);
        });
        refused(opened.check_bundle(&open(&envelope).expect("a bundle")))
    };
    assert_eq!(check("2031-05-04T09:31:00Z"), None);
    assert_eq!(
        check("2031-05-04T09:31:00.001Z"),
        Some(Code::BundleOutsideGrant)
    );
}
