//! The one module that knows the MIME library: bytes in, plain facts out.

use std::collections::HashSet;
use std::sync::LazyLock;

use cl_model::digest::Digest;
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{
    Address, Encoding, Header, HeaderName, Message, MessageParser, MessagePart, MimeHeaders,
    PartType,
};

use super::header::{self, Field, one_line};
use super::marks::Marks;
use super::parameter;

/// The most nested messages of which the structure is read: the library's types nest with them.
const MAX_NESTED_MESSAGES: usize = 32;

/// The most attachments that are described.
const MAX_ATTACHMENTS: usize = 64;

/// Only what its values are read of: a date with an unknown zone takes the next field along.
static PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new()
        .with_mime_headers()
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

/// What the library found in a message.
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
    /// Reads a message; `None` if it has no header.
    pub(super) fn of(bytes: &'a [u8], marks: &mut Marks) -> Option<Self> {
        let bytes = header::trimmed(bytes);
        let fields = header::fields(bytes);
        if fields.is_empty() {
            return None;
        }
        let is_nested = nested_messages(bytes) > MAX_NESTED_MESSAGES;
        marks.add_if(is_nested, "mime.nesting_not_read");
        let message = if is_nested {
            PARSER.parse_headers(bytes)?
        } else {
            PARSER.parse(bytes)?
        };
        let (bodies, attachments) = if is_nested {
            (Vec::new(), Vec::new())
        } else {
            marks.add_if(
                message.parts.iter().any(|part| part.is_encoding_problem),
                "mime.encoding_broken",
            );
            (
                bodies(&message, bytes, marks),
                attachments(&message, bytes, marks),
            )
        };
        Some(Self {
            from: mailboxes(&fields, "from"),
            to: mailboxes(&fields, "to"),
            cc: mailboxes(&fields, "cc"),
            subject: subject(&fields),
            fields,
            bodies,
            attachments,
            media_type: message.parts.first().map(media_type).unwrap_or_default(),
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

fn raw_value<'a>(bytes: &'a [u8], header: &Header<'_>) -> &'a [u8] {
    let (start, end) = (index(header.offset_start), index(header.offset_end));
    bytes.get(start..end).unwrap_or_default()
}

fn index(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// The mailboxes of all fields of a name. Each field is read by itself.
fn mailboxes(fields: &[Field<'_>], name: &str) -> Vec<Mailbox> {
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| field.name == name) {
        let alone = [b"From:", field.raw, b"\r\n\r\n"].concat();
        let Some(message) = PARSER.parse_headers(&alone) else {
            continue;
        };
        let all = message.from().into_iter().flat_map(Address::iter);
        found.extend(all.map(|it| Mailbox {
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

/// How many messages may stand in each other, at most.
fn nested_messages(bytes: &[u8]) -> usize {
    let names: [&[u8]; 3] = [b"message/rfc822", b"message/global", b"multipart/digest"];
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| matches!(**byte, b'm' | b'M'))
        .filter(|(at, _)| {
            names.iter().any(|name| {
                bytes
                    .get(*at..at + name.len())
                    .is_some_and(|it| it.eq_ignore_ascii_case(name))
            })
        })
        .count()
}

fn media_type(part: &MessagePart<'_>) -> String {
    part.content_type().map_or_else(
        || "text/plain".to_owned(),
        |it| format!("{}/{}", it.ctype(), it.subtype().unwrap_or("plain")).to_ascii_lowercase(),
    )
}

/// The visible texts, plain ones where there is a choice.
fn bodies(message: &Message<'_>, bytes: &[u8], marks: &mut Marks) -> Vec<Body> {
    let mut bodies = Vec::new();
    for id in &message.text_body {
        let Some(part) = message.part(*id) else {
            continue;
        };
        let (text, is_html) = match &part.body {
            PartType::Text(text) => (text, false),
            PartType::Html(text) => (text, true),
            PartType::Binary(_)
            | PartType::InlineBinary(_)
            | PartType::Message(_)
            | PartType::Multipart(_) => continue,
        };
        let media_type = media_type(part);
        if media_type != "text/plain" && media_type != "text/html" {
            continue;
        }
        let content_type = part.content_type();
        let parameter = |name| {
            content_type
                .and_then(|it| it.attribute(name))
                .unwrap_or_default()
        };
        bodies.push(Body {
            text: decoded(part, bytes, parameter("charset"), text, marks),
            is_html,
            is_flowed: parameter("format").eq_ignore_ascii_case("flowed"),
        });
    }
    bodies
}

/// The text of a part. The library loses bytes under labels that it does not know, so those are
/// decoded here.
fn decoded(
    part: &MessagePart<'_>,
    bytes: &[u8],
    label: &str,
    by_library: &str,
    marks: &mut Marks,
) -> String {
    let label = label.trim().to_ascii_lowercase();
    let known = charset_decoder(label.as_bytes());
    let is_ascii = ["", "us-ascii", "ascii", "ansi_x3.4-1968"].contains(&label.as_str());
    let is_utf8 = label == "utf-8" || label == "utf8";
    if known.is_some() && !is_ascii && !is_utf8 {
        marks.add_if(by_library.contains('\u{fffd}'), "charset.invalid");
        return by_library.to_owned();
    }
    marks.add_if(known.is_none() && !is_ascii && !is_utf8, "charset.unknown");
    let raw = bytes
        .get(index(part.offset_body)..index(part.offset_end))
        .unwrap_or_default();
    let plain = match part.encoding {
        Encoding::None => Some(raw.to_vec()),
        Encoding::QuotedPrintable => quoted_printable_decode(raw),
        Encoding::Base64 => base64_decode(raw),
    };
    let Some(plain) = plain else {
        marks.add("mime.encoding_broken");
        return by_library.to_owned();
    };
    match String::from_utf8(plain) {
        Ok(text) => text,
        Err(error) if is_utf8 => {
            marks.add("charset.invalid");
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
        Err(error) => {
            // What most programs meant by bytes without a usable label.
            marks.add("charset.guessed");
            match charset_decoder(b"windows-1252") {
                Some(decode) => decode(error.as_bytes()),
                None => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }
        }
    }
}

/// Everything that is not the visible text, described.
fn attachments(message: &Message<'_>, bytes: &[u8], marks: &mut Marks) -> Vec<Attachment> {
    let bodies = message.text_body.iter().chain(&message.html_body);
    let shown: HashSet<usize> = bodies.map(|it| index(*it)).collect();
    let mut found = Vec::new();
    for (id, part) in message.parts.iter().enumerate() {
        let is_container = matches!(part.body, PartType::Multipart(_));
        let is_binary = !matches!(part.body, PartType::Text(_) | PartType::Html(_));
        let media_type = media_type(part);
        let is_text = media_type == "text/plain" || media_type == "text/html";
        if is_container || (shown.contains(&id) && !is_binary && is_text) {
            continue;
        }
        if found.len() == MAX_ATTACHMENTS {
            marks.add("attachments.cut");
            break;
        }
        found.push(attachment(part, media_type, bytes));
    }
    found
}

fn attachment(part: &MessagePart<'_>, media_type: String, bytes: &[u8]) -> Attachment {
    let nested = || {
        bytes
            .get(index(part.offset_body)..index(part.offset_end))
            .unwrap_or_default()
    };
    let contents: &[u8] = match &part.body {
        PartType::Text(text) | PartType::Html(text) => text.as_bytes(),
        PartType::Binary(contents) | PartType::InlineBinary(contents) => contents,
        PartType::Message(_) | PartType::Multipart(_) => nested(),
    };
    let field = |name: &str| {
        let header = part
            .headers
            .iter()
            .find(|it| it.name.as_str().eq_ignore_ascii_case(name))?;
        Some(one_line(raw_value(bytes, header)))
    };
    let name = field("content-disposition")
        .and_then(|it| parameter::value(&it, "filename"))
        .or_else(|| field("content-type").and_then(|it| parameter::value(&it, "name")));
    Attachment {
        media_type,
        name: name.and_then(|it| base_name(&it)),
        byte_length: contents.len(),
        digest: Digest::of_bytes(contents),
    }
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
