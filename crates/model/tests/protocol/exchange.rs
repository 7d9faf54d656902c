//! Issuing a bundle.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::envelope::MAX_ENVELOPE_BYTES;
use cl_model::object::{DecisionState, ProtocolObject, Receipt};
use cl_model::policy::{Preflight, VerifiedDecision};
use cl_model::receipt;
use cl_model::record;
use cl_model::refusal::Code;
use cl_model::urn::{BundleId, DecisionId};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Case, Exchange, at, now, open, refused, rehashed, remove};

type Change = fn(&mut Exchange);

const REFUSALS: &[(Code, Change)] = &[
    (Code::DecisionDoesNotAuthorizeBundle, |it| {
        it.case = Case::gated()
    }),
    (Code::DecisionDoesNotAuthorizeBundle, |it| {
        it.case.policy["rate_limit_ok"] = json!(false);
    }),
    (Code::BundleAuthorizationExpired, |it| {
        it.now = at("2031-05-04T09:35:00Z")
    }),
    (Code::BundleAuthorizationExpired, |it| {
        it.case.request["expires_at"] = json!("2031-05-04T09:31:00Z");
        it.now = at("2031-05-04T09:31:00Z");
    }),
    (Code::ReceiptStoreUnavailable, |it| {
        it.preflight = Preflight::Absent
    }),
    (Code::ReceiptPreflightFailed, |it| {
        it.preflight = Preflight::Unavailable
    }),
    (Code::NoContextGranted, |it| it.claims.clear()),
    (Code::InvalidPolicy, |it| {
        it.case.policy["bundle_instructions"] = json!([])
    }),
    (Code::InvalidPolicy, |it| {
        remove(&mut it.case.policy, "bundle_instructions")
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it.claims[0]["value"] = json!([{"nested": {"API-Key": "x"}}]);
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it.claims[0]["claim"] = json!("Read it at VAULT://events/12.");
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it.case.policy["bundle_instructions"] = json!(["Ask vault://events for more."]);
    }),
];

#[test]
fn refuses_each_kind_with_its_code() {
    for (index, (code, change)) in REFUSALS.iter().enumerate() {
        assert_eq!(refused(Exchange::new().issue()), None);
        let exchange = Exchange::new().with(change);
        assert_eq!(refused(exchange.issue()), Some(*code), "row {index}");
    }
}

#[test]
fn tries_the_refusals_in_order() {
    let steps: &[(Code, Change)] = &[
        (Code::InvalidPolicy, |it| {
            it.case.policy["bundle_instructions"] = json!([])
        }),
        (Code::BundleContainsForbiddenMaterial, |it| {
            it.claims[0]["value"] = json!({"token": 1})
        }),
        (Code::NoContextGranted, |it| it.claims.clear()),
        (Code::ReceiptStoreUnavailable, |it| {
            it.preflight = Preflight::Absent
        }),
        (Code::BundleAuthorizationExpired, |it| {
            it.now = at("2031-05-04T09:35:00Z")
        }),
        (Code::DecisionDoesNotAuthorizeBundle, |it| {
            it.case.policy["anomaly_state"] = json!("elevated");
        }),
    ];
    let mut exchange = Exchange::new();
    for (code, change) in steps {
        exchange = exchange.with(change);
        assert_eq!(refused(exchange.issue()), Some(*code));
    }
}

#[test]
fn only_the_two_allowing_states_authorise_a_bundle() {
    let allowing: Vec<_> = DecisionState::ALL
        .iter()
        .filter(|state| state.allows())
        .collect();
    assert_eq!(
        allowing,
        [&DecisionState::Allow, &DecisionState::AllowWithReductions]
    );
    let reduced =
        Exchange::new().with(|it| it.case.ask(&["trip.dates", "pet.name"], &["letter.draft"]));
    assert_eq!(reduced.case.decision()["decision"], "allow_with_reductions");
    assert_eq!(refused(reduced.issue()), None);
}

