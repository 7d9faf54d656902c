//! The parts of a message (RFC 2046), cut in one pass over its lines.
//!
//! What a message costs is bounded before anything in it is read: its headers have a total size,
//! its parts a number, its containers a depth. A message in a message is one part, whatever is in
//! it. A delimiter is a line of its own; a container that never ends ends with the one around it.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::parsers::MessageStream;

use super::header::{self, Field, MAX_HEADER_BYTES, is_blank, one_line};
use super::parameter;

/// The most parts, containers among them.
const MAX_PARTS: usize = 4096;

/// The most containers in each other.
const MAX_DEPTH: usize = 32;

/// How much of a field about a part is read; a part that hides its boundary behind that is one
/// attachment.
const MAX_FIELD_BYTES: usize = 64 * 1024;

/// Which bound a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// All headers together, in bytes.
    Headers,
    /// The number of parts.
    Parts,
    /// The depth of containers.
    Nesting,
}

impl Excess {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Headers => "header.too_large",
            Self::Parts => "mime.parts_not_read",
            Self::Nesting => "mime.nesting_not_read",
        }
    }
}

/// A part that is no container, or a container without parts.
pub(super) struct Part<'a> {
    pub(super) head: Head,
    /// Its contents without their transfer encoding.
    pub(super) contents: Cow<'a, [u8]>,
    /// The encoding is broken, and the contents are the best that can be made of it.
    pub(super) is_broken: bool,
    pub(super) is_shown: bool,
}

/// The parts of a message.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) all: Vec<Part<'a>>,
    /// Which are the visible text, plain where there is a choice.
    pub(super) text: Vec<usize>,
}

impl<'a> Parts<'a> {
    /// Cuts a message that begins with its header.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, Excess> {
        let mut cutter = Cutter {
            bytes,
            parts: Self::default(),
            html: Vec::new(),
            containers: Vec::new(),
            open: Open::Header(0),
            count: 0,
            header_bytes: 0,
        };
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            cutter.line(line, at)?;
            at += line.len();
        }
        cutter.close(0, bytes.len())?;
        Ok(cutter.parts)
    }
}

/// What the header of a part says about it.
pub(super) struct Head {
    /// Lower-case, without parameters.
    pub(super) media_type: String,
    /// Lower-case; empty if there is none.
    pub(super) charset: String,
    pub(super) flow: Flow,
    pub(super) file_name: Option<String>,
    /// Only containers have one.
    boundary: Option<String>,
    encoding: Encoding,
    is_attachment: bool,
    is_named: bool,
}

/// What the line breaks of a text mean (RFC 3676).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// As they stand.
    Fixed,
    /// A space before one makes it soft.
    Spaced,
    /// The same, and that space is none of the text.
    Unspaced,
}

impl Flow {
    fn of(format: Option<&str>, deletes_space: Option<&str>) -> Self {
        let is = |value: Option<&str>, name| value.is_some_and(|it| it.eq_ignore_ascii_case(name));
        match (is(format, "flowed"), is(deletes_space, "yes")) {
            (false, _) => Self::Fixed,
            (true, false) => Self::Spaced,
            (true, true) => Self::Unspaced,
        }
    }
}

#[derive(Clone, Copy)]
enum Encoding {
    Plain,
    /// A name that is not known; the bytes are taken as they are.
    Unknown,
    QuotedPrintable,
    Base64,
}

impl Head {
    /// Reads the fields of a header; `default` is the media type where it states none.
    pub(super) fn of(fields: &[Field<'_>], default: &str) -> Self {
        let line = |name: &str| {
            let field = fields.iter().find(|field| field.name == name);
            let raw = field.map_or(&[][..], |field| field.raw);
            one_line(&raw[..raw.len().min(MAX_FIELD_BYTES)])
        };
        let (kind, disposition) = (line("content-type"), line("content-disposition"));
        let of_kind = |name| parameter::value(&kind, name);
        let name = of_kind("name");
        let media_type = media_type(&kind).unwrap_or_else(|| default.to_owned());
        let boundary = of_kind("boundary").filter(|it| !it.is_empty());
        Self {
            boundary: boundary.filter(|_| media_type.starts_with("multipart/")),
            media_type,
            charset: of_kind("charset").map_or_else(String::new, |it| {
                let label = it.split_whitespace().next().unwrap_or_default();
                label.to_ascii_lowercase()
            }),
            flow: Flow::of(of_kind("format").as_deref(), of_kind("delsp").as_deref()),
            encoding: Encoding::of(&line("content-transfer-encoding")),
            is_attachment: kind_of(&disposition).eq_ignore_ascii_case("attachment"),
            is_named: name.is_some(),
            file_name: parameter::value(&disposition, "filename").or(name),
        }
    }

    fn is_text(&self) -> bool {
        self.media_type == "text/plain" || self.is_html()
    }

    pub(super) fn is_html(&self) -> bool {
        self.media_type == "text/html"
    }
}

impl Encoding {
    fn of(field: &str) -> Self {
        match kind_of(field).to_ascii_lowercase().as_str() {
            "base64" => Self::Base64,
            "quoted-printable" => Self::QuotedPrintable,
            "" | "7bit" | "8bit" | "binary" => Self::Plain,
            _ => Self::Unknown,
        }
    }

