//! The mail adapter: one message in, its content and what the event says about it out.
//!
//! Nothing in a message stops a run. What is odd becomes a mark; only bytes without any header
//! field are refused.

mod date;
mod facts;
mod header;
mod html;
mod marks;
mod parameter;
mod part;
mod structure;
mod text;

use std::fmt;

use cl_wire::vault::v1::{MailContent, Mailbox as WireMailbox, TextPart};
use prost_types::Timestamp as WireTimestamp;

pub use self::date::SentAt;
use self::facts::facts;
pub use self::facts::{AttachmentFacts, Facts, Signature};
use self::marks::Marks;
use self::structure::{Mailbox, Structure};

/// The most mailboxes of one field (the contract's bound).
const MAX_MAILBOXES: usize = 256;

/// The most characters of an address or a name.
const MAX_MAILBOX_CHARS: usize = 320;

/// The most characters of the subject line.
const MAX_SUBJECT_CHARS: usize = 2000;

/// The mark of messages that no person wrote for the occasion.
pub const AUTOMATIC: &str = "mail.automatic";

/// The mark of messages to a list or to many.
pub const BULK: &str = "mail.bulk";

/// Bytes without a header field: not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a mail message")]
pub struct NotAMessage;

/// What a message says, and what its event keeps of it. Its `Debug` shows no content.
#[derive(Clone, PartialEq)]
pub struct Reading {
    /// What it says, for extraction.
    pub content: MailContent,
    /// What the event says about it.
    pub facts: Facts,
}

impl fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reading({:?})", self.content.marks)
    }
}

/// Reads a message. `extra_marks` are those of the file it came from.
///
/// # Errors
///
/// [`NotAMessage`] if there is no header field.
pub fn read(bytes: &[u8], extra_marks: &[&str]) -> Result<Reading, NotAMessage> {
    let mut marks = Marks::default();
    for mark in extra_marks {
        marks.add(mark);
    }
    let structure = Structure::of(bytes, &mut marks).ok_or(NotAMessage)?;
    mark_header(&structure, &mut marks);
    mark_kind(&structure, &mut marks);
    mark_parts(&structure, &mut marks);
    let sent_at = sent_at(&structure, &mut marks);
    let from = author(&structure.from, &mut marks);
    let to = recipients(&structure.to, &mut marks);
    let cc = recipients(&structure.cc, &mut marks);
    let text = visible_text(&structure, &mut marks);
    let facts = facts(&structure, sent_at, &marks);
    let content = MailContent {
        from,
        to,
        cc,
        subject_line: shown(&structure.subject, MAX_SUBJECT_CHARS),
        sent_at: sent_at.map(|sent| wire_time(sent.instant.milliseconds())),
        utc_offset_minutes: sent_at.and_then(|sent| sent.utc_offset_minutes),
        text,
        marks: marks.into_list(),
        thread_digest: facts.conversation.map(|digest| digest.to_string()),
    };
    Ok(Reading { content, facts })
}

fn wire_time(milliseconds: i64) -> WireTimestamp {
    WireTimestamp {
        seconds: milliseconds.div_euclid(1000),
        nanos: i32::try_from(milliseconds.rem_euclid(1000)).unwrap_or(0) * 1_000_000,
    }
}

fn mark_header(structure: &Structure<'_>, marks: &mut Marks) {
    let is_broken = structure
        .fields
        .iter()
        .any(|field| std::str::from_utf8(field.raw).is_err());
    marks.add_if(is_broken, "header.not_utf8");
    for (name, mark) in [
        ("from", "header.from_repeated"),
        ("date", "header.date_repeated"),
        ("subject", "header.subject_repeated"),
        ("message-id", "header.message_id_repeated"),
    ] {
        marks.add_if(structure.all(name).nth(1).is_some(), mark);
    }
    marks.add_if(!structure.has("message-id"), "header.message_id_missing");
}

/// Whether a person wrote it for this occasion, and for whom (RFC 3834, RFC 2919, RFC 2369).
fn mark_kind(structure: &Structure<'_>, marks: &mut Marks) {
    let is = |name: &str, values: &[&str]| {
        structure.text(name).is_some_and(|it| {
            let first = it
                .split([';', ' '])
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            values.contains(&first.as_str())
        })
    };
    let subject = structure.subject.to_lowercase();
    let is_away = [
        "automatic reply:",
        "auto:",
        "autoreply:",
        "auto-reply:",
        "out of office:",
        "out of the office",
    ]
    .iter()
    .any(|start| subject.starts_with(start));
    let is_automatic = (structure.has("auto-submitted") && !is("auto-submitted", &["no"]))
        || structure.has("x-autoreply")
        || structure.has("x-autorespond")
        || is("precedence", &["auto_reply"])
        || is("return-path", &["<>"])
        || structure.media_type == "multipart/report"
        || is_away;
    marks.add_if(is_automatic, AUTOMATIC);
    let is_bulk = [
        "list-id",
        "list-unsubscribe",
        "list-post",
        "feedback-id",
        "x-campaign-id",
    ]
    .iter()
    .any(|name| structure.has(name))
        || is("precedence", &["bulk", "list", "junk"]);
    marks.add_if(is_bulk, BULK);
}

