//! Logs of many receipts, and logs that were signed with receipts that must not be in them.

use std::fs;
use std::path::Path;

use cl_tlog::{ProofFile, SignedCheckpoint};
use serde_json::json;

use crate::exported::fault;
use crate::forged::{self, Forged, LogKey};
use crate::support::TestHome;
use crate::writer::Writer;

const ORIGIN: &str = "context-layer.local/receipts/default";
#[test]
fn a_log_of_several_tiles_is_verified_exported_and_continued() {
    let home = TestHome::new();
    let _up = home.up();
    let writer = Writer::new(&home);
    writer.append(1100);
    let verified = home.json(&["receipts", "verify"]);
    assert_eq!(verified["entries"], 1102);
    let folder = home.beside("export");
    assert_eq!(home.json(&["receipts", "export", &folder])["entries"], 1102);
    let again = home.failure(&["receipts", "export", &folder]);
    assert_eq!(again, (1, "FOLDER_EXISTS".to_owned()));
    let verify = ["receipts", "verify", "--export", &folder];
    assert_eq!(home.json(&verify)["entries"], 1102);
    let older = format!("{folder}/checkpoint");
    writer.append(200);
    let verified = home.json(&["receipts", "verify", "--since", &older]);
    assert_eq!(
        (&verified["entries"], &verified["continues"]),
        (&json!(1302), &json!(1102))
    );

    // Another history of the same length, signed by the same key.
    let key = LogKey::of_home(&home, ORIGIN);
    for (count, code) in [(300, "RECEIPT_LOG_FORK"), (1400, "RECEIPT_LOG_ROLLBACK")] {
        let other = forged::write(&home, &count.to_string(), &key, &forged::receipts(count));
        let older = format!("{other}/checkpoint");
        let found = fault(&home, &["receipts", "verify", "--since", &older]);
        assert_eq!(found, (code.to_owned(), "older checkpoint".to_owned()));
    }
    for (tile, code) in [
        ("tile/0/001", "RECEIPT_LOG_TILE_MISMATCH"),
        ("tile/0/004.p/78", "RECEIPT_LOG_TILE_MISMATCH"),
        ("tile/1/000.p/4", "RECEIPT_LOG_TILE_MISMATCH"),
        ("tile/entries/003", "RECEIPT_LOG_ENTRY_MISMATCH"),
    ] {
        let path = Path::new(&folder).join(tile);
        let bytes = fs::read(&path).unwrap();
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&path, changed).unwrap();
        assert_eq!(fault(&home, &verify), (code.to_owned(), tile.to_owned()));
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(home.json(&verify)["verified"], true);
}

#[test]
fn a_full_tile_stands_in_for_a_partial_one() {
    let home = TestHome::new();
    let key = LogKey::of_home(&home, ORIGIN);
    let receipts = forged::receipts(600);
    let small = forged::write(&home, "small", &key, &receipts[..300]);
    let large = forged::write(&home, "large", &key, &receipts);
    let verify = ["receipts", "verify", "--export", &small];
    for folder in ["tile/0", "tile/entries"] {
        fs::remove_dir_all(format!("{small}/{folder}/001.p")).unwrap();
        let found = fault(&home, &verify);
        assert_eq!(found.0, "RECEIPT_LOG_FILE_MISSING", "{folder}");
        fs::copy(
            format!("{large}/{folder}/001"),
            format!("{small}/{folder}/001"),
        )
        .unwrap();
    }
    assert_eq!(home.json(&verify)["entries"], 300);
}