    /// What was encoded; if that is broken, the best that can be made of it.
    fn decoded(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Cow<'_, [u8]>> {
        match self {
            Self::Plain => Ok(Cow::Borrowed(bytes)),
            Self::Unknown => Err(Cow::Borrowed(bytes)),
            Self::QuotedPrintable => {
                let exact = quoted_printable_decode(bytes).map(Cow::Owned);
                let decode = || MessageStream::new(bytes).decode_quoted_printable_mime(b"");
                exact.ok_or_else(|| match decode() {
                    // Given up, with nothing to show for it.
                    (usize::MAX, _) => Cow::Borrowed(bytes),
                    (_, best) => best,
                })
            }
            Self::Base64 => {
                let exact = base64_decode(bytes).map(Cow::Owned);
                exact.ok_or(Cow::Borrowed(bytes))
            }
        }
    }
}

/// What stands before the parameters of a field.
fn kind_of(field: &str) -> &str {
    field.split([';', '(']).next().unwrap_or_default().trim()
}

fn media_type(field: &str) -> Option<String> {
    let plain = kind_of(field).replace(' ', "").to_ascii_lowercase();
    match plain.split_once('/') {
        _ if plain.is_empty() => None,
        Some((_, subtype)) if !subtype.is_empty() => Some(plain),
        Some((kind, _)) => Some(format!("{kind}/plain")),
        None => Some(format!("{plain}/plain")),
    }
}

/// A container whose end is still to come.
struct Container {
    head: Head,
    boundary: String,
    /// Where its body begins.
    start: usize,
    parts: usize,
    is_in_alternative: bool,
    /// How many texts there were before it.
    texts: usize,
    htmls: usize,
}

/// What the next line belongs to.
enum Open {
    /// The header that begins here.
    Header(usize),
    /// The contents that begin here.
    Contents(Head, usize),
    /// What nobody reads: before the first part of a container, or behind its last one.
    Nothing,
}

struct Cutter<'a> {
    bytes: &'a [u8],
    parts: Parts<'a>,
    /// Which parts are the visible text where HTML is preferred.
    html: Vec<usize>,
    containers: Vec<Container>,
    open: Open,
    count: usize,
    header_bytes: usize,
}

