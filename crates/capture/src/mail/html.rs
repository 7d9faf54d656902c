//! The text of an HTML part that a reader would see.
//!
//! No browser: what style sheets do to an element is known only as far as `style` attributes, a
//! few attributes, and rules for single classes, ids and elements say. Whoever wants to hide text from this reader
//! can; so what it yields is as untrusted as any text, and what it knows to be hidden is left out
//! and marked.

mod color;
mod declaration;
mod entity;
mod style;

use self::color::is_like;
use self::entity::decode_entities;
use self::style::{Hidden, Style, sheets};

/// Elements deeper than this are read as if they stood at this depth.
const MAX_DEPTH: usize = 256;

/// Elements that browsers do not draw, and words that their author has struck out.
const UNSEEN: &[&str] = &[
    "annotation",
    "annotation-xml",
    "canvas",
    "datalist",
    "del",
    "iframe",
    "meter",
    "noembed",
    "noframes",
    "progress",
    "rp",
    "s",
    "strike",
];

/// Classes by which programs name what they quote.
const QUOTING_CLASSES: &[&str] = &[
    "gmail_quote",
    "moz-cite-prefix",
    "protonmail_quote",
    "yahoo_quoted",
];

/// Ids from which on all is quoted: Outlook puts the earlier message behind them, not within.
const QUOTING_IDS: &[&str] = &[
    "appendonsend",
    "divrplyfwdmsg",
    "mail-editor-reference-message-container",
    "zwchr",
];

/// The mark of a message with text that nobody sees.
pub(super) const HIDDEN_REMOVED: &str = "html.hidden_text_removed";

/// The most bytes of text; the rest is left out.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The visible text, with `> ` before quoted lines, and whether hidden text was left out.
pub(super) struct Visible {
    pub(super) text: String,
    pub(super) has_hidden: bool,
    /// A style hides something by a selector that is not read, or may by a variable.
    pub(super) has_unread_rules: bool,
}

/// Reads an HTML document.
pub(super) fn visible(html: &str) -> Visible {
    let sheets = sheets(html);
    let mut writer = Writer::new(sheets.hidden);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        writer.text(&rest[..at]);
        rest = writer.markup(&rest[at..]);
        if writer.out.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    if writer.out.len() <= MAX_TEXT_BYTES {
        writer.text(rest);
    }
    Visible {
        text: writer.out,
        has_hidden: writer.has_hidden,
        has_unread_rules: sheets.has_unread || writer.has_unread,
    }
}

#[derive(Debug)]
struct Element {
    name: String,
    is_hidden: bool,
    is_quote: bool,
    /// Its text is too small to see.
    is_tiny: bool,
    /// The colours of its text and of what is behind it, in one form; empty: those of a page.
    color: String,
    background: String,
}

impl Element {
    /// Nobody sees its text, but perhaps that of an element in it.
    fn is_unseen(&self) -> bool {
        self.is_hidden || self.is_tiny || self.is_colorless()
    }

    /// Its text has the colour of what is behind it.
    fn is_colorless(&self) -> bool {
        let behind = match self.background.as_str() {
            "" => "#ffffff",
            color => color,
        };
        !self.color.is_empty() && is_like(&self.color, behind)
    }
}

struct Writer {
    out: String,
    open: Vec<Element>,
    hidden: Hidden,
    has_hidden: bool,
    /// A style says something that is not read.
    has_unread: bool,
    wants_space: bool,
    wants_line: bool,
    /// A raised text has begun.
    wants_raised: bool,
    /// A border of cells was passed.
    wants_cell: bool,
    /// An element said that what follows it is an earlier message.
    is_rest_quoted: bool,
}

impl Writer {
    fn new(hidden: Hidden) -> Self {
        Self {
            out: String::new(),
            open: Vec::new(),
            hidden,
            has_hidden: false,
            has_unread: false,
            wants_space: false,
            wants_line: false,
            wants_raised: false,
            wants_cell: false,
            is_rest_quoted: false,
        }
    }

