//! Opening an authenticated bundle.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::envelope::{MAX_ENVELOPE_BYTES, TrustedAuthority, VerifiedBundle};
use cl_model::key::Signature;
use cl_model::refusal::Code;
use cl_model::urn::BundleId;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::fixture::{
    Exchange, RECIPIENT, at, authority, bundle_key, mac_key, now, open, refused, rehashed, remove,
    sealed, signing_key, verified_bundle,
};

type Change = fn(&mut Value);

/// What a bundle is refused for although its digests, and even its signature, are right.
const CONTENTS: &[(Code, Change)] = &[
    (Code::InvalidBundle, |it| {
        it["spec_version"] = json!("context-layer/0.3-draft")
    }),
    (Code::InvalidBundle, |it| {
        it["type"] = json!("policy_decision")
    }),
    (Code::InvalidBundle, |it| it["context"] = json!({})),
    (Code::InvalidBundle, |it| remove(it, "capabilities")),
    (Code::InvalidBundlePurposeCode, |it| {
        it["purpose_code"] = json!("draft")
    }),
    (Code::InvalidBundlePurposeCode, |it| {
        remove(it, "purpose_code")
    }),
    (Code::InvalidBundlePurpose, |it| it["purpose"] = json!("ab")),
    (Code::InvalidBundlePurpose, |it| it["purpose"] = Value::Null),
    (Code::InvalidTask, |it| remove(it, "task")),
    (Code::InvalidTask, |it| {
        it["task"]["user_visible"] = json!("yes")
    }),
    (Code::InvalidBundle, |it| it["single_use"] = json!(false)),
    (Code::InvalidBundle, |it| it["single_use"] = json!(1)),
    (Code::InvalidBundleRestrictions, |it| {
        it["restrictions"]["memory_write"] = json!("direct");
    }),
    (Code::InvalidBundleRestrictions, |it| {
        it["restrictions"]["raw_vault_resolution"] = json!("allowed");
    }),
    (Code::InvalidBundleRestrictions, |it| {
        it["restrictions"]["retention_seconds"] = json!(601);
    }),
    (Code::InvalidBundleRestrictions, |it| {
        remove(it, "retention")
    }),
    (Code::InvalidBundleRestrictions, |it| {
        it["restrictions"] = json!("none")
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it["raw_vault_object"] = json!({})
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it["context"][0]["value"] = json!({"Session-Token": "x"});
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it["instructions"] = json!(["Look at Vault://events/1."]);
    }),
    (Code::InvalidDateTime, |it| {
        it["created_at"] = json!("2031-05-04")
    }),
    (Code::InvalidDateTime, |it| it["issued_at"] = Value::Null),
    (Code::InvalidDateTime, |it| {
        it["expires_at"] = json!("2031-05-04T24:00:00Z")
    }),
    (Code::InvalidBundleRecipient, |it| {
        it["recipient"] = json!("")
    }),
    (Code::InvalidBundleRecipient, |it| {
        it["recipient"] = json!({"principal": RECIPIENT})
    }),
    (Code::BundleProvenanceInvalid, |it| {
        it["context"][1]["provenance_handles"] = json!(["prov_unknown"]);
    }),
    (Code::BundleProvenanceInvalid, |it| {
        it["context"][1]["provenance_handles"] = json!([])
    }),
    (Code::BundleProvenanceInvalid, |it| {
        it["provenance"] = json!([])
    }),
    (Code::InvalidBundle, |it| it["surplus"] = json!(1)),
    (Code::InvalidBundle, |it| it["context"] = json!([])),
    (Code::InvalidBundle, |it| {
        it["context"][0]["surplus"] = json!(1)
    }),
    (Code::InvalidBundle, |it| {
        it["context"][0]["confidence"] = json!(2)
    }),
    (Code::InvalidBundle, |it| it["instructions"] = json!([])),
    (Code::InvalidBundle, |it| it["recipient"] = json!("ab")),
    (Code::InvalidBundle, |it| {
        it["authentication"] = json!({"sig": "x"})
    }),
    (Code::InvalidBundle, |it| remove(it, "policy_snapshot")),
    (Code::InvalidBundle, |it| {
        it["capabilities"] = json!(["letter.draft", "letter.draft"])
    }),
    (Code::InvalidBundle, |it| {
        it["subject_alias"] = json!("urn:person:example.test:ada")
    }),
];