#[test]
fn assembles_every_member_of_the_bundle() {
    let exchange = Exchange::new();
    let decision = exchange.case.decision();
    let mut bundle = exchange.bundle();
    let digest = record::verify(&bundle, BundleId::PREFIX).expect("a record");
    assert_eq!(bundle["id"], format!("urn:cl:bundle:{}", digest.to_hex()));
    ["id", "integrity", "context", "provenance", "subject_alias"]
        .iter()
        .for_each(|name| remove(&mut bundle, name));
    let expected = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "scoped_context_bundle",
        "created_at": "2031-05-04T09:30:00.000Z",
        "issuer": {"id": "urn:cl:bundle-issuer:example.test"},
        "request_ref": "urn:cl:request:trip-reply-7",
        "request_digest": Digest::of_json(&exchange.case.request).to_string(),
        "decision_ref": decision["id"],
        "decision_digest": decision["integrity"]["digest"],
        "policy_snapshot": decision["policy_snapshot"],
        "recipient": "urn:agent:drafting-helper",
        "purpose_code": "draft.response",
        "purpose": "Answer a letter about a journey.",
        "task": {"kind": "letter.reply", "user_visible": true},
        "issued_at": "2031-05-04T09:30:00.000Z",
        "expires_at": "2031-05-04T09:35:00.000Z",
        "single_use": true,
        "instructions": ["Use the context for this letter only."],
        "restrictions": {
            "onward_disclosure": "forbidden",
            "memory_write": "proposal_only",
            "raw_vault_resolution": "forbidden",
            "retention_seconds": 600,
        },
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_contract": {
            "required": true,
            "required_operations": ["bundle.consume", "letter.draft", "memory.propose"],
        },
        "capabilities": ["letter.draft", "memory.propose"],
    });
    assert_eq!(bundle, expected);
}

#[test]
fn sorts_capabilities_and_operations_whatever_was_asked_first() {
    let exchange = Exchange::new().with(|it| {
        it.case.policy["allowed_actions"] = json!(["zip.pack", "a.first", "bundle.consume"]);
        it.case
            .ask(&["trip.dates"], &["zip.pack", "bundle.consume", "a.first"]);
    });
    let bundle = exchange.bundle();
    let sorted = json!(["a.first", "bundle.consume", "zip.pack"]);
    assert_eq!(bundle["capabilities"], sorted);
    assert_eq!(bundle["receipt_contract"]["required_operations"], sorted);
}

#[test]
fn leaves_out_the_purpose_that_the_request_does_not_state() {
    let exchange = Exchange::new().with(|it| remove(&mut it.case.request, "purpose"));
    let bundle = exchange.bundle();
    assert_eq!(bundle.get("purpose"), None);
    assert_eq!(refused(open(&exchange.envelope())), None);
}

#[test]
fn the_envelope_is_canonical_and_opens() {
    let text = Exchange::new().text();
    let envelope: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(to_text(&envelope), text);
    let opened = open(&envelope).expect("opened");
    assert_eq!(
        opened.digest().to_string(),
        envelope["bundle"]["integrity"]["digest"]
    );
}

#[test]
fn releases_nothing_before_the_receipt_is_durable() {
    let pending = Exchange::new().issue().expect("issued");
    assert!(pending.receipt().is_some());
    assert_eq!(
        refused(pending.release(false)),
        Some(Code::BundleReceiptPersistFailed)
    );
    let pending = Exchange::new().issue().expect("issued");
    assert_eq!(refused(pending.release(true)), None);
}

#[test]
fn needs_no_receipt_where_none_is_required() {
    let exchange = Exchange::new().with(|it| {
        it.case.request["receipt_requirement"] = json!({"level": "none", "required": false});
        it.preflight = Preflight::Absent;
    });
    let pending = exchange.issue().expect("issued");
    assert!(pending.receipt().is_none());
    assert_eq!(refused(pending.release(false)), None);
    assert_eq!(exchange.bundle()["receipt_contract"]["required"], false);
}

