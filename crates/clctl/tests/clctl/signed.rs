//! The anchor of an exported portable log, and logs whose key was replaced.

use std::fs;
use std::path::Path;

use cl_tlog::{Cosigner, KeyName, SignedCheckpoint};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::exported::{Exported, fault, is, lines, replace, write_lines};
use crate::forged::LogKey;
use crate::support::TestHome;
use crate::writer::Writer;

const ANCHOR: &str = "portable/receipts.anchor";

#[test]
fn the_anchor_of_the_portable_log_is_written_and_verified() {
    let exported = Exported::new();
    let anchor = Path::new(&exported.home.beside("export")).join(ANCHOR);
    assert_eq!(lines(&anchor).len(), 3, "an empty log and each entry");
    let first: Value = serde_json::from_str(&lines(&anchor)[0]).unwrap();
    let origin = "context-layer.local/receipts/default";
    let log_id = cl_model::anchor::log_id_of_path(origin);
    assert_eq!(first["log_id"], log_id.to_string());
    let fault = |change: &dyn Fn(&Path)| exported.fault(change);
    let line = |number: u32| format!("{ANCHOR} line {number}");
    let found = fault(&|it| replace(&it.join(ANCHOR), "\"entries\":2", "\"entries\":3"));
    let unauthentic = "RECEIPT_ANCHOR_AUTHENTICATION_FAILED";
    assert_eq!(found, is(unauthentic, &line(3)));
    let cut = |count: usize| {
        move |it: &Path| {
            let all = lines(&it.join(ANCHOR));
            write_lines(&it.join(ANCHOR), &all[..count]);
        }
    };
    assert_eq!(fault(&cut(2)), is("RECEIPT_LOG_UNANCHORED_SUFFIX", ANCHOR));
    let found = fault(&|it| fs::write(it.join(ANCHOR), "").unwrap());
    assert_eq!(found, is("RECEIPT_ANCHOR_EMPTY", ANCHOR));
    let found = fault(&|it| fs::write(it.join(ANCHOR), "{}\n").unwrap());
    assert_eq!(found, is("RECEIPT_ANCHOR_INVALID_RECORD", &line(1)));
    let found = fault(&|it| {
        let mut all = lines(&it.join(ANCHOR));
        all.swap(1, 2);
        write_lines(&it.join(ANCHOR), &all);
    });
    assert_eq!(found, is("RECEIPT_ANCHOR_INVALID_RECORD", &line(2)));

    // An auditor without the key of the logs exports without an anchor.
    let home = TestHome::new();
    let up = home.up();
    fs::rename(
        home.path("keys/receipts.pem"),
        home.path("keys/elsewhere.pem"),
    )
    .unwrap();
    let folder = home.beside("unanchored");
    let written = home.json(&["receipts", "export", &folder]);
    assert_eq!(written["anchored"], false);
    assert!(!Path::new(&folder).join(ANCHOR).exists());
    let verified = home.json(&["receipts", "verify", "--export", &folder]);
    assert_eq!(verified["verified"], true);
    drop(up);
}