impl Cutter<'_> {
    fn line(&mut self, line: &[u8], at: usize) -> Result<(), Excess> {
        let next = at + line.len();
        if let Some((depth, is_end)) = self.delimiter(line) {
            self.close(if is_end { depth } else { depth + 1 }, at)?;
            self.open = if is_end {
                Open::Nothing
            } else {
                Open::Header(next)
            };
        } else if let Open::Header(start) = self.open {
            self.header_bytes += line.len();
            if self.header_bytes > MAX_HEADER_BYTES {
                return Err(Excess::Headers);
            }
            if is_blank(line) {
                self.begin(start, at, next)?;
            }
        }
        Ok(())
    }

    /// Which container a line delimits, and whether it ends it.
    fn delimiter(&self, line: &[u8]) -> Option<(usize, bool)> {
        let line = line.strip_prefix(b"--")?;
        let containers = self.containers.iter().enumerate().rev();
        containers.into_iter().find_map(|(depth, container)| {
            let rest = line.strip_prefix(container.boundary.as_bytes())?;
            match rest.trim_ascii_end() {
                b"" => Some((depth, false)),
                b"--" => Some((depth, true)),
                _ => None,
            }
        })
    }

    /// Begins the part whose header stands before `end` and whose contents begin at `next`.
    fn begin(&mut self, start: usize, end: usize, next: usize) -> Result<(), Excess> {
        self.count += 1;
        if self.count > MAX_PARTS {
            return Err(Excess::Parts);
        }
        let around = self.containers.last_mut();
        let default = match around.as_deref() {
            Some(it) if it.head.media_type == "multipart/digest" => "message/rfc822",
            Some(_) | None => "text/plain",
        };
        let is_in_alternative = around.as_deref().is_some_and(Container::is_alternative);
        if let Some(around) = around {
            around.parts += 1;
        }
        let mut head = Head::of(&header::fields(&self.bytes[start..end]).fields, default);
        self.open = match head.boundary.take() {
            None => Open::Contents(head, next),
            Some(_) if self.containers.len() == MAX_DEPTH => return Err(Excess::Nesting),
            Some(boundary) => {
                self.containers.push(Container {
                    head,
                    boundary,
                    start: next,
                    parts: 0,
                    is_in_alternative,
                    texts: self.parts.text.len(),
                    htmls: self.html.len(),
                });
                Open::Nothing
            }
        };
        Ok(())
    }

    /// Ends the open part before the line at `at`, and all containers from a depth on.
    fn close(&mut self, depth: usize, at: usize) -> Result<(), Excess> {
        let is_whole = at == self.bytes.len();
        if let Open::Header(start) = self.open {
            self.begin(start, at, at)?;
        }
        if let Open::Contents(head, start) = std::mem::replace(&mut self.open, Open::Nothing) {
            let contents = &self.bytes[start..at];
            // The line break before a delimiter belongs to it.
            let without = contents.strip_suffix(b"\n").filter(|_| !is_whole);
            let without = without.map(|it| it.strip_suffix(b"\r").unwrap_or(it));
            let end = start + without.unwrap_or(contents).len();
            self.add(head, start, end);
        }
        while self.containers.len() > depth {
            let Some(container) = self.containers.pop() else {
                break;
            };
            if container.parts == 0 {
                self.add(container.head, container.start, at);
            } else if container.head.media_type == "multipart/alternative"
                && self.has_no_words_since(container.texts)
            {
                // Some programs put an empty plain text beside what they say in HTML.
                self.parts.text.truncate(container.texts);
                let html = self.html.iter().skip(container.htmls);
                self.parts.text.extend(html);
            }
        }
        Ok(())
    }

    fn has_no_words_since(&self, texts: usize) -> bool {
        let mut plain = self.parts.text.iter().skip(texts);
        plain.all(|id| {
            let part = self.parts.all.get(*id);
            part.is_some_and(|it| it.contents.trim_ascii().is_empty())
        })
    }

    fn add(&mut self, head: Head, start: usize, end: usize) {
        let raw = &self.bytes[start..end];
        let decoded = head.encoding.decoded(raw);
        let is_broken = decoded.is_err();
        let is_readable = !is_broken || !matches!(head.encoding, Encoding::Base64);
        let id = self.parts.all.len();
        let (in_text, in_html) = self.shown(&head, is_readable);
        if in_text {
            self.parts.text.push(id);
        }
        if in_html {
            self.html.push(id);
        }
        self.parts.all.push(Part {
            head,
            contents: decoded.unwrap_or_else(|best| best),
            is_broken,
            is_shown: in_text || in_html,
        });
    }

    /// Whether a part is visible text where plain text is preferred, and where HTML is.
    fn shown(&self, head: &Head, is_readable: bool) -> (bool, bool) {
        let Some(around) = self.containers.last() else {
            let is_shown = head.is_text() && !head.is_attachment;
            let is_shown = is_shown && (is_readable || !head.is_html());
            return (is_shown, is_shown);
        };
        let is_alternative = around.head.media_type == "multipart/alternative";
        let is_first = around.parts == 1;
        let is_related = around.head.media_type == "multipart/related";
        let is_inline = !head.is_attachment && (is_first || !(is_related || head.is_named));
        if !head.is_text() || !is_readable || !(is_inline || is_alternative) {
            return (false, false);
        }
        if around.is_alternative() {
            return (!head.is_html(), head.is_html());
        }
        (true, true)
    }
}

impl Container {
    fn is_alternative(&self) -> bool {
        self.is_in_alternative || self.head.media_type == "multipart/alternative"
    }
}