#[test]
fn refuses_contents_before_it_looks_at_the_signature() {
    let valid = Exchange::new().envelope();
    for (index, (code, change)) in CONTENTS.iter().enumerate() {
        assert_eq!(refused(open(&valid)), None);
        let signed = sealed(&valid["bundle"], change);
        assert_eq!(refused(open(&signed)), Some(*code), "signed row {index}");
        let mut unsigned = valid.clone();
        unsigned["bundle"] = rehashed(&valid["bundle"], BundleId::PREFIX, change);
        assert_eq!(
            refused(open(&unsigned)),
            Some(*code),
            "unsigned row {index}"
        );
    }
}

/// Mutations that keep to the schema: only the signature tells them from the genuine bundle.
#[test]
fn rehashed_mutations_fail_at_the_signature_and_nowhere_else() {
    let valid = Exchange::new().envelope();
    let changes: &[Change] = &[
        |it| it["capabilities"] = json!(["letter.burn", "letter.draft"]),
        |it| it["expires_at"] = json!("2039-01-01T00:00:00.000Z"),
        |it| it["recipient"] = json!("urn:agent:other-helper"),
        |it| it["context"][0]["claim"] = json!("The journey goes elsewhere."),
        |it| it["decision_digest"] = json!(Digest::ZERO.to_string()),
        |it| {
            it["retention"]["max_seconds"] = json!(86_400);
            it["restrictions"]["retention_seconds"] = json!(86_400);
        },
        |it| it["issued_at"] = json!("2031-05-04T11:30:00+02:00"),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut unsigned = valid.clone();
        unsigned["bundle"] = rehashed(&valid["bundle"], BundleId::PREFIX, change);
        let code = refused(open(&unsigned));
        assert_eq!(code, Some(Code::BundleAuthenticationFailed), "row {index}");
        let signed = sealed(&valid["bundle"], change);
        assert_eq!(refused(open(&signed)), None, "row {index}");
    }
}

#[test]
fn refuses_envelopes_of_another_shape() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidAuthenticatedBundle, |it| *it = json!([])),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["surplus"] = json!(1)
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            remove(it, "envelope_version")
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["envelope_version"] = json!(2)
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["envelope_version"] = json!(true)
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["envelope_version"] = json!("1")
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["bundle"] = json!("{}")
        }),
        (Code::InvalidAuthenticatedBundle, |it| {
            it["authentication"] = Value::Null
        }),
        (Code::InvalidRecordIntegrity, |it| {
            remove(&mut it["bundle"], "integrity")
        }),
        (Code::InvalidRecordIntegrity, |it| {
            it["bundle"]["integrity"]["extra"] = json!(1);
        }),
        (Code::RecordIntegrityMismatch, |it| {
            it["bundle"]["id"] = json!("urn:cl:bundle:x")
        }),
        (Code::RecordIntegrityMismatch, |it| {
            it["bundle"]["single_use"] = json!(false)
        }),
    ];
    let valid = Exchange::new().envelope();
    for (index, (code, change)) in rows.iter().enumerate() {
        assert_eq!(refused(open(&valid)), None);
        let mut changed = valid.clone();
        change(&mut changed);
        assert_eq!(refused(open(&changed)), Some(*code), "row {index}");
    }
}

