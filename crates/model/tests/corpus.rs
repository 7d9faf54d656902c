//! Replays the committed fuzzing corpus through the fuzz targets' own bodies.

#![allow(clippy::expect_used, reason = "tests")]

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

use std::fs;
use std::path::PathBuf;

fn replay(target: &str, body: fn(&[u8])) {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
    let entries = fs::read_dir(corpus.join(target)).expect("a corpus");
    let mut replayed = 0;
    for entry in entries {
        body(&fs::read(entry.expect("an entry").path()).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0, "{target} has no corpus");
}

#[test]
fn strict_json_holds_on_its_corpus() {
    replay("strict_json", bodies::strict_json);
}

#[test]
fn dates_hold_on_their_corpus() {
    replay("dates", bodies::dates);
}

#[test]
fn envelopes_hold_on_their_corpus() {
    replay("envelope", bodies::envelope);
}

#[test]
fn policy_snapshots_hold_on_their_corpus() {
    replay("policy_snapshot", bodies::policy_snapshot);
}

#[test]
fn log_import_holds_on_its_corpus() {
    replay("log_import", bodies::log_import);
}

#[test]
fn passkeys_hold_on_their_corpus() {
    replay("passkey", bodies::passkey);
}