#[test]
fn the_issue_receipt_binds_decision_to_bundle_without_content() {
    let exchange = Exchange::new();
    let pending = exchange.issue().expect("issued");
    let record = pending.receipt().expect("a receipt").value();
    assert!(!to_text(record).contains("Trondheim"));
    let receipt: Receipt = receipt::check(record).expect("a valid receipt");
    assert_eq!(Receipt::read(record).ok().as_ref(), Some(&receipt));
    let (decision, bundle) = (exchange.case.decision(), exchange.bundle());
    assert_eq!(record["operation"], "bundle.issue");
    assert_eq!(record["outcome"], "success");
    assert_eq!(record["actor"], "urn:cl:bundle-issuer:example.test");
    assert_eq!(record["subject_ref"], bundle["subject_alias"]);
    assert_eq!(record["request_ref"], bundle["request_ref"]);
    assert_eq!(record["decision_ref"], decision["id"]);
    assert_eq!(record["bundle_ref"], bundle["id"]);
    assert_eq!(record["input_digest"], decision["integrity"]["digest"]);
    assert_eq!(record["output_digest"], bundle["integrity"]["digest"]);
    assert_eq!(
        record["policy_snapshot"],
        decision["policy_snapshot"]["digest"]
    );
}

/// The issuer checks hashes, not signatures: what it is told to trust decides the scope.
#[test]
fn a_rehashed_decision_gives_a_bundle_that_names_it() {
    let exchange = Exchange::new();
    let genuine = exchange.case.decision();
    let forged = rehashed(&genuine, DecisionId::PREFIX, |it| {
        it["granted_actions"] = json!(["letter.burn"]);
    });
    let request = exchange.case.typed_request();
    let verified = VerifiedDecision::verify(&forged, &request).expect("a decision");
    let pending = exchange.issue_under(&verified).expect("issued");
    let (_, bundle) = pending.release(true).expect("released");
    assert_eq!(bundle.decision_ref.as_str(), forged["id"]);
    assert_ne!(forged["id"], genuine["id"]);
}

#[test]
fn refuses_bundles_that_no_consumer_could_open() {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let deep = |depth| Exchange::new().with(|it| it.claims[0]["value"] = nested(depth));
    // Envelope, bundle, context and item are four of the 64 levels.
    assert_eq!(refused(open(&deep(60).envelope())), None);
    assert_eq!(refused(deep(61).issue()), Some(Code::JsonTooDeep));
    let large =
        |length| Exchange::new().with(|it| it.claims[0]["value"] = json!("x".repeat(length)));
    let overhead = large(0).text().len();
    let largest = MAX_ENVELOPE_BYTES - overhead;
    assert_eq!(refused(open(&large(largest).envelope())), None);
    assert_eq!(
        refused(large(largest + 1).issue()),
        Some(Code::BundleTooLarge)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn never_outlives_request_decision_or_retention(
        request in 1i64..4_000_000,
        lifetime in 1u64..4_000,
        retention in 1u64..4_000,
        delay in 0i64..4_000_000,
    ) {
        let milliseconds = now().milliseconds();
        let instant = cl_model::time::UnixTime::from_milliseconds;
        let request_ends = instant(milliseconds + request);
        let issued_at = instant(milliseconds + delay);
        let exchange = Exchange::new().with(|it| {
            it.case.request["expires_at"] = json!(request_ends.to_string());
            it.case.request["retention"]["max_seconds"] = json!(retention);
            it.case.policy["maximum_retention"]["max_seconds"] = json!(4_000);
            it.case.policy["decision_ttl_seconds"] = json!(lifetime);
            it.now = issued_at;
        });
        let ends = request_ends
            .min(now().plus_seconds(lifetime))
            .min(issued_at.plus_seconds(retention));
        if ends <= issued_at {
            prop_assert_eq!(refused(exchange.issue()), Some(Code::BundleAuthorizationExpired));
        } else {
            let bundle = exchange.bundle();
            prop_assert_eq!(&bundle["expires_at"], &json!(ends.to_string()));
            prop_assert_eq!(&bundle["issued_at"], &json!(issued_at.to_string()));
        }
    }
}