#[test]
fn refuses_each_departure_of_the_authentication() {
    let invalid = Code::InvalidBundleAuthentication;
    let mut rows = vec![
        ("sig", Value::Null, invalid),
        ("sig", json!(0), invalid),
        ("sig", json!(""), invalid),
        ("sig", json!("A".repeat(85)), invalid),
        ("sig", json!("A".repeat(87)), invalid),
        ("sig", json!("=".repeat(86)), invalid),
        ("sig", json!("+".repeat(86)), invalid),
        (
            "sig",
            json!("A".repeat(86)),
            Code::BundleAuthenticationFailed,
        ),
        // The last character carries two bits that must be zero.
        (
            "sig",
            json!("A".repeat(85) + "B"),
            Code::BundleAuthenticationFailed,
        ),
        ("algorithm", json!("ed25519"), invalid),
        ("algorithm", json!("none"), invalid),
        ("algorithm", json!("hmac-sha256"), invalid),
        ("surplus", json!(1), invalid),
        ("kid", json!(7), invalid),
        ("kid", json!("ab"), invalid),
        ("kid", json!("a b"), invalid),
        ("kid", json!("urn:cl:key\n"), invalid),
        ("kid", json!("-rn:cl:key"), invalid),
        ("kid", json!("k".repeat(256)), invalid),
        (
            "kid",
            json!("k".repeat(255)),
            Code::UntrustedBundleAuthority,
        ),
        (
            "kid",
            json!("urn:cl:key:example.test:bundles2"),
            Code::UntrustedBundleAuthority,
        ),
        (
            "kid",
            json!("URN:cl:key:example.test:bundles"),
            Code::UntrustedBundleAuthority,
        ),
    ];
    let other = signing_key(bundle_key().kid().as_str(), 0x32);
    let valid = Exchange::new().envelope();
    let signature = other.sign(to_text(&valid["bundle"]).as_bytes());
    let by_other = json!(signature.to_base64url());
    rows.push(("sig", by_other, Code::BundleAuthenticationFailed));
    for (index, (name, value, code)) in rows.into_iter().enumerate() {
        assert_eq!(refused(open(&valid)), None);
        let mut changed = valid.clone();
        changed["authentication"][name] = value;
        assert_eq!(refused(open(&changed)), Some(code), "row {index}");
    }
    for name in ["algorithm", "kid", "sig"] {
        let mut changed = valid.clone();
        remove(&mut changed["authentication"], name);
        assert_eq!(refused(open(&changed)), Some(invalid), "without {name}");
    }
}

#[test]
fn a_signature_of_other_bytes_does_not_verify() {
    let valid = Exchange::new().envelope();
    let sig = valid["authentication"]["sig"].as_str().expect("text");
    let bytes = *Signature::from_base64url(sig)
        .expect("a signature")
        .as_bytes();
    for index in [0, 31, 32, 63] {
        let mut bytes = bytes;
        bytes[index] ^= 1;
        let mut changed = valid.clone();
        changed["authentication"]["sig"] = json!(Signature::new(bytes).to_base64url());
        assert_eq!(
            refused(open(&changed)),
            Some(Code::BundleAuthenticationFailed)
        );
    }
}

fn retired(kid: &str, byte: u8) -> Value {
    let mut envelope = Exchange::new().envelope();
    let tag = mac_key(byte).tag(to_text(&envelope["bundle"]).as_bytes());
    envelope["authentication"] = json!({
        "algorithm": "hmac-sha256",
        "key_id": kid,
        "mac": BASE64URL_NOPAD.encode(&tag),
    });
    envelope
}

#[test]
fn the_retired_form_needs_an_explicit_secret() {
    let kid = bundle_key().kid().as_str().to_owned();
    let accepts = |envelope: &Value| {
        let authority = authority().with_retired_hmac(mac_key(0x41));
        refused(VerifiedBundle::open(
            to_text(envelope).as_bytes(),
            &authority,
        ))
    };
    let genuine = retired(&kid, 0x41);
    assert_eq!(accepts(&genuine), None);
    assert_eq!(accepts(&Exchange::new().envelope()), None);
    assert_eq!(
        refused(open(&genuine)),
        Some(Code::InvalidBundleAuthentication)
    );
    // The seed of the signing key is no secret of the retired form.
    let derived = retired(&kid, 0x31);
    assert_eq!(accepts(&derived), Some(Code::BundleAuthenticationFailed));
    let foreign = retired("urn:cl:key:other", 0x41);
    assert_eq!(accepts(&foreign), Some(Code::UntrustedBundleAuthority));
    for (name, value) in [
        ("mac", json!("A".repeat(42))),
        ("mac", json!("A".repeat(44))),
        ("mac", Value::Null),
        ("key_id", json!("a")),
        ("kid", json!(kid)),
    ] {
        let mut changed = genuine.clone();
        changed["authentication"][name] = value;
        assert_eq!(
            accepts(&changed),
            Some(Code::InvalidBundleAuthentication),
            "{name}"
        );
    }
    let mut zeros = genuine;
    zeros["authentication"]["mac"] = json!("A".repeat(43));
    assert_eq!(accepts(&zeros), Some(Code::BundleAuthenticationFailed));
}

