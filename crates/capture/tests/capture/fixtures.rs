//! The committed messages give what `expected.json` says, in every form in which they stand.

use std::collections::BTreeMap;
use std::fs;

use cl_capture::mail::{self, Reading};
use cl_capture::mbox::{self, Mbox};
use cl_extract::{Extraction, Message, Origin};
use cl_model::time::UnixTime;
use cl_model::vocabulary::Vocabulary;
use cl_wire::vault::v1::{MailContent, Mailbox, TextOrigin};
use serde_json::{Value, json};

use crate::support::{OWNER, fixtures};

fn message(content: &MailContent) -> Message {
    let mailbox = |it: &Mailbox| cl_extract::Mailbox {
        address: it.address.clone(),
        name: it.name.clone(),
    };
    let origin = |it| match it {
        TextOrigin::Author => Origin::Author,
        TextOrigin::Quoted => Origin::Quoted,
        TextOrigin::Forwarded => Origin::Forwarded,
        TextOrigin::Signature => Origin::Signature,
        TextOrigin::Unspecified => panic!("a part without an origin"),
    };
    Message {
        from: content.from.as_ref().map(mailbox),
        to: content.to.iter().map(mailbox).collect(),
        cc: content.cc.iter().map(mailbox).collect(),
        subject_line: content.subject_line.clone(),
        sent_at: content
            .sent_at
            .map(|it| UnixTime::from_milliseconds(it.seconds * 1000)),
        utc_offset_minutes: content.utc_offset_minutes,
        text: content
            .text
            .iter()
            .map(|it| cl_extract::TextPart {
                origin: origin(it.origin()),
                text: it.text.clone(),
            })
            .collect(),
        owner_addresses: vec![OWNER.to_owned()],
        marks: content.marks.clone(),
    }
}

/// What a message comes to, in the form of `expected.json`.
fn summary(reading: &Reading) -> Value {
    let found: Extraction = cl_extract::extract(&message(&reading.content));
    let claims: Vec<Value> = found
        .candidates
        .iter()
        .map(|it| json!({"predicate": it.predicate, "value": it.value, "marks": it.marks, "confidence": it.confidence}))
        .collect();
    json!({
        "author": reading.content.from.as_ref().map(|it| it.address.clone()),
        "sent_at": reading.facts.sent_at.map(|it| it.instant.to_string()),
        "marks": reading.content.marks,
        "claims": claims,
        "left": found.marks,
        "attachments": reading.facts.attachments.iter().map(|it| it.name.clone()).collect::<Vec<_>>(),
    })
}

fn expected() -> BTreeMap<String, Value> {
    let text = fs::read(fixtures().join("expected.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn eml() -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(fixtures().join("eml")).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn every_message_comes_to_what_is_expected() {
    let expected = expected();
    let found: BTreeMap<String, Value> = eml()
        .into_iter()
        .map(|(name, bytes)| (name, summary(&mail::read(&bytes, &[]).unwrap())))
        .collect();
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected));
    for (name, summary) in &found {
        assert_eq!(summary, &expected[name], "{name}");
    }
}

#[test]
fn an_mbox_gives_the_same_messages() {
    let text = fs::read(fixtures().join("lantern.mbox")).unwrap();
    assert!(mbox::begins_like_mbox(&text));
    let mut mbox = Mbox::new(text.as_slice(), 1 << 26);
    let mut found = Vec::new();
    while let Some(message) = mbox.next_message().unwrap() {
        found.push(summary(&mail::read(&message.bytes, &[]).unwrap()));
    }
    assert_eq!(found, expected().into_values().collect::<Vec<_>>());
}

#[test]
fn every_claim_has_a_value_of_its_published_datatype_and_is_never_certain() {
    let vocabulary = Vocabulary::published().unwrap();
    for bytes in eml().into_values() {
        let reading = mail::read(&bytes, &[]).unwrap();
        for candidate in cl_extract::extract(&message(&reading.content)).candidates {
            let predicate = cl_model::scalar::Predicate::new(candidate.predicate).unwrap();
            let published = vocabulary.find(&predicate).unwrap();
            assert!(published.datatype.admits(&candidate.value));
            assert!(candidate.confidence > 0.0 && candidate.confidence < 1.0);
        }
    }
}

