//! A message as plain facts: its fields, its visible texts, and what else is in it.

use std::borrow::Cow;
use std::sync::LazyLock;

use cl_model::digest::Digest;
use mail_parser::{Address, HeaderName, MessageParser};

use super::MAX_MAILBOXES;
use super::header::{self, Field, Header, one_line};
use super::part::{Flow, Head, Part, Parts};
use super::text::is_invisible;
use crate::native::charset;
use crate::native::marks::Marks;

/// The most attachments that are described.
const MAX_ATTACHMENTS: usize = 64;

/// How much of one field of addresses is read.
const MAX_FIELD_BYTES: usize = 256 * 1024;

/// Reads one field at a time.
static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_address_headers()
        .header_text(HeaderName::Subject)
});

/// A mailbox of an address field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mailbox {
    pub(super) address: String,
    pub(super) name: String,
}

/// A part that is not the visible text.
pub(super) struct Attachment {
    pub(super) media_type: String,
    pub(super) name: Option<String>,
    pub(super) byte_length: usize,
    pub(super) digest: Digest,
}

/// A calendar that came as a part.
pub(super) struct CalendarPart<'a> {
    pub(super) contents: Cow<'a, [u8]>,
    /// Its character set, in lower case; empty if none is stated.
    pub(super) charset: String,
}

/// A text part.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) is_html: bool,
    pub(super) flow: Flow,
}

/// What there is in a message.
pub(super) struct Structure<'a> {
    pub(super) header: Header<'a>,
    pub(super) from: Vec<Mailbox>,
    pub(super) to: Vec<Mailbox>,
    pub(super) cc: Vec<Mailbox>,
    pub(super) reply_to: Vec<Mailbox>,
    pub(super) sender: Vec<Mailbox>,
    pub(super) subject: String,
    pub(super) bodies: Vec<Body>,
    pub(super) attachments: Vec<Attachment>,
    /// Messages that came as parts.
    pub(super) messages: Vec<Cow<'a, [u8]>>,
    pub(super) calendars: Vec<CalendarPart<'a>>,
    /// A part is in the format of one vendor's mail program, by its name or its first bytes.
    pub(super) has_tnef: bool,
    /// The media type of the whole message, lower-case, without parameters.
    pub(super) media_type: String,
}

impl<'a> Structure<'a> {
    /// Reads a message; `None` if it has no header. One that exceeds a bound gets a mark, and only
    /// its header is read.
    pub(super) fn of(bytes: &'a [u8], marks: &mut Marks) -> Option<Self> {
        let bytes = header::trimmed(bytes);
        let header = header::fields(bytes);
        if header.count == 0 {
            return None;
        }
        let mut parts = Parts::of(bytes).unwrap_or_else(|excess| {
            marks.add(excess.mark());
            Parts::default()
        });
        let is_broken = parts.all.iter().any(|part| part.is_broken);
        marks.add_if(is_broken, "mime.encoding_broken");
        let fields = header.fields.as_slice();
        let (bodies, attachments) = (bodies(&parts, marks), attachments(&parts, marks));
        let has_tnef = parts.all.iter().any(is_tnef);
        let (messages, calendars) = taken(&mut parts);
        Some(Self {
            from: mailboxes(fields, "from", marks),
            to: mailboxes(fields, "to", marks),
            cc: mailboxes(fields, "cc", marks),
            reply_to: mailboxes(fields, "reply-to", marks),
            sender: mailboxes(fields, "sender", marks),
            subject: subject(fields),
            bodies,
            attachments,
            messages,
            calendars,
            has_tnef,
            media_type: Head::of(fields, "text/plain").media_type,
            header,
        })
    }

    /// The raw values of a field, by its lower-case name, first to last.
    pub(super) fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a [u8]> + 'b {
        self.fields(name).map(|field| field.raw)
    }

    /// The fields of a lower-case name, first to last.
    pub(super) fn fields<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b Field<'a>> + 'b {
        let fields = self.header.fields.iter();
        fields.filter(move |field| field.name == name)
    }

    /// The first value of a field as text on one line.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.all(name).next().map(one_line)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// The mailboxes of all fields of a name, and one more than are wanted at most. Each field is read