#[test]
fn refuses_text_that_is_too_large_or_not_strict() {
    let text = Exchange::new().text();
    let accepts = |text: &str| refused(VerifiedBundle::open(text.as_bytes(), &authority()));
    let padded = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    assert_eq!(accepts(&text), None);
    assert_eq!(accepts(&padded(MAX_ENVELOPE_BYTES)), None);
    assert_eq!(
        accepts(&padded(MAX_ENVELOPE_BYTES + 1)),
        Some(Code::BundleTooLarge)
    );
    let json = [
        String::new(),
        text.replacen('{', "{,", 1),
        format!("\u{feff}{text}"),
        format!("{text}{{}}"),
        text.replacen(r#""bundle":{"#, r#""envelope_version":1,"bundle":{"#, 1),
        text.replacen(
            r#""capabilities":"#,
            r#""capabilities":[],"capabilities":"#,
            1,
        ),
        text.replacen("Trondheim", r"\ud83d", 1),
        text.replacen("Trondheim", "\u{1}", 1),
    ];
    for (index, changed) in json.iter().enumerate() {
        assert_eq!(
            accepts(changed),
            Some(Code::InvalidBundleJson),
            "row {index}"
        );
    }
    let escaped = text.replacen("Trondheim", r"\u0054rondheim", 1);
    assert_eq!(
        accepts(&escaped),
        None,
        "another spelling of the same content"
    );
}

#[test]
fn large_integers_round_in_the_profile_and_are_refused_on_the_network() {
    let valid = Exchange::new().envelope();
    let with = |number: Value| sealed(&valid["bundle"], |it| it["context"][0]["value"] = number);
    let profile = |envelope: &Value| {
        refused(VerifiedBundle::open_profile(
            to_text(envelope).as_bytes(),
            &authority(),
        ))
    };
    let exact = with(json!(9_007_199_254_740_991_u64));
    assert_eq!((refused(open(&exact)), profile(&exact)), (None, None));
    let large = with(json!(9_007_199_254_740_993_u64));
    assert_eq!(profile(&large), None);
    assert_eq!(refused(open(&large)), Some(Code::InvalidBundleJson));
}

#[test]
fn is_expired_at_the_very_instant_and_only_then_for_another() {
    let bundle = verified_bundle();
    let ends = at("2031-05-04T09:35:00Z");
    let just_before = cl_model::time::UnixTime::from_milliseconds(ends.milliseconds() - 1);
    let other = "urn:agent:drafting-helper-2";
    assert_eq!(refused(bundle.check_use(RECIPIENT, now())), None);
    assert_eq!(refused(bundle.check_use(RECIPIENT, just_before)), None);
    assert_eq!(
        refused(bundle.check_use(RECIPIENT, ends)),
        Some(Code::BundleExpired)
    );
    assert_eq!(
        refused(bundle.check_use(other, now())),
        Some(Code::BundleRecipientMismatch)
    );
    assert_eq!(
        refused(bundle.check_use("", now())),
        Some(Code::BundleRecipientMismatch)
    );
    assert_eq!(
        refused(bundle.check_use(other, ends)),
        Some(Code::BundleExpired)
    );
}

#[test]
fn trusts_the_key_and_not_its_name() {
    let namesake = signing_key(bundle_key().kid().as_str(), 0x32);
    let authority = TrustedAuthority::new(namesake.public_key());
    let text = Exchange::new().text();
    let code = refused(VerifiedBundle::open(text.as_bytes(), &authority));
    assert_eq!(code, Some(Code::BundleAuthenticationFailed));
}
