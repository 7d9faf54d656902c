//! Replays the committed fuzz corpus, and random text, through what the fuzz target does.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[path = "../../../fuzz/extraction_bodies.rs"]
mod extraction_bodies;

#[test]
fn the_corpus_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/extraction");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        extraction_bodies::text(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "an empty corpus");
}

/// Pieces of which messages are made, in any order.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "please ",
        "send ",
        "the deck ",
        "by ",
        "on ",
        "Friday ",
        "5 November ",
        "2026 ",
        "at ",
        "3 pm ",
        "let's meet ",
        "see you ",
        "I will ",
        "you will have ",
        "call me on ",
        "+44 20 7946 0123 ",
        "nora@quayside.example ",
        "EUR 12.50 ",
        "is due ",
        ". ",
        "? ",
        "\n",
        "\n\n",
        "> ",
        "-- \n",
        "Regards\n",
        "T: ",
        "not ",
        "if ",
        "until ",
        "\u{202e}",
        "“",
        "\"",
        "next ",
        "our call is ",
    ];
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_pass(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        extraction_bodies::text(&bytes);
    }

    #[test]
    fn anything_that_looks_like_a_message_passes(text in text()) {
        extraction_bodies::text(text.as_bytes());
    }
}