#[test]
fn a_log_whose_key_was_replaced_is_verified_by_both() {
    let home = TestHome::new();
    let up = home.up();
    let before = home.beside("before");
    home.json(&["receipts", "export", &before]);
    let old = fs::read_to_string(Path::new(&before).join("key")).unwrap();
    drop(up);

    // The old key signs no more, and stays to verify; the new one takes its place.
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let body = data_encoding::BASE64.encode(document.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    fs::write(home.path("keys/receipts.pem"), pem).unwrap();
    let mut trust: Value =
        serde_json::from_slice(&fs::read(home.path("trust.json")).unwrap()).unwrap();
    let keys = trust["keys"].as_array_mut().unwrap();
    let replaced = keys.iter_mut().find(|key| key["purpose"] == "receipts");
    let replaced = replaced.unwrap();
    replaced["not_after"] = replaced["not_before"].clone();
    let mut added = replaced.clone();
    added["kid"] = json!("urn:cl:key:receipts:second");
    added["x"] = json!(data_encoding::BASE64URL_NOPAD.encode(pair.public_key().as_ref()));
    added["not_after"] = Value::Null;
    keys.push(added);
    fs::write(home.path("trust.json"), trust.to_string()).unwrap();

    let _up = home.up();
    assert_eq!(home.json(&["receipts", "verify"])["entries"], 2);
    Writer::new(&home).append(3);
    let older = format!("{before}/checkpoint");
    let verified = home.json(&["receipts", "verify", "--since", &older]);
    assert_eq!(
        (&verified["entries"], &verified["continues"]),
        (&json!(5), &json!(2))
    );
    let after = home.beside("after");
    home.json(&["receipts", "export", &after]);
    let new = fs::read_to_string(Path::new(&after).join("key")).unwrap();
    let (old, new) = (old.trim(), new.trim());
    assert_ne!(old, new);
    for folder in [&before, &after] {
        let verify = ["receipts", "verify", "--export", folder];
        assert_eq!(home.json(&verify)["verified"], true);
        let both = [&verify[..], &["--key", old, "--key", new]].concat();
        assert_eq!(home.json(&both)["verified"], true);
    }
    let one = ["receipts", "verify", "--export", &after, "--key", old];
    assert_eq!(fault(&home, &one), is("RECEIPT_LOG_UNSIGNED", "checkpoint"));
    let other = LogKey::fresh("elsewhere/receipts/default").text();
    let two = ["receipts", "verify", "--key", old, "--key", &other];
    assert_eq!(home.failure(&two), (2, "KEYS_OF_TWO_LOGS".to_owned()));
    // What is revoked verifies nothing.
    let text = fs::read_to_string(home.path("trust.json")).unwrap();
    let mut trust: Value = serde_json::from_str(&text).unwrap();
    for key in trust["keys"].as_array_mut().unwrap() {
        let is_first = key["purpose"] == "receipts" && !key["not_after"].is_null();
        key["revoked"] = json!(is_first);
    }
    fs::write(home.path("trust.json"), trust.to_string()).unwrap();
    let verify = ["receipts", "verify", "--export", &before];
    assert_eq!(
        fault(&home, &verify),
        is("RECEIPT_LOG_UNSIGNED", "checkpoint")
    );
}

#[test]
fn a_quorum_of_witnesses_can_be_asked_for() {
    let exported = Exported::new();
    let (home, folder) = (&exported.home, exported.home.beside("export"));
    let name = KeyName::new("witness.example/w1").unwrap();
    let witness = Cosigner::from_seed(name, &[5; 32]).unwrap();
    let policy = home.beside("witnesses.policy");
    let text = format!("witness w1 {}\nquorum w1\n", witness.verifier_key());
    fs::write(&policy, &text).unwrap();
    let verify = ["receipts", "verify", "--export", &folder];
    let witnessed = [&verify[..], &["--witness-policy", &policy]].concat();
    let missing = is("RECEIPT_LOG_QUORUM_NOT_REACHED", "checkpoint");
    assert_eq!(fault(home, &witnessed), missing);

    let checkpoint = Path::new(&folder).join("checkpoint");
    let plain = fs::read(&checkpoint).unwrap();
    let mut signed = SignedCheckpoint::parse(&plain).unwrap();
    let cosignature = witness.cosign(&signed, 1_900_000_000).unwrap();
    signed.add(cosignature).unwrap();
    fs::write(&checkpoint, signed.to_string()).unwrap();
    assert_eq!(home.json(&witnessed)["verified"], true);
    assert_eq!(home.json(&verify)["verified"], true);

    fs::write(&policy, text.replace("quorum w1", "quorum w2")).unwrap();
    let malformed = (1, "WITNESS_POLICY_MALFORMED".to_owned());
    assert_eq!(home.failure(&witnessed), malformed);
}
