//! What subject and sources are called in a bundle.

use cl_model::alias::AliasScheme;
use cl_model::digest::Digest;
use serde_json::{Value, json};

use crate::fixture::{Exchange, RECIPIENT, SUBJECT, mac_key};

const MAIL: &str = "urn:event:example.test:mail-12";

fn keyed(byte: u8) -> Exchange {
    Exchange::new().with(|it| it.aliases = AliasScheme::Keyed(mac_key(byte)))
}

fn hex_of(value: &Value) -> String {
    Digest::of_json(value).to_hex()
}

fn handles(bundle: &Value) -> Vec<String> {
    let provenance = bundle["provenance"].as_object().expect("an object");
    provenance.keys().cloned().collect()
}

#[test]
fn parity_names_are_the_plain_digests_of_the_profile() {
    let bundle = Exchange::new().bundle();
    let alias = json!({
        "subject_ref": SUBJECT,
        "request_ref": "urn:cl:request:trip-reply-7",
        "recipient": RECIPIENT,
    });
    assert_eq!(
        bundle["subject_alias"],
        format!("urn:cl:alias:{}", hex_of(&alias))
    );
    let hex = hex_of(&json!({"source": MAIL}));
    assert_eq!(
        bundle["provenance"][format!("prov_{hex}")],
        json!({"kind": "opaque_vault_reference", "ref": format!("urn:cl:provenance:{hex}")})
    );
    assert_eq!(handles(&bundle).len(), 2);
}

#[test]
fn keyed_names_need_the_key_and_differ_between_requests() {
    let bundle = keyed(1).bundle();
    assert_eq!(bundle["subject_alias"], keyed(1).bundle()["subject_alias"]);
    assert_eq!(handles(&bundle), handles(&keyed(1).bundle()));
    let others = [
        Exchange::new().bundle(),
        keyed(2).bundle(),
        keyed(1)
            .with(|it| it.case.request["id"] = json!("urn:cl:request:trip-reply-8"))
            .bundle(),
    ];
    for other in others {
        assert_ne!(bundle["subject_alias"], other["subject_alias"]);
        let (ours, theirs) = (handles(&bundle), handles(&other));
        assert!(ours.iter().all(|handle| !theirs.contains(handle)));
    }
}

#[test]
fn keyed_aliases_differ_between_recipients() {
    let scheme = AliasScheme::Keyed(mac_key(1));
    let request = Exchange::new().case.typed_request().id;
    let alias = |recipient| scheme.subject_alias(SUBJECT, &request, recipient);
    assert_eq!(alias(RECIPIENT), alias(RECIPIENT));
    assert_ne!(alias(RECIPIENT), alias("urn:agent:other-helper"));
}

#[test]
fn neither_scheme_shows_subject_or_source() {
    for exchange in [Exchange::new(), keyed(1)] {
        let text = exchange.text();
        assert!(text.contains(RECIPIENT));
        assert!(!text.contains(SUBJECT) && !text.contains("mail-12"));
    }
}