    /// Reads a tag, comment or declaration; `rest` begins with `<`. Returns what follows it.
    fn markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        let name_start = rest[1..].chars().next();
        if !name_start.is_some_and(|it| it.is_ascii_alphabetic() || "/!?".contains(it)) {
            self.text("<");
            return &rest[1..];
        }
        let Some(end) = tag_length(rest) else {
            self.has_hidden = true;
            return "";
        };
        let (tag, after) = rest.split_at(end);
        let inside = tag[1..].trim_end_matches('>');
        if let Some(name) = inside.strip_prefix('/') {
            self.close(&name.trim().to_ascii_lowercase());
            return after;
        }
        if inside.starts_with(['!', '?']) {
            return after;
        }
        let name_length = inside
            .find(|it: char| it.is_whitespace() || it == '/')
            .unwrap_or(inside.len());
        let name = inside[..name_length].to_ascii_lowercase();
        if [
            "script", "style", "title", "textarea", "noscript", "template",
        ]
        .contains(&name.as_str())
        {
            return skip_element(after, &name);
        }
        self.start(name, &inside[name_length..]);
        after
    }

    fn start(&mut self, name: String, attributes: &str) {
        const VOID: &[&str] = &[
            "br", "img", "hr", "meta", "link", "input", "area", "base", "col", "embed", "source",
            "wbr",
        ];
        self.separate(&name);
        self.wants_raised = name == "sup";
        let is_void = VOID.contains(&name.as_str());
        if is_void && name != "hr" {
            return;
        }
        let style = Style::of(attributes);
        self.is_rest_quoted |= QUOTING_IDS.contains(&style.id.as_str());
        if is_void {
            return;
        }
        self.has_unread |= style.has_unread;
        let parent = self.open.last();
        let inherited = |own: &str, of: fn(&Element) -> &String| match parent {
            Some(parent) if own.is_empty() => of(parent).clone(),
            Some(_) | None => own.to_owned(),
        };
        let color = inherited(&style.color, |it| &it.color);
        let background = inherited(&style.background, |it| &it.background);
        let is_tiny = style
            .is_tiny
            .unwrap_or_else(|| parent.is_some_and(|it| it.is_tiny));
        let is_hidden = parent.is_some_and(|it| it.is_hidden)
            || style.is_hidden
            || self.hidden.matches(&name, &style)
            || (name == "dialog" && !style.is_open)
            || ["head", "select", "svg", "object", "audio", "video"].contains(&name.as_str())
            || UNSEEN.contains(&name.as_str());
        let is_quote = parent.is_some_and(|it| it.is_quote)
            || name == "blockquote"
            || style.is_quote
            || style
                .classes
                .iter()
                .any(|it| QUOTING_CLASSES.contains(&it.as_str()))
            || self.is_rest_quoted;
        let is_in_marks = name == "q";
        if self.open.len() < MAX_DEPTH {
            self.open.push(Element {
                name,
                is_hidden,
                is_quote,
                is_tiny,
                color,
                background,
            });
        }
        if is_in_marks {
            self.text("“");
        }
    }

    fn close(&mut self, name: &str) {
        let position = self.open.iter().rposition(|it| it.name == name);
        if let Some(position) = position {
            if name == "q" {
                self.text("”");
            }
            self.open.truncate(position);
        }
        self.separate(name);
    }

    /// Lines and gaps that an element makes.
    fn separate(&mut self, name: &str) {
        const BLOCKS: &[&str] = &[
            "p",
            "div",
            "br",
            "tr",
            "li",
            "ul",
            "ol",
            "table",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "blockquote",
            "section",
            "article",
            "header",
            "footer",
            "pre",
            "dl",
            "dt",
            "dd",
            "center",
            "body",
            "details",
            "summary",
            "main",
            "nav",
            "aside",
            "figure",
            "figcaption",
            "address",
            "form",
            "fieldset",
            "legend",
            "caption",
        ];
        if BLOCKS.contains(&name) {
            self.wants_line = true;
            let is_paragraph = ["p", "br", "blockquote", "table", "ul", "ol"].contains(&name)
                || name.starts_with('h');
            let breaks = match (self.out.ends_with('\n'), name) {
                _ if self.out.is_empty() || self.out.ends_with("\n\n") => "",
                // A second break in a row makes an empty line.
                (true, _) if is_paragraph => "\n",
                (false, "br") => "\n",
                (false, "p") => "\n\n",
                (true | false, _) => "",
            };
            self.out.push_str(breaks);
        } else if name == "td" || name == "th" {
            self.wants_space = true;
            self.wants_cell = true;
        }
    }

    fn text(&mut self, raw: &str) {
        let (is_hidden, is_quote) = self
            .open
            .last()
            .map_or((false, false), |it| (it.is_unseen(), it.is_quote));
        let is_quote = is_quote || self.is_rest_quoted;
        let is_raised = self.open.last().is_some_and(|it| it.name == "sup");
        if is_hidden {
            let in_head = self.open.iter().any(|it| it.name == "head");
            self.has_hidden |= !raw.trim().is_empty() && !in_head;
            return;
        }
        if raw.is_empty() {
            return;
        }
        let decoded = decode_entities(raw);
        for character in decoded.chars() {
            if character.is_whitespace() && character != '\u{a0}' && character != '\u{202f}' {
                self.wants_space = true;
                continue;
            }
            if self.wants_line && !self.out.is_empty() && !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            let is_line_start = self.out.is_empty() || self.out.ends_with('\n');
            if is_line_start && is_quote {
                self.out.push_str("> ");
            } else if self.wants_space && !is_line_start {
                self.out.push(' ');
            }
            // Digits of two cells, and raised digits behind others, are no one number.
            let joins_digits = character.is_ascii_digit()
                && self
                    .out
                    .trim_end()
                    .ends_with(|it: char| it.is_ascii_digit());
            if joins_digits && self.wants_cell {
                self.out.push_str("| ");
            } else if joins_digits && is_raised && !self.out.ends_with(char::is_whitespace) {
                let is_first = std::mem::replace(&mut self.wants_raised, false);
                self.out.push_str(if is_first { "^" } else { "" });
            }
            self.wants_line = false;
            self.wants_space = false;
            self.wants_cell = false;
            self.out.push(character);
        }
    }
}

/// The length of a tag, its end included; a `>` in quotes does not end it.
fn tag_length(rest: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_value = false;
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') if is_value => quote = Some(byte),
            (Some(open), _) if byte == open => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            is_value = byte == b'=';
        }
    }
    // A quote that never ends: browsers drop the tag and all that follows it.
    None
}

/// What follows the end tag of an element whose content is no text.
fn skip_element<'a>(rest: &'a str, name: &str) -> &'a str {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while let Some(found) = rest[at..].find("</") {
        let start = at + found + 2;
        let is_name = bytes
            .get(start..start + name.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
        if is_name {
            let end = rest[start..]
                .find('>')
                .map_or(rest.len(), |it| start + it + 1);
            return &rest[end..];
        }
        at = start;
    }
    ""
}

#[cfg(test)]
mod tests;
