//! What the rules of extraction find in the labelled corpus, whole messages through the reader of mail.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod corpus;
mod kinds;
mod score;

use std::collections::BTreeSet;
use std::process::Command;

use cl_wire::vault::v1::TextOrigin;

use crate::corpus::{LABELS, Part, found, read};
use crate::score::{Slip, score};

/// What the measured part holds the rules to, for each predicate.
const MIN_PRECISION: f64 = 0.95;
const MIN_RECALL: f64 = 0.85;

/// Names a run of this program that prints what it finds, for another time zone.
const PRINTS: &str = "CL_EXTRACTION_PRINTS";

fn listed(slips: &[Slip]) -> String {
    let lines = slips.iter().map(|slip| {
        let kind = if slip.is_missed { "missed" } else { "wrong" };
        format!("{} {} {kind} {}", slip.id, slip.predicate, slip.value)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_measured_part_holds_its_floor() {
    let messages = read(Part::Measured);
    let (scores, _) = score(&messages, |it| found(&it.extract()));
    // Which messages slip is not said: rules are not made after them.
    let below: Vec<String> = scores
        .iter()
        .filter(|(_, it)| it.precision() < MIN_PRECISION || it.recall() < MIN_RECALL)
        .map(|(predicate, it)| {
            let (precision, recall) = (it.precision(), it.recall());
            format!("{predicate}: precision {precision:.3}, recall {recall:.3}, {it:?}")
        })
        .collect();
    assert!(below.is_empty(), "{}", below.join("\n"));
}

#[test]
fn the_working_part_is_read_without_a_slip_that_is_not_known() {
    let messages = read(Part::Working);
    let (scores, slips) = score(&messages, |it| found(&it.extract()));
    let wrong: usize = scores.values().map(|it| it.wrong).sum();
    let missed: usize = scores.values().map(|it| it.missed).sum();
    println!("{}", listed(&slips));
    assert!(wrong == 0 && missed <= 6, "{wrong} {missed}");
}

#[test]
fn the_corpus_is_well_formed() {
    const MEMBERS: [&str; 17] = [
        "id", "voice", "body", "html", "sent", "to", "cc", "headers", "asks", "by", "due",
        "promised", "meets", "starts", "phone", "email", "summary",
    ];
    let mut ids = BTreeSet::new();
    let mut voices = BTreeSet::new();
    for part in [Part::Working, Part::Measured] {
        for message in read(part) {
            for member in message.members() {
                assert!(MEMBERS.contains(&member) || member == "may", "{member}");
            }
            let facts = message.facts();
            let is_asked = !facts["requesting_stakeholder"].is_empty()
                || !message.allowed()["requesting_stakeholder"].is_empty();
            assert!(
                is_asked || facts["request_summary"].is_empty(),
                "{}",
                message.id
            );
            voices.insert(message.voice().to_owned());
            assert!(ids.insert(message.id), "an id is there twice");
        }
    }
    assert!(ids.len() >= 300 && voices.len() >= 20, "{}", ids.len());
}

#[test]
fn words_that_are_hidden_or_of_others_give_no_claim() {
    for part in [Part::Working, Part::Measured] {
        for message in read(part) {
            // The same words as a quotation, a forwarded message, and hidden.
            let mail = message.mail();
            let (head, body) = mail.split_once("\r\n\r\n").unwrap();
            let html = head.replace("text/plain", "text/html");
            let lines = |prefix: &str| {
                let lines = body.lines().map(|line| format!("{prefix}{line}\r\n"));
                lines.collect::<String>()
            };
            let quoted = if head == html {
                format!("{html}\r\n\r\n<p>Thanks.</p><blockquote type=\"cite\">{body}</blockquote>")
            } else {
                format!("{head}\r\n\r\nThanks.\r\n\r\n{}", lines("> "))
            };
            let forwarded = format!(
                "{}\r\n\r\nFYI\r\n\r\n---------- Forwarded message ---------\r\n{}",
                html.replace("text/html", "text/plain"),
                lines("")
            );
            let hidden =
                format!("{html}\r\n\r\n<p>Thanks.</p><div style=\"display:none\">{body}</div>");
            for changed in [quoted, forwarded, hidden] {
                let extraction = corpus::extract(changed.as_bytes());
                assert!(
                    extraction.candidates.is_empty(),
                    "{}\n{changed}",
                    message.id
                );
            }
        }
    }
}

#[test]
fn every_claim_says_which_words_it_came_from() {
    for part in [Part::Working, Part::Measured] {
        for message in read(part) {
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let own = [TextOrigin::Author, TextOrigin::Signature];
            let text = plain(&corpus::words(&message.mail(), &own));
            for candidate in message.extract().candidates {
                let words = plain(candidate.words.trim_matches('…'));
                assert!(!words.is_empty() && candidate.words.len() <= 400);
                assert!(text.contains(&words), "{}: {words}", message.id);
            }
        }
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this is how the test tells its other runs what to do"
)]
fn no_answer_depends_on_the_zone_of_the_machine() {
    let all = || {
        let parts = [Part::Working, Part::Measured].into_iter();
        let messages = parts.flat_map(read).map(|it| (it.id.clone(), it.extract()));
        let kinds = kinds::all().into_iter();
        let kinds = kinds.map(|it| (it.name.to_owned(), corpus::extract(&it.mail)));
        let lines = messages.chain(kinds).map(|(id, extraction)| {
            let candidates = extraction.candidates.iter();
            let values = candidates.map(|it| format!("{}={}", it.predicate, it.value));
            let values = values.collect::<Vec<_>>();
            format!("{id} {values:?} {:?}", extraction.marks)
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    if std::env::var_os(PRINTS).is_some() {
        println!("found<{}>", all());
        return;
    }
    let here = all();
    for zone in ["Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kolkata"] {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["no_answer_depends", "--nocapture", "--test-threads=1"])
            .env("TZ", zone)
            .env(PRINTS, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8(run.stdout).unwrap();
        let (_, rest) = printed.split_once("found<").unwrap();
        let (there, _) = rest.rsplit_once('>').unwrap();
        assert!(there == here, "other claims in {zone}");
    }
}

#[test]
fn labels_name_published_predicates() {
    let vocabulary = cl_model::vocabulary::Vocabulary::published().unwrap();
    // Calendars alone say these; no rule reads them out of words.
    let of_calendars = ["meeting_organizer", "meeting_time"];
    let published = vocabulary.iter().map(|it| it.predicate.as_str());
    let read: Vec<_> = published.filter(|it| !of_calendars.contains(it)).collect();
    assert_eq!(read, LABELS.map(|(predicate, _)| predicate));
}
