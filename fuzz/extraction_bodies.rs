//! What the fuzz target of extraction does with one input. The ordinary tests of `cl-extract` replay the
//! committed corpus through the same function.

#![allow(clippy::expect_used, reason = "a broken promise must panic here")]

use cl_extract::{MAX_CANDIDATES, Mailbox, Message, Origin, TextPart, extract, mark, rule};
use cl_model::scalar::Predicate;
use cl_model::time::UnixTime;
use cl_model::vocabulary::Vocabulary;

/// What comes out is bounded, published, explained, and only in the author's own words. Lines with `>`
/// are quoted, those below `-- ` a signature.
pub(crate) fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts: Vec<TextPart> = Vec::new();
    let mut below = Origin::Author;
    for line in text.lines() {
        if line == "-- " {
            below = Origin::Signature;
        }
        let origin = if line.starts_with('>') {
            Origin::Quoted
        } else {
            below
        };
        match parts.last_mut().filter(|part| part.origin == origin) {
            Some(part) => {
                part.text.push('\n');
                part.text.push_str(line);
            }
            None => parts.push(TextPart {
                origin,
                text: line.to_owned(),
            }),
        }
    }
    let mailbox = |address: &str| Mailbox {
        address: address.to_owned(),
        name: String::new(),
    };
    let message = Message {
        from: Some(mailbox("nora@quayside.example")),
        to: vec![mailbox("owner@home.example")],
        sent_at: UnixTime::parse("2026-10-28T10:12:00Z"),
        utc_offset_minutes: Some(60),
        text: parts,
        owner_addresses: vec!["owner@home.example".to_owned()],
        ..Message::default()
    };
    let found = extract(&message);
    assert!(found == extract(&message), "the same answer again");
    assert!(found.candidates.len() <= MAX_CANDIDATES);
    let own = message
        .text
        .iter()
        .filter(|part| part.origin != Origin::Quoted);
    let own: String = own.map(|part| plain(&part.text)).collect();
    let vocabulary = Vocabulary::published().expect("the published list");
    for candidate in &found.candidates {
        let predicate = Predicate::new(candidate.predicate).expect("a predicate");
        let published = vocabulary.find(&predicate).expect("a published predicate");
        assert!(published.datatype.admits(&candidate.value));
        assert!(candidate.confidence > 0.0 && candidate.confidence < 1.0);
        assert!(rule::reason(candidate.rule).is_some());
        assert!(candidate.marks.iter().all(|it| mark::meaning(it).is_some()));
        assert!(candidate.words.len() <= 400);
        assert!(own.contains(&plain(candidate.words.trim_matches('…'))));
    }
    assert!(found.marks.iter().all(|it| mark::meaning(it).is_some()));
}

/// Without white space, which wrapped lines change.
fn plain(text: &str) -> String {
    text.chars().filter(|it| !it.is_whitespace()).collect()
}
