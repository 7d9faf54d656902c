//! What puts all of a message in doubt, or takes it back.

use cl_extract::{extract, mark};

use crate::message;

#[test]
fn what_the_reader_doubts_lowers_all_that_is_taken() {
    let words = "Please send the file by tomorrow.";
    let plain = extract(&message(words));
    for mark in [
        mark::JUNK,
        mark::DRAFT,
        mark::THROWN_AWAY,
        mark::SEVERAL_AUTHORS,
        mark::STYLE_NOT_READ,
        mark::OVERRIDDEN,
    ] {
        let mut doubted = message(words);
        doubted.marks.push(mark.to_owned());
        let found = extract(&doubted);
        assert_eq!(found.candidates.len(), plain.candidates.len());
        for (one, other) in found.candidates.iter().zip(&plain.candidates) {
            assert!(one.confidence < other.confidence * 0.7, "{mark}");
            assert!(one.marks.contains(&mark), "{mark}");
        }
    }
    for mark in [mark::FAR_FROM_RECEIVED, mark::DATE_REPEATED] {
        let mut doubted = message(words);
        doubted.marks.push(mark.to_owned());
        let found = extract(&doubted);
        for candidate in found.candidates {
            let is_day = candidate.predicate == "requested_delivery_date";
            assert_eq!(candidate.marks.contains(&mark), is_day, "{mark}");
        }
    }
}

#[test]
fn a_meeting_that_was_called_off_has_no_day() {
    let found = extract(&message(
        "The meeting on 12 November 2026 has been called off.",
    ));
    assert!(found.candidates.is_empty() && !found.marks.is_empty());
}
