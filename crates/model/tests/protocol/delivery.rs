//! Deliveries: what a recipient can check for itself, also from a file.

use cl_model::canonical::to_text;
use cl_model::delivery::{Delivery, Trust};
use cl_model::grant::ScopeStatement;
use cl_model::notes::DisclosureNotes;
use cl_model::refusal::Code;
use cl_model::trust::TrustFile;
use data_encoding::BASE64URL_NOPAD;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{
    BUNDLE_KID, Exchange, bundle_key, now, open, refused, sealed, signing_key, verified_bundle,
};
use crate::grant::{KID, signed, statement};
use crate::notes::notes;

fn delivery_of(envelope: &Value) -> Delivery {
    let bundle = open(envelope).expect("a bundle");
    Delivery {
        envelope: to_text(envelope).into_bytes(),
        scope: signed::<ScopeStatement>(&statement()),
        notes: signed::<DisclosureNotes>(&notes(&bundle)),
    }
}

fn delivery() -> Delivery {
    delivery_of(&Exchange::new().envelope())
}

fn trusted(kid: &str, purpose: &str, x: &[u8]) -> Value {
    json!({
        "kid": kid,
        "purpose": purpose,
        "alg": "Ed25519",
        "x": BASE64URL_NOPAD.encode(x),
        "not_before": null,
        "not_after": null,
        "revoked": false,
    })
}

/// One decision key, which the fixtures use for notes as well.
fn trust(purposes: [&str; 3]) -> Trust {
    let documents = signing_key(KID, 0x61).public_key();
    let [bundle, decision, notes] = purposes;
    let mut keys = vec![
        trusted(BUNDLE_KID, bundle, bundle_key().public_key().as_bytes()),
        trusted("urn:cl:key:older", bundle, &[9; 32]),
    ];
    for purpose in [decision, notes] {
        keys.push(trusted(KID, purpose, documents.as_bytes()));
    }
    // A file names a key id once; the fixtures' shared key needs one file for each purpose.
    let of = |key: &Value| {
        let file = json!({"keys": [keys[0], keys[1], key]}).to_string();
        TrustFile::parse(file.as_bytes()).expect("a trust file")
    };
    Trust::new(
        of(&keys[2]).public_keys("bundle", now()),
        of(&keys[2]).keys("decision", now()),
        of(&keys[3]).keys("notes", now()),
    )
}

fn code(delivery: &Delivery, purposes: [&str; 3]) -> Option<Code> {
    refused(delivery.verify(&trust(purposes)))
}

const PURPOSES: [&str; 3] = ["bundle", "decision", "notes"];

#[test]
fn a_delivery_survives_its_file() {
    let text = delivery().to_text();
    let read = Delivery::parse(text.as_bytes()).expect("a delivery");
    assert!(read == delivery());
    let verified = read.verify(&trust(PURPOSES)).expect("verified");
    assert_eq!(verified.bundle.digest(), verified_bundle().digest());
    let item = verified.bundle.bundle().context.first().expect("an item");
    assert!(verified.notes.note(item).is_some());
}

#[test]
fn each_key_counts_for_its_purpose_only() {
    assert_eq!(code(&delivery(), PURPOSES), None);
    let rows = [
        (
            ["decision", "decision", "notes"],
            Code::UntrustedBundleAuthority,
        ),
        (["bundle", "bundle", "notes"], Code::UntrustedDocumentKey),
        (
            ["bundle", "decision", "decision"],
            Code::UntrustedDocumentKey,
        ),
    ];
    for (purposes, expected) in rows {
        assert_eq!(code(&delivery(), purposes), Some(expected), "{purposes:?}");
    }
}

#[test]
fn documents_of_different_exchanges_do_not_mix() {
    let wider = sealed(&Exchange::new().bundle(), |it| {
        it["capabilities"] = json!(["letter.burn"]);
    });
    assert_eq!(
        code(&delivery_of(&wider), PURPOSES),
        Some(Code::BundleOutsideGrant)
    );
    let shorter = sealed(&Exchange::new().bundle(), |it| {
        it["expires_at"] = json!("2031-05-04T09:31:00Z");
    });
    let mut mixed = delivery_of(&shorter);
    mixed.notes = delivery().notes;
    assert_eq!(code(&mixed, PURPOSES), Some(Code::NotesMismatch));
    let mut forged = delivery();
    forged.scope.signature = forged.notes.signature;
    assert_eq!(
        code(&forged, PURPOSES),
        Some(Code::DocumentSignatureInvalid)
    );
}

#[test]
fn refuses_files_that_depart_from_their_form() {
    let valid: Value = serde_json::from_str(&delivery().to_text()).expect("JSON");
    let members = valid.as_object().expect("an object");
    for name in members.keys() {
        for wrong in [json!(null), json!(7), json!("A"), json!("+/=="), json!("")] {
            let mut changed = valid.clone();
            changed[name] = wrong.clone();
            let delivery = Delivery::parse(changed.to_string().as_bytes());
            // An empty document decodes, and then is no document.
            let code = match delivery {
                Ok(delivery) => code(&delivery, PURPOSES),
                Err(refusal) => Some(refusal.code()),
            };
            assert!(code.is_some(), "{name} {wrong}");
        }
        let mut without = valid.clone();
        without.as_object_mut().expect("an object").remove(name);
        let code = refused(Delivery::parse(without.to_string().as_bytes()));
        assert_eq!(code, Some(Code::InvalidDelivery), "{name}");
    }
    let mut more = valid;
    more["more"] = json!("");
    let code = refused(Delivery::parse(more.to_string().as_bytes()));
    assert_eq!(code, Some(Code::InvalidDelivery));
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Delivery::parse(&bytes).is_err());
    }
}