#[test]
fn a_reading_does_not_print_what_it_read() {
    let bytes = b"From: canary-name@secret.example\r\nSubject: canary-subject\r\n\r\ncanary-body";
    let reading = mail::read(bytes, &[]).unwrap();
    let printed = format!("{reading:?} {:?}", message(&reading.content));
    assert!(!printed.contains("canary"), "{printed}");
    let bytes = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:canary\nSUMMARY:canary\nDTSTART:20261120\n\
        ORGANIZER;CN=canary:mailto:canary@secret.example\nEND:VEVENT\nEND:VCALENDAR\n";
    let reading = cl_capture::calendar::read(bytes, &[]);
    assert_eq!(reading.meetings.len(), 1);
    let printed = format!("{reading:?} {:?}", reading.meetings);
    assert!(!printed.contains("canary"), "{printed}");
}

#[test]
fn a_request_behind_thousands_of_fields_is_found() {
    let mut text = String::new();
    for at in 0..30_000 {
        text.push_str(&format!("X-Hop-{at}: v\r\n"));
    }
    text.push_str("From: ops@drift.example\r\nTo: mira@solberg.example\r\nDate: Thu, 12 Nov 2026 07:00:00 +0000\r\n\r\n");
    text.push_str("Please upload the data by 19 November 2026.\r\n");
    let summary = summary(&mail::read(text.as_bytes(), &[]).unwrap());
    assert_eq!(summary["author"], "ops@drift.example");
    assert_eq!(summary["claims"].as_array().unwrap().len(), 3);
}

#[test]
fn no_field_takes_its_neighbours_along() {
    for odd in [
        "Date: Thu, 29 Oct 2026 09:10:00 K",
        "To: \"open",
        "Cc: <a@b.example",
        "Sender: (open",
        "Content-Type: text/plain; charset=\"utf-8",
        "References: <open",
        "Subject: =?utf-8?q?open",
        "no field",
    ] {
        let text = format!(
            "{odd}\r\nAuto-Submitted: auto-replied\r\nFrom: a@b.example\r\nMessage-ID: <x@y>\r\n\r\nhello\r\n"
        );
        let reading = mail::read(text.as_bytes(), &[]).unwrap();
        assert!(
            reading.content.marks.contains(&mail::AUTOMATIC.to_owned()),
            "{odd}"
        );
        assert_eq!(
            reading.content.from.unwrap().address,
            "a@b.example",
            "{odd}"
        );
        assert!(reading.facts.message_id.is_some(), "{odd}");
    }
}

#[test]
fn what_can_be_made_of_a_broken_encoding_is_read_with_a_mark() {
    for (encoding, body, shown) in [
        ("quoted-printable", "caf=C3=A9 =ZZ", "caf\u{e9} =ZZ"),
        ("quoted-printable", "if a==b then =A=", "if a==b then =A="),
        ("base64", "!! no base64", "!! no base64"),
    ] {
        let text = format!(
            "From: a@b.example\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: {encoding}\r\n\r\n{body}\r\n"
        );
        let content = mail::read(text.as_bytes(), &[]).unwrap().content;
        assert!(content.marks.contains(&"mime.encoding_broken".to_owned()));
        assert_eq!(content.text[0].text, shown);
    }
}

#[test]
fn of_alternatives_the_plain_one_is_read_and_else_html() {
    let read = |parts: &[(&str, &str)]| {
        let parts = parts
            .iter()
            .map(|(kind, text)| format!("--b\n{kind}\n\n{text}\n"));
        let kind = "Content-Type: multipart/alternative; boundary=b";
        let text = format!("From: a@b.example\n{kind}\n\n{}", parts.collect::<String>());
        let reading = mail::read(text.as_bytes(), &[]).unwrap();
        assert!(reading.facts.attachments.is_empty());
        reading
            .content
            .text
            .into_iter()
            .map(|part| part.text.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let plain = ("Content-Type: text/plain", "plain");
    let html = ("Content-Type: text/html", "<p>html</p>");
    let inner = (
        "Content-Type: multipart/related; boundary=i",
        "--i\nContent-Type: text/html\n\n<p>inner</p>\n--i--",
    );
    assert_eq!(read(&[plain, html]), ["plain"]);
    assert_eq!(read(&[html, plain]), ["plain"]);
    assert_eq!(read(&[plain, inner]), ["plain"]);
    assert_eq!(read(&[inner]), ["inner"]);
    assert_eq!(read(&[html]), ["html"]);
}
