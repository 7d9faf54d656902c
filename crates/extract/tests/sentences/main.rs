//! One sentence a row: what it yields and, where something is left, with which mark.

#![allow(clippy::unwrap_used, reason = "tests")]

mod amounts;
mod commitments;
mod dates;
mod deadlines;
mod doubts;
mod meetings;
mod qualified;
mod relative;
mod requests;
mod turns;

use cl_extract::{Extraction, Mailbox, Message, Origin, TextPart, extract};
use cl_model::time::UnixTime;

/// A sentence; the days asked for; the amounts due; whether its author asks for something; a mark
/// that must be there, on a candidate or on the message (none where it is empty).
pub(crate) type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    bool,
    &'static str,
);

/// A message of Wednesday 28 October 2026 from somebody to the owner.
pub(crate) fn message(text: &str) -> Message {
    Message {
        from: Some(mailbox("nora@quayside.example")),
        to: vec![mailbox("owner@home.example")],
        sent_at: UnixTime::parse("2026-10-28T10:12:00Z"),
        utc_offset_minutes: Some(0),
        text: vec![TextPart {
            origin: Origin::Author,
            text: text.to_owned(),
        }],
        owner_addresses: vec!["owner@home.example".to_owned()],
        ..Message::default()
    }
}

fn mailbox(address: &str) -> Mailbox {
    Mailbox {
        address: address.to_owned(),
        name: String::new(),
    }
}

pub(crate) fn dates(found: &Extraction) -> Vec<String> {
    let all = found.candidates.iter();
    all.filter(|it| it.predicate == "requested_delivery_date")
        .map(|it| it.value.as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn amounts(found: &Extraction) -> Vec<String> {
    let all = found.candidates.iter();
    all.filter(|it| it.predicate == "amount_due")
        .map(|it| {
            format!(
                "{} {}",
                it.value["amount"].as_str().unwrap(),
                it.value["currency"].as_str().unwrap()
            )
        })
        .collect()
}

pub(crate) fn asks(found: &Extraction) -> bool {
    found
        .candidates
        .iter()
        .any(|it| it.predicate == "requesting_stakeholder")
}

pub(crate) fn has_mark(found: &Extraction, mark: &str) -> bool {
    found.marks.contains(&mark) || found.candidates.iter().any(|it| it.marks.contains(&mark))
}

/// Every row is read as it says.
pub(crate) fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for (text, days, sums, asked, expected_mark) in rows {
        let found = extract(&message(text));
        let is_right = dates(&found) == *days
            && amounts(&found) == *sums
            && asks(&found) == *asked
            && (expected_mark.is_empty() || has_mark(&found, expected_mark));
        if !is_right {
            wrong.push(format!(
                "{text}\n   {:?} {:?} asks {} marks {:?} {:?}",
                dates(&found),
                amounts(&found),
                asks(&found),
                found.marks,
                found.candidates
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

/// A sentence; the values of some predicates in the order of the text; a mark that must be there (none
/// where it is empty).
pub(crate) type ValueRow = (&'static str, &'static [&'static str], &'static str);

/// Every row has these values of these predicates, and no others of them.
pub(crate) fn check_values(predicates: &[&str], rows: &[ValueRow]) {
    let mut wrong = Vec::new();
    for (text, expected, expected_mark) in rows {
        let found = extract(&message(text));
        let all = found.candidates.iter();
        let values: Vec<&str> = all
            .filter(|it| predicates.contains(&it.predicate))
            .map(|it| it.value.as_str().unwrap())
            .collect();
        let is_marked = expected_mark.is_empty() || has_mark(&found, expected_mark);
        if values != *expected || !is_marked {
            wrong.push(format!("{text}\n   {values:?} {:?}", found.marks));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
