//! What the fuzz targets of mail and calendars do with one input. The ordinary tests of `cl-capture` replay the
//! committed corpus through the same functions.

#![allow(
    clippy::expect_used,
    dead_code,
    reason = "a broken promise must panic here, and each target uses one of these"
)]

use cl_capture::calendar;
use cl_capture::event::{self, Origin, Run};
use cl_capture::mail;
use cl_capture::mbox::{self, Mbox};
use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use cl_wire::vault::v1::Meeting;

/// Messages stand in the file where they say, in order, and a bound changes none of that.
pub(crate) fn mbox(bytes: &[u8]) {
    let mut whole = Mbox::new(bytes, u64::MAX);
    let mut bounded = Mbox::new(bytes, 16);
    let mut position = 0;
    while let Some(message) = whole.next_message().expect("memory can be read") {
        let start = usize::try_from(message.start).expect("an offset");
        assert!(start >= position, "messages overlap");
        position = start + message.bytes.len();
        assert_eq!(bytes.get(start..position), Some(message.bytes.as_slice()));
        let cut = bounded
            .next_message()
            .expect("memory can be read")
            .expect("the same message");
        assert_eq!((cut.start, cut.length), (message.start, message.length));
        if let Some(digest) = cut.cut {
            assert_eq!(digest, Digest::of_bytes(&message.bytes));
        }
        let length = message.bytes.len();
        assert!(mbox::unquote(message.bytes).0.len() <= length);
    }
    assert!(
        bounded
            .next_message()
            .expect("memory can be read")
            .is_none()
    );
}

/// What is read keeps to the bounds of the contract and makes a valid event.
pub(crate) fn message(bytes: &[u8]) {
    let Ok(reading) = mail::read(bytes, &[]) else {
        return;
    };
    let content = &reading.content;
    let text: usize = content.text.iter().map(|part| part.text.len()).sum();
    assert!(text <= 262_144 && content.text.len() <= 256 && content.marks.len() <= 64);
    assert!(content.subject_line.chars().count() <= 2000);
    meetings(&content.meetings);
    let document = event::document(&reading.facts, &content.marks, &origin(bytes), run());
    assert!(document.expect("a valid event").len() <= 262_144);
}

fn run() -> Run<'static> {
    Run {
        subject_ref: "vault://subjects/primary",
        captured_at: UnixTime::from_milliseconds(0),
    }
}

fn origin(bytes: &[u8]) -> Origin {
    Origin {
        digest: Digest::of_bytes(bytes),
        byte_length: bytes.len() as u64,
        path_digest: Digest::ZERO,
        deleted_as: None,
        flags: Vec::new(),
    }
}

fn meetings(meetings: &[Meeting]) {
    let times: usize = meetings.iter().map(|meeting| meeting.times.len()).sum();
    assert!(meetings.len() <= 32 && times <= 40);
    for meeting in meetings {
        let is_about_all =
            meeting.is_cancelled && !meeting.is_one_of_series && meeting.organizer.is_some();
        assert!(is_about_all || !meeting.times.is_empty());
        assert!(meeting.is_one_of_series || !meeting.is_and_later);
        assert!(meeting.marks.len() <= 8);
        for time in &meeting.times {
            assert!(time.time.len() <= 41 && (10..=20).contains(&time.occurrence.len()));
        }
    }
}

/// What is read of a calendar keeps to the bounds of the contract and makes a valid event.
pub(crate) fn calendar(bytes: &[u8]) {
    let reading = calendar::read(bytes, &[]);
    assert!(reading.marks.len() <= 64);
    meetings(&reading.meetings);
    let document = event::calendar_document(&reading.facts, &reading.marks, &origin(bytes), run());
    assert!(document.expect("a valid event").len() <= 262_144);
    let invitation = [
        b"From: a@b.example\r\nContent-Type: text/calendar\r\n\r\n".as_slice(),
        bytes,
    ];
    message(&invitation.concat());
}

/// A part in a vendor's format is marked, and nothing of it is read.
pub(crate) fn tnef(bytes: &[u8]) {
    let head =
        b"From: a@b.example\r\nContent-Type: multipart/mixed; boundary=\"-b-\"\r\n\r\n---b-\r\n\
                 Content-Type: application/octet-stream\r\n\r\n\x78\x9f\x3e\x22";
    let whole = [head.as_slice(), bytes].concat();
    message(&whole);
    let reading = mail::read(&whole, &[]).expect("a message");
    let is_marked = reading
        .content
        .marks
        .iter()
        .any(|mark| mark == "attachment.tnef_not_read");
    let is_unread = reading
        .content
        .marks
        .iter()
        .any(|mark| mark.starts_with("mime.") || mark.starts_with("header."));
    assert!(is_marked || is_unread, "{:?}", reading.content.marks);
}
