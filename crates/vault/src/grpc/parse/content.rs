//! The content of a captured item. What is out of its bounds is no content.

mod meeting;

use cl_model::digest::Digest;
use cl_model::scalar::Name;
use cl_model::time::UnixTime;
use cl_wire::vault::v1 as wire;

use self::meeting::meetings;
use crate::core::content::{Calendar, Mail, Mailbox, TextOrigin, TextPart};

const MAX_MAILBOXES: usize = 256;
const MAX_MAILBOX_CHARS: usize = 320;
const MAX_SUBJECT_LINE_CHARS: usize = 2000;
const MAX_TEXT_PARTS: usize = 256;
const MAX_TEXT_BYTES: usize = 262_144;
const MAX_MARKS: usize = 64;
const MAX_MARK_BYTES: usize = 120;
const MAX_OFFSET_MINUTES: i32 = 24 * 60;

pub(super) fn mail(message: wire::MailContent) -> Option<Mail> {
    let text_bytes: usize = message.text.iter().map(|part| part.text.len()).sum();
    let is_bounded = message.to.len() <= MAX_MAILBOXES
        && message.cc.len() <= MAX_MAILBOXES
        && is_short(&message.subject_line, MAX_SUBJECT_LINE_CHARS)
        && message.text.len() <= MAX_TEXT_PARTS
        && text_bytes <= MAX_TEXT_BYTES
        && message.marks.len() <= MAX_MARKS
        && message
            .utc_offset_minutes
            .is_none_or(|offset| offset.abs() <= MAX_OFFSET_MINUTES);
    if !is_bounded {
        return None;
    }
    Some(Mail {
        from: all(message.from, mailbox)?.pop(),
        to: all(message.to, mailbox)?,
        cc: all(message.cc, mailbox)?,
        subject_line: message.subject_line,
        sent_at: match message.sent_at {
            None => None,
            Some(time) => Some(instant(&time)?),
        },
        utc_offset_minutes: message.utc_offset_minutes,
        text: all(message.text, text_part)?,
        marks: all(message.marks, mark)?,
        thread: match message.thread_digest {
            None => None,
            Some(text) => Some(Digest::parse(&text)?),
        },
        meetings: meetings(message.meetings)?,
    })
}

pub(super) fn calendar(message: wire::CalendarContent) -> Option<Calendar> {
    if message.marks.len() > MAX_MARKS {
        return None;
    }
    Some(Calendar {
        meetings: meetings(message.meetings)?,
        marks: all(message.marks, mark)?,
    })
}

/// Reads all or nothing.
fn all<T, U>(
    messages: impl IntoIterator<Item = T>,
    read: impl Fn(T) -> Option<U>,
) -> Option<Vec<U>> {
    messages.into_iter().map(read).collect()
}

fn mailbox(message: wire::Mailbox) -> Option<Mailbox> {
    let is_bounded =
        is_short(&message.address, MAX_MAILBOX_CHARS) && is_short(&message.name, MAX_MAILBOX_CHARS);
    is_bounded.then_some(Mailbox {
        address: message.address,
        name: message.name,
    })
}

fn text_part(message: wire::TextPart) -> Option<TextPart> {
    let origin = match wire::TextOrigin::try_from(message.origin).ok()? {
        wire::TextOrigin::Author => TextOrigin::Author,
        wire::TextOrigin::Quoted => TextOrigin::Quoted,
        wire::TextOrigin::Forwarded => TextOrigin::Forwarded,
        wire::TextOrigin::Signature => TextOrigin::Signature,
        wire::TextOrigin::Unspecified => return None,
    };
    Some(TextPart {
        origin,
        text: message.text,
    })
}

fn mark(text: String) -> Option<Name> {
    (text.len() <= MAX_MARK_BYTES)
        .then(|| Name::new(text))
        .flatten()
}

fn instant(time: &prost_types::Timestamp) -> Option<UnixTime> {
    let is_whole = (0..1_000_000_000).contains(&time.nanos);
    let milliseconds = time
        .seconds
        .checked_mul(1000)?
        .checked_add(i64::from(time.nanos) / 1_000_000)?;
    let read = UnixTime::from_milliseconds(milliseconds);
    // Times that the protocol cannot write are clamped, and so not the ones that were sent.
    (is_whole && read.milliseconds() == milliseconds).then_some(read)
}

fn is_short(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn good() -> wire::MailContent {
        wire::MailContent {
            subject_line: "Launch".to_owned(),
            ..wire::MailContent::default()
        }
    }

    #[test]
    fn what_is_out_of_its_bounds_is_no_content() {
        assert!(mail(good()).is_some());
        let mailbox = |chars: usize| wire::Mailbox {
            address: "a".repeat(chars),
            name: String::new(),
        };
        let part = |origin: i32, bytes: usize| wire::TextPart {
            origin,
            text: "a".repeat(bytes),
        };
        let changes: [fn(&mut wire::MailContent); 4] = [
            |it| it.subject_line = "a".repeat(2001),
            |it| it.utc_offset_minutes = Some(1441),
            |it| it.marks = vec!["Not A Mark".to_owned()],
            |it| it.thread_digest = Some("sha256:".to_owned()),
        ];
        for change in changes {
            let mut message = good();
            change(&mut message);
            assert!(mail(message).is_none());
        }
        let times = [(0, -1), (0, 1_000_000_000), (i64::MAX, 0)];
        for (seconds, nanos) in times {
            let mut message = good();
            message.sent_at = Some(prost_types::Timestamp { seconds, nanos });
            assert!(mail(message).is_none(), "{seconds} {nanos}");
        }
        for (to, text) in [
            (vec![mailbox(1); 257], Vec::new()),
            (vec![mailbox(321)], Vec::new()),
            (Vec::new(), vec![part(1, 1); 257]),
            (Vec::new(), vec![part(1, 262_145)]),
            (Vec::new(), vec![part(0, 1)]),
            (Vec::new(), vec![part(99, 1)]),
        ] {
            let mut message = good();
            message.to = to;
            message.text = text;
            assert!(mail(message).is_none());
        }
    }

    proptest! {
        #[test]
        fn foreign_messages_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            if let Ok(message) = wire::MailContent::decode(bytes.as_slice()) {
                let read = mail(message.clone());
                prop_assert!(read.is_none_or(|read| read.text.len() == message.text.len()));
            }
        }
    }
}