/// by itself.
fn mailboxes(fields: &[Field<'_>], name: &str, marks: &mut Marks) -> Vec<Mailbox> {
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| field.name == name) {
        let raw = &field.raw[..field.raw.len().min(MAX_FIELD_BYTES)];
        marks.add_if(raw.len() < field.raw.len(), "header.fields_cut");
        let alone = [b"From:", raw, b"\r\n\r\n"].concat();
        let Some(message) = PARSER.parse_headers(&alone) else {
            continue;
        };
        let all = message.from().into_iter().flat_map(Address::iter);
        let room = MAX_MAILBOXES + 1 - found.len();
        // An address in an encoded word is none (RFC 2047, 5), though the parser may take it for one.
        let written = String::from_utf8_lossy(raw);
        let has_words = written.contains("=?");
        let is_written = |address: &str| !has_words || written.contains(address);
        found.extend(all.take(room).map(|it| {
            Mailbox {
                address: it
                    .address()
                    .filter(|it| is_written(it))
                    .unwrap_or_default()
                    .to_owned(),
                name: it.name().unwrap_or_default().to_owned(),
            }
        }));
    }
    found
}

fn subject(fields: &[Field<'_>]) -> String {
    let Some(field) = fields.iter().find(|field| field.name == "subject") else {
        return String::new();
    };
    let alone = [b"Subject:", field.raw, b"\r\n\r\n"].concat();
    let message = PARSER.parse_headers(&alone);
    let decoded = message.as_ref().and_then(|it| it.subject());
    decoded.unwrap_or_default().to_owned()
}

/// The visible texts, plain ones where there is a choice.
fn bodies(parts: &Parts<'_>, marks: &mut Marks) -> Vec<Body> {
    let shown = parts.text.iter().filter_map(|id| parts.all.get(*id));
    let bodies = shown.map(|part| Body {
        text: charset::labelled(&part.contents, &part.head.charset, marks),
        is_html: part.head.is_html(),
        flow: part.head.flow,
    });
    bodies.collect()
}

/// Everything that is not the visible text, described.
fn attachments(parts: &Parts<'_>, marks: &mut Marks) -> Vec<Attachment> {
    let all = || parts.all.iter().filter(|part| !part.is_shown);
    marks.add_if(all().nth(MAX_ATTACHMENTS).is_some(), "attachments.cut");
    let described = all().take(MAX_ATTACHMENTS).map(|part| Attachment {
        media_type: part.head.media_type.clone(),
        name: part.head.file_name.as_deref().and_then(base_name),
        byte_length: part.contents.len(),
        digest: Digest::of_bytes(&part.contents),
    });
    described.collect()
}

/// Whether a part is in Microsoft's own format, whatever it is called.
fn is_tnef(part: &Part<'_>) -> bool {
    const SIGNATURE: &[u8] = &[0x78, 0x9f, 0x3e, 0x22];

    let kinds = ["application/ms-tnef", "application/vnd.ms-tnef"];
    let name = part.head.file_name.as_deref().unwrap_or_default();
    !part.is_shown
        && (kinds.contains(&part.head.media_type.as_str())
            || name.eq_ignore_ascii_case("winmail.dat")
            || part.contents.starts_with(SIGNATURE))
}

/// Takes out the messages and calendars among the parts.
fn taken<'a>(parts: &mut Parts<'a>) -> (Vec<Cow<'a, [u8]>>, Vec<CalendarPart<'a>>) {
    let (mut messages, mut calendars) = (Vec::new(), Vec::new());
    for part in parts.all.iter_mut().filter(|part| !part.is_shown) {
        let kind = part.head.media_type.as_str();
        let name = part.head.file_name.as_deref().unwrap_or_default();
        let is_named = name.len() >= 4
            && name
                .get(name.len() - 4..)
                .is_some_and(|suffix| suffix.eq_ignore_ascii_case(".ics"));
        if kind == "message/rfc822" || kind == "message/global" {
            messages.push(std::mem::take(&mut part.contents));
        } else if is_named || kind == "text/calendar" || kind == "application/ics" {
            calendars.push(CalendarPart {
                charset: std::mem::take(&mut part.head.charset),
                contents: std::mem::take(&mut part.contents),
            });
        }
    }
    (messages, calendars)
}

/// The last part of a path, whichever system it is from, without control characters.
fn base_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .filter(|it| !it.is_control() && !is_invisible(*it))
        .take(240)
        .collect();
    let plain = plain.trim();
    (!plain.is_empty() && plain != "." && plain != "..").then(|| plain.to_owned())
}
