//! Disclosure notes beside a bundle.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::document::Verified;
use cl_model::envelope::VerifiedBundle;
use cl_model::notes::{DisclosureNotes, item_digest};
use cl_model::refusal::Code;
use serde_json::{Value, json};

use crate::fixture::{Exchange, open, refused, sealed, verified_bundle};
use crate::grant::{KID, keys, signed, signed_bytes};

type Change = fn(&mut Value);

pub(crate) fn notes(bundle: &VerifiedBundle) -> Value {
    let items = bundle.bundle().context.iter().map(|item| {
        json!({
            "item": item_digest(item).to_string(),
            "status": "asserted",
            "trust": "verified",
            "validity": {"from": null, "expires_at": null},
            "transforms": [{"transform": "alias", "confidence": 0.7}],
        })
    });
    json!({
        "notes_version": 1,
        "bundle_digest": bundle.digest().to_string(),
        "items": items.collect::<Value>(),
        "kid": KID,
    })
}

fn opened_notes(value: &Value) -> Verified<DisclosureNotes> {
    let signed = signed::<DisclosureNotes>(value);
    Verified::<DisclosureNotes>::open(&signed, &keys()).expect("opened")
}

#[test]
fn notes_belong_to_one_bundle_and_its_items() {
    let bundle = verified_bundle();
    let valid = notes(&bundle);
    let rows: &[(Option<Code>, Change)] = &[
        (None, |_| ()),
        (None, |it| it["items"] = json!([])),
        (Some(Code::NotesMismatch), |it| {
            it["bundle_digest"] = json!(Digest::ZERO.to_string())
        }),
        (Some(Code::NotesMismatch), |it| {
            it["items"][1]["item"] = json!(Digest::ZERO.to_string());
        }),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let mut changed = valid.clone();
        change(&mut changed);
        let code_found = refused(opened_notes(&changed).check_bundle(&bundle));
        assert_eq!(code_found, *code, "row {index}");
    }
    let other = open(&sealed(&Exchange::new().bundle(), |it| {
        it["expires_at"] = json!("2031-05-04T09:31:00Z");
    }));
    let other = other.expect("a bundle");
    let code = refused(opened_notes(&valid).check_bundle(&other));
    assert_eq!(code, Some(Code::NotesMismatch));
}

#[test]
fn an_item_without_a_note_has_none() {
    let bundle = verified_bundle();
    let mut only_first = notes(&bundle);
    only_first["items"] = json!([only_first["items"][0]]);
    let notes = opened_notes(&only_first);
    let [first, second] = &bundle.bundle().context[..] else {
        panic!("two items");
    };
    assert_eq!(
        notes.note(first).map(|note| note.item),
        Some(item_digest(first))
    );
    assert!(notes.note(second).is_none());
}

#[test]
fn refuses_two_notes_on_one_item() {
    let valid = notes(&verified_bundle());
    let mut twice = valid.clone();
    twice["items"][1] = valid["items"][0].clone();
    twice["items"][1]["trust"] = json!("untrusted");
    for (code, value) in [(None, valid), (Some(Code::InvalidDocument), twice)] {
        let signed = signed_bytes("disclosure-notes", to_text(&value).as_bytes());
        let opened = Verified::<DisclosureNotes>::open(&signed, &keys());
        assert_eq!(refused(opened), code);
    }
}
