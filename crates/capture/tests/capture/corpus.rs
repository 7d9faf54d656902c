//! Replays the committed fuzz corpus, and random bytes, through what the fuzz targets do.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[path = "../../../../fuzz/mail_bodies.rs"]
mod mail_bodies;

fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        body(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "an empty corpus");
}

#[test]
fn the_mbox_corpus_passes() {
    replay("mbox", mail_bodies::mbox);
}

#[test]
fn the_message_corpus_passes() {
    replay("mail_message", mail_bodies::message);
}

#[test]
fn the_calendar_corpus_passes() {
    replay("calendar", mail_bodies::calendar);
}

#[test]
fn the_corpus_of_vendor_parts_passes() {
    replay("tnef", mail_bodies::tnef);
}

/// Pieces of which messages and mailboxes are made, in any order.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("From - Thu Oct 29 08:02:11 2026\n".to_owned()),
        Just("Content-Type: multipart/mixed; boundary=b\n".to_owned()),
        Just("Content-Type: text/html; charset=x\n".to_owned()),
        Just("Content-Transfer-Encoding: base64\n".to_owned()),
        Just("Subject: =?utf-8?q?=ff?=\n".to_owned()),
        Just("From: \"a\" <b@c.example>, =?x?b?y?=\n".to_owned()),
        Just("Date: 1 Jan 26 1:1 Z\n".to_owned()),
        Just("\n".to_owned()),
        Just("--b\n".to_owned()),
        Just("--b--\n".to_owned()),
        Just(">From x\n".to_owned()),
        Just("<div style='display:none'><p".to_owned()),
        "[ -~\\n]{0,20}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_pass(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        mail_bodies::mbox(&bytes);
        mail_bodies::message(&bytes);
        mail_bodies::calendar(&bytes);
        mail_bodies::tnef(&bytes);
    }

    #[test]
    fn anything_that_looks_like_mail_passes(text in text()) {
        mail_bodies::mbox(text.as_bytes());
        mail_bodies::message(text.as_bytes());
    }
}