#[test]
fn a_signature_does_not_make_a_bad_receipt_good() {
    let home = TestHome::new();
    let key = LogKey::of_home(&home, ORIGIN);
    let refused = |name: &str, receipts: &[Forged], code: &str, line: u64| {
        let folder = forged::write(&home, name, &key, receipts);
        let found = fault(&home, &["receipts", "verify", "--export", &folder]);
        assert_eq!(
            found,
            (code.to_owned(), format!("receipts.jsonl line {line}"))
        );
    };
    let good = forged::receipts(3);
    let mut late = good.clone();
    late[2].recorded_at = late[1].recorded_at - 1;
    refused("late", &late, "RECEIPT_LOG_TIME_BACKWARDS", 3);

    let superseding = |receipt: &Forged| {
        Forged::changed(9, |it| it["supersedes_ref"] = receipt.receipt["id"].clone())
    };
    let forwards = [superseding(&good[1]), good[1].clone()];
    refused("forwards", &forwards, "RECEIPT_LOG_SUPERSEDES_UNKNOWN", 1);
    let backwards = [good[1].clone(), superseding(&good[1])];
    let backwards = backwards.map(|it| Forged {
        recorded_at: 0,
        ..it
    });
    let folder = forged::write(&home, "backwards", &key, &backwards);
    assert_eq!(
        home.json(&["receipts", "verify", "--export", &folder])["entries"],
        2
    );

    let ends_early = Forged::changed(1, |it| it["completed_at"] = "2000-01-01T00:00:00Z".into());
    refused(
        "early",
        &[good[0].clone(), ends_early],
        "INVALID_RECEIPT_TIME_RANGE",
        2,
    );
    let mut renamed = good.clone();
    renamed[1].receipt["id"] = good[0].receipt["id"].clone();
    refused("renamed", &renamed, "RECORD_INTEGRITY_MISMATCH", 2);
    let opened = |number| {
        Forged::changed(number, |it| {
            it["operation"] = "bundle.consume".into();
            it["bundle_ref"] = format!("urn:cl:bundle:{}", "0".repeat(64)).into();
        })
    };
    refused(
        "twice",
        &[opened(1), opened(2)],
        "RECEIPT_REPLAY_CONFLICT",
        2,
    );
}

#[test]
fn a_store_is_not_believed_without_a_trusted_key() {
    let home = TestHome::new();
    let _up = home.up();
    let none = home.failure(&["receipts", "verify", "--tenant=other"]);
    assert_eq!(none, (4, "RECEIPT_LOG_NOT_FOUND".to_owned()));
    let folder = home.beside("export");
    let none = home.failure(&["receipts", "export", &folder, "--tenant=other"]);
    assert_eq!(none, (4, "RECEIPT_LOG_NOT_FOUND".to_owned()));
    let other = LogKey::fresh(ORIGIN);
    let found = fault(&home, &["receipts", "verify", "--key", &other.text()]);
    let unsigned = ("RECEIPT_LOG_UNSIGNED".to_owned(), "checkpoint".to_owned());
    assert_eq!(found, unsigned);

    let stranger = TestHome::new();
    fs::copy(stranger.path("trust.json"), home.path("trust.json")).unwrap();
    assert_eq!(fault(&home, &["receipts", "verify"]), unsigned);
    assert_eq!(fault(&home, &["receipts", "export", &folder]), unsigned);
    assert!(!Path::new(&folder).exists());
}

#[test]
fn receipts_are_filtered_and_their_proofs_printed() {
    let home = TestHome::new();
    let _up = home.up();
    let all = home.json(&["receipts", "list"]);
    let second = &all["receipts"][1];
    let recorded = second["recorded_at"].as_str().unwrap();
    let total = |args: &[&str]| {
        let listed = home.json(&[&["receipts", "list"], args].concat());
        listed["total"].as_u64().unwrap()
    };
    assert_eq!(total(&["--operation=policy.activate_snapshot"]), 1);
    assert_eq!(total(&["--outcome=success"]), 2);
    assert_eq!(total(&["--outcome=failure"]), 0);
    let nothing = "0".repeat(64);
    assert_eq!(total(&[&format!("--bundle=urn:cl:bundle:{nothing}")]), 0);
    assert_eq!(
        total(&[&format!("--decision=urn:cl:decision:{nothing}")]),
        0
    );
    let (from, to) = (format!("--from={recorded}"), format!("--to={recorded}"));
    assert_eq!(total(&[&from]) + total(&[&to]), 2);
    assert_eq!(total(&[&from, &to]), 0);
    assert_eq!(total(&["--to=2000-01-01T00:00:00Z"]), 0);
    for wrong in ["--from=yesterday", "--outcome=good"] {
        assert_eq!(
            home.run(&["receipts", "list", wrong]).code,
            Some(2),
            "{wrong}"
        );
    }

    let id = second["receipt_ref"].as_str().unwrap();
    let printed = home.ok(&["receipts", "show", id, "--proof"]);
    let proof = ProofFile::parse(printed.as_bytes()).unwrap();
    assert_eq!((proof.index, proof.extra.len()), (1, 32));
    let document = home.json(&["receipts", "show", id, "--proof"]);
    assert_eq!(document["proof"], printed.as_str());
    let verified = home.json(&["receipts", "verify"]);
    let checkpoint = verified["checkpoint"].as_str().unwrap();
    assert_eq!(
        SignedCheckpoint::parse(checkpoint.as_bytes()),
        Ok(proof.checkpoint)
    );
}
