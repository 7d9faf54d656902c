//! Receipts that are held and erased, and logs with tombstones in them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::exported::fault;
use crate::support::TestHome;
use crate::writer::Writer;

const TAG: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

fn erase(home: &TestHome) -> Value {
    home.json(&[
        "receipts",
        "erase",
        "--subject-tag",
        TAG,
        "--reason=subject.request",
    ])
}

#[test]
fn what_is_held_stays_and_what_is_erased_leaves_tombstones() {
    let home = TestHome::new();
    let _up = home.up();
    let writer = Writer::new(&home);
    writer.append_about(TAG, 5);
    let listed = home.json(&["receipts", "list"]);
    let reference = listed["receipts"][4]["receipt_ref"].as_str().unwrap();
    let shown = home.json(&["receipts", "show", reference]);
    assert_eq!(shown["subject_tag"], TAG);
    let hold = ["receipts", "hold", "--reason=litigation.7"];
    let hold = [&hold[..], &["--subject-tag", TAG]].concat();
    let placed = home.json(&hold);
    let hold = placed["hold"].as_str().unwrap();
    assert!(hold.starts_with("urn:cl:hold:"), "{placed}");
    let holds = home.json(&["receipts", "holds"]);
    let held = &holds["holds"][0];
    assert_eq!(
        (&held["hold"], &held["covers"], &held["name"]),
        (&json!(hold), &json!("subject"), &json!(TAG))
    );
    assert_eq!(held["reason"], "litigation.7");
    assert_eq!(
        held["placed_by"],
        "spiffe://context-layer.local/operator/clctl"
    );
    let table = home.ok(&["receipts", "holds"]);
    assert!(
        table.contains(hold) && table.contains("litigation.7"),
        "{table}"
    );
    assert_eq!(erase(&home), json!({"erased": 0, "held": 5}));
    home.json(&["receipts", "release", hold, "--reason=litigation.over"]);
    assert_eq!(erase(&home), json!({"erased": 5, "held": 0}));
    assert_eq!(
        home.failure(&["receipts", "release", hold, "--reason=again"]),
        (4, "HOLD_NOT_FOUND".to_owned())
    );
    assert_eq!(
        home.failure(&["receipts", "show", reference]),
        (4, "RECEIPT_ERASED".to_owned())
    );
    let explained = home.ok(&[
        "receipts",
        "explain",
        placed["receipt_ref"].as_str().unwrap(),
    ]);
    assert!(explained.contains("put receipts on hold"), "{explained}");

    // Two of the policy, five tombstones, hold, release and erasure.
    let verified = home.json(&["receipts", "verify"]);
    assert_eq!(
        (&verified["entries"], &verified["erased"]),
        (&json!(10), &json!(5))
    );
    let listed = home.json(&["receipts", "list"]);
    let receipts = listed["receipts"].as_array().unwrap();
    let tombstones = receipts.iter().filter(|it| it.get("erased_at").is_some());
    assert_eq!(tombstones.count(), 5);
    let table = home.ok(&["receipts", "list"]);
    assert_eq!(table.matches("(erased)").count(), 5, "{table}");
    an_export_keeps_tombstones(&home);
}

fn an_export_keeps_tombstones(home: &TestHome) {
    let folder = home.beside("export");
    let exported = home.json(&["receipts", "export", &folder]);
    assert_eq!(
        (&exported["entries"], &exported["erased"]),
        (&json!(10), &json!(5))
    );
    let verify = ["receipts", "verify", "--export", &folder];
    assert_eq!(home.json(&verify)["erased"], 5);
    let lines = Path::new(&folder).join("receipts.jsonl");
    let text = fs::read_to_string(&lines).unwrap();
    let offline = lines.display().to_string();
    let verified = home.json(&["receipts", "verify", "--offline", &offline]);
    assert_eq!(
        (&verified["entries"], &verified["erased"]),
        (&json!(10), &json!(5))
    );
    assert!(!text.contains(TAG), "a tag is in no export");
    let portable = fs::read(Path::new(&folder).join("portable/receipts.log")).unwrap();
    let state = cl_model::log::LogState::verify(&portable).unwrap();
    assert_eq!(state.entries(), 5);

    // Neither another leaf nor another place passes for a tombstone.
    let third = text.lines().nth(2).unwrap();
    let line: Value = serde_json::from_str(third).unwrap();
    let leaf = line["leaf"].as_str().unwrap();
    let place = || "receipts.jsonl line 3".to_owned();
    for (from, to, code) in [
        (
            leaf,
            "01".repeat(33).as_str(),
            "RECEIPT_LOG_RECEIPT_MISMATCH",
        ),
        (leaf, "zz", "RECEIPT_LOG_LINE_MALFORMED"),
        (
            "\"sequence\":3}",
            "\"sequence\":4}",
            "RECEIPT_LOG_LINE_ORDER",
        ),
        (
            "\\nindex 2\\n",
            "\\nindex 3\\n",
            "RECEIPT_LOG_PROOF_MISMATCH",
        ),
    ] {
        assert_ne!(text, text.replacen(from, to, 1), "{from}");
        fs::write(&lines, text.replacen(from, to, 1)).unwrap();
        assert_eq!(fault(home, &verify), (code.to_owned(), place()));
    }
    fs::write(&lines, text).unwrap();
    assert_eq!(home.json(&verify)["verified"], true);
}

#[test]
fn holds_and_erasures_are_refused_as_they_should_be() {
    let home = TestHome::new();
    let _up = home.up();
    for target in [&[][..], &["--all", "--bundle=urn:cl:bundle:x"]] {
        let args = [&["receipts", "hold", "--reason=a.b"][..], target].concat();
        assert_eq!(home.run(&args).code, Some(2));
    }
    let invalid = (1, "INVALID_FIELD".to_owned());
    for args in [
        ["receipts", "hold", "--all", "--reason=A person"].as_slice(),
        &["receipts", "hold", "--subject-tag=x", "--reason=a.b"],
        &["receipts", "release", "x", "--reason=a.b"],
        &["receipts", "erase", "--subject-tag=x", "--reason=a.b"],
    ] {
        assert_eq!(home.failure(args), invalid, "{args:?}");
    }
    let missing = ["receipts", "hold", "--receipt=x", "--reason=a.b"];
    assert_eq!(home.failure(&missing), (4, "RECEIPT_NOT_FOUND".to_owned()));
}
