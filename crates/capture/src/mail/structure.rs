//! A message as plain facts: its fields, its visible texts, and what else is in it.

use std::sync::LazyLock;

use cl_model::digest::Digest;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{Address, HeaderName, MessageParser};

use super::MAX_MAILBOXES;
use super::header::{self, Field, one_line};
use super::marks::Marks;
use super::part::{Head, Part, Parts};

/// The most attachments that are described.
const MAX_ATTACHMENTS: usize = 64;

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

/// A text part.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) is_html: bool,
    pub(super) is_flowed: bool,
}

/// What there is in a message.
pub(super) struct Structure<'a> {
    pub(super) fields: Vec<Field<'a>>,
    pub(super) from: Vec<Mailbox>,
    pub(super) to: Vec<Mailbox>,
    pub(super) cc: Vec<Mailbox>,
    pub(super) subject: String,
    pub(super) bodies: Vec<Body>,
    pub(super) attachments: Vec<Attachment>,
    /// The media type of the whole message, lower-case, without parameters.
    pub(super) media_type: String,
}

impl<'a> Structure<'a> {
    /// Reads a message; `None` if it has no header. One that exceeds a bound gets a mark, and only
    /// its header is read.
    pub(super) fn of(bytes: &'a [u8], marks: &mut Marks) -> Option<Self> {
        let bytes = header::trimmed(bytes);
        let fields = header::fields(bytes);
        if fields.is_empty() {
            return None;
        }
        let parts = Parts::of(bytes).unwrap_or_else(|excess| {
            marks.add(excess.mark());
            Parts::default()
        });
        let is_broken = parts.all.iter().any(|part| part.is_broken);
        marks.add_if(is_broken, "mime.encoding_broken");
        Some(Self {
            from: mailboxes(&fields, "from"),
            to: mailboxes(&fields, "to"),
            cc: mailboxes(&fields, "cc"),
            subject: subject(&fields),
            bodies: bodies(&parts, marks),
            attachments: attachments(&parts, marks),
            media_type: Head::of(&fields, "text/plain").media_type,
            fields,
        })
    }

    /// The raw values of a field, by its lower-case name, first to last.
    pub(super) fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a [u8]> + 'b {
        let named = self.fields.iter().filter(move |field| field.name == name);
        named.map(|field| field.raw)
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
fn mailboxes(fields: &[Field<'_>], name: &str) -> Vec<Mailbox> {
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| field.name == name) {
        let alone = [b"From:", field.raw, b"\r\n\r\n"].concat();
        let Some(message) = PARSER.parse_headers(&alone) else {
            continue;
        };
        let all = message.from().into_iter().flat_map(Address::iter);
        let room = MAX_MAILBOXES + 1 - found.len();
        found.extend(all.take(room).map(|it| Mailbox {
            address: it.address().unwrap_or_default().to_owned(),
            name: it.name().unwrap_or_default().to_owned(),
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
        text: decoded(part, marks),
        is_html: part.head.is_html(),
        is_flowed: part.head.is_flowed,
    });
    bodies.collect()
}

/// The text of a part. Bytes that do not fit their label are kept as well as they can be.
fn decoded(part: &Part<'_>, marks: &mut Marks) -> String {
    let label = part.head.charset.as_str();
    let known = charset_decoder(label.as_bytes());
    let is_ascii = ["", "us-ascii", "ascii", "ansi_x3.4-1968"].contains(&label);
    let is_utf8 = label == "utf-8" || label == "utf8";
    if let Some(decode) = known.filter(|_| !is_ascii && !is_utf8) {
        let text = decode(&part.contents);
        marks.add_if(text.contains('\u{fffd}'), "charset.invalid");
        return text;
    }
    marks.add_if(!is_ascii && !is_utf8, "charset.unknown");
    match std::str::from_utf8(&part.contents) {
        Ok(text) => text.to_owned(),
        Err(_) if is_utf8 => {
            marks.add("charset.invalid");
            String::from_utf8_lossy(&part.contents).into_owned()
        }
        Err(_) => {
            // What most programs meant by bytes without a usable label.
            marks.add("charset.guessed");
            match charset_decoder(b"windows-1252") {
                Some(decode) => decode(&part.contents),
                None => String::from_utf8_lossy(&part.contents).into_owned(),
            }
        }
    }
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

/// The last part of a path, whichever system it is from, without control characters.
fn base_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .filter(|it| !it.is_control())
        .take(240)
        .collect();
    let plain = plain.trim();
    (!plain.is_empty() && plain != "." && plain != "..").then(|| plain.to_owned())
}