fn mark_parts(structure: &Structure<'_>, marks: &mut Marks) {
    let all = || {
        structure
            .attachments
            .iter()
            .map(|it| (it.media_type.as_str(), it.name.as_deref()))
    };
    let has = |kinds: &[&str]| {
        all().any(|(kind, _)| kinds.contains(&kind))
            || kinds.contains(&structure.media_type.as_str())
    };
    let is_tnef = has(&["application/ms-tnef", "application/vnd.ms-tnef"])
        || all().any(|(_, name)| name.is_some_and(|it| it.eq_ignore_ascii_case("winmail.dat")));
    marks.add_if(is_tnef, "attachment.tnef_not_read");
    marks.add_if(
        has(&["text/calendar", "application/ics"]),
        "calendar.not_read",
    );
    marks.add_if(
        has(&["message/rfc822", "message/global"]),
        "attachment.message_not_read",
    );
    marks.add_if(
        has(&[
            "application/pkcs7-signature",
            "application/x-pkcs7-signature",
        ]),
        "signature.smime",
    );
    marks.add_if(has(&["application/pgp-signature"]), "signature.openpgp");
    let is_sealed = has(&["application/pkcs7-mime", "application/x-pkcs7-mime"]);
    marks.add_if(is_sealed, "smime.not_read");
    let is_encrypted = has(&["application/pgp-encrypted", "multipart/encrypted"]);
    marks.add_if(is_encrypted, "content.encrypted");
    let is_partial = has(&["message/partial", "message/external-body"]);
    marks.add_if(is_partial, "content.elsewhere");
    marks.add_if(!structure.attachments.is_empty(), "attachments.not_read");
}

fn sent_at(structure: &Structure<'_>, marks: &mut Marks) -> Option<SentAt> {
    let Some(field) = structure.text("date") else {
        marks.add("date.missing");
        return None;
    };
    let Some(sent) = SentAt::parse(&field) else {
        marks.add("date.unreadable");
        return None;
    };
    marks.add_if(sent.utc_offset_minutes.is_none(), "date.zone_unknown");
    marks.add_if(sent.has_short_year, "date.short_year");
    Some(sent)
}

fn author(from: &[Mailbox], marks: &mut Marks) -> Option<WireMailbox> {
    marks.add_if(from.len() > 1, "author.several");
    let author = from.first().and_then(wire_mailbox);
    marks.add_if(author.is_none(), "author.unreadable");
    let claims_another = author
        .as_ref()
        .is_some_and(|it| it.name.contains('@') && !it.name.contains(&it.address));
    marks.add_if(claims_another, "author.name_holds_address");
    author
}

fn recipients(mailboxes: &[Mailbox], marks: &mut Marks) -> Vec<WireMailbox> {
    let read: Vec<WireMailbox> = mailboxes.iter().filter_map(wire_mailbox).collect();
    marks.add_if(read.len() < mailboxes.len(), "recipients.unreadable");
    marks.add_if(mailboxes.len() > MAX_MAILBOXES, "recipients.cut");
    read.into_iter().take(MAX_MAILBOXES).collect()
}

/// A mailbox whose address is one: a local part, `@` and a domain, without spaces or controls.
fn wire_mailbox(mailbox: &Mailbox) -> Option<WireMailbox> {
    let (local, domain) = mailbox.address.trim().rsplit_once('@')?;
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part
                .chars()
                .any(|it| it.is_whitespace() || it.is_control() || "<>,;".contains(it))
    };
    let address = format!("{local}@{}", domain.to_lowercase());
    let is_address =
        is_plain(local) && is_plain(domain) && address.chars().count() <= MAX_MAILBOX_CHARS;
    is_address.then(|| WireMailbox {
        address,
        name: shown(&mailbox.name, MAX_MAILBOX_CHARS),
    })
}

/// A decoded header text on one line, within a bound.
fn shown(text: &str, max_chars: usize) -> String {
    let plain: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .take(max_chars)
        .collect();
    plain.trim().to_owned()
}

fn visible_text(structure: &Structure<'_>, marks: &mut Marks) -> Vec<TextPart> {
    let mut all = String::new();
    for body in &structure.bodies {
        if all.len() > text::MAX_READ_BYTES {
            break;
        }
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        if body.is_html {
            let visible = html::visible(&body.text);
            marks.add_if(visible.has_hidden, "html.hidden_text_removed");
            all.push_str(&visible.text);
        } else if body.is_flowed {
            all.push_str(&unflowed(&body.text));
        } else {
            all.push_str(&body.text);
        }
    }
    text::parts(&all, marks)
}

/// Joins the soft breaks of flowed text (RFC 3676).
fn unflowed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_soft = line.ends_with(' ') && line != "-- " && !line.starts_with('>');
        let line = line.strip_prefix(' ').unwrap_or(line);
        out.push_str(line);
        if !is_soft {
            out.push('\n');
        }
    }
    out
}
