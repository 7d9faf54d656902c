//! The text of an HTML part that a reader would see.
//!
//! No browser: what style sheets do to an element is known only as far as `style` attributes, a
//! few attributes, and rules for single classes say. Whoever wants to hide text from this reader
//! can; so what it yields is as untrusted as any text, and what it knows to be hidden is left out
//! and marked.

use std::collections::HashSet;

/// Elements deeper than this are read as if they stood at this depth.
const MAX_DEPTH: usize = 256;

/// The most bytes of text; the rest is left out.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The most of a style sheet that is looked at.
const MAX_SHEET_BYTES: usize = 256 * 1024;

/// The visible text, with `> ` before quoted lines, and whether hidden text was left out.
pub(super) struct Visible {
    pub(super) text: String,
    pub(super) has_hidden: bool,
}

/// Reads an HTML document.
pub(super) fn visible(html: &str) -> Visible {
    let mut writer = Writer::new(hidden_classes(html));
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
    }
}

#[derive(Debug)]
struct Element {
    name: String,
    is_hidden: bool,
    is_quote: bool,
    is_dark: bool,
}

struct Writer {
    out: String,
    open: Vec<Element>,
    hidden_classes: HashSet<String>,
    has_hidden: bool,
    wants_space: bool,
    wants_line: bool,
}

impl Writer {
    fn new(hidden_classes: HashSet<String>) -> Self {
        Self {
            out: String::new(),
            open: Vec::new(),
            hidden_classes,
            has_hidden: false,
            wants_space: false,
            wants_line: false,
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
        if VOID.contains(&name.as_str()) {
            return;
        }
        let style = Style::of(attributes);
        let parent = self.open.last();
        let is_dark = style
            .background
            .map_or(parent.is_some_and(|it| it.is_dark), |it| !it);
        let by_class = style
            .classes
            .iter()
            .any(|it| self.hidden_classes.contains(it));
        let is_white_on_white = style.is_white_text && !is_dark;
        let is_hidden = parent.is_some_and(|it| it.is_hidden)
            || style.is_hidden
            || by_class
            || is_white_on_white
            || ["head", "select", "svg", "object", "audio", "video"].contains(&name.as_str());
        let is_quote = parent.is_some_and(|it| it.is_quote)
            || name == "blockquote"
            || style
                .classes
                .iter()
                .any(|it| it == "gmail_quote" || it == "moz-cite-prefix" || it == "yahoo_quoted")
            || style.id == "divrplyfwdmsg";
        if self.open.len() < MAX_DEPTH {
            self.open.push(Element {
                name,
                is_hidden,
                is_quote,
                is_dark,
            });
        }
    }

    fn close(&mut self, name: &str) {
        let position = self.open.iter().rposition(|it| it.name == name);
        if let Some(position) = position {
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
        ];
        if BLOCKS.contains(&name) {
            self.wants_line = true;
            let is_paragraph = ["p", "br", "blockquote", "table", "ul", "ol"].contains(&name)
                || name.starts_with('h');
            // A second break in a row makes an empty line.
            if is_paragraph
                && self.out.ends_with('\n')
                && !self.out.ends_with("\n\n")
                && !self.out.is_empty()
            {
                self.out.push('\n');
            } else if name == "br" && !self.out.is_empty() && !self.out.ends_with('\n') {
                self.out.push('\n');
            } else if name == "p" && !self.out.is_empty() && !self.out.ends_with('\n') {
                self.out.push_str("\n\n");
            }
        } else if name == "td" || name == "th" {
            self.wants_space = true;
        }
    }

    fn text(&mut self, raw: &str) {
        let (is_hidden, is_quote) = self
            .open
            .last()
            .map_or((false, false), |it| (it.is_hidden, it.is_quote));
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
            self.wants_line = false;
            self.wants_space = false;
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
    // A quote that never ends: the tag ends at the first `>` after all.
    rest.find('>').map(|at| at + 1)
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

/// What an element's attributes say about its look.
#[derive(Debug, Default)]
struct Style {
    is_hidden: bool,
    is_white_text: bool,
    /// Whether the background is white, if one is named.
    background: Option<bool>,
    classes: Vec<String>,
    id: String,
}

impl Style {
    fn of(attributes: &str) -> Self {
        let mut style = Self::default();
        let lower = attributes.to_ascii_lowercase();
        let mut rest = lower.trim_start();
        while !rest.is_empty() {
            let (name, value, after) = attribute(rest);
            style.attribute(name, value);
            rest = after.trim_start();
        }
        style
    }

    fn attribute(&mut self, name: &str, value: &str) {
        match name {
            "hidden" => self.is_hidden = true,
            "class" => {
                self.classes = value
                    .split_whitespace()
                    .take(32)
                    .map(str::to_owned)
                    .collect()
            }
            "id" => self.id = value.to_owned(),
            "bgcolor" => self.background = Some(is_white(value)),
            "color" => self.is_white_text |= is_white(value),
            "style" => {
                self.is_hidden |= hides(value);
                for (property, value) in declarations(value) {
                    match property {
                        "color" => self.is_white_text = is_white(value),
                        "background" | "background-color"
                            if value != "none" && value != "transparent" =>
                        {
                            self.background = Some(is_white(value));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// The first attribute of a tag's inside, its value, and what follows.
fn attribute(rest: &str) -> (&str, &str, &str) {
    let name_end = rest
        .find(|it: char| it == '=' || it.is_whitespace() || it == '/')
        .unwrap_or(rest.len());
    let (name, after) = rest.split_at(name_end);
    let trimmed = after.trim_start();
    let Some(value) = trimmed.strip_prefix('=') else {
        let after = trimmed.strip_prefix('/').unwrap_or(trimmed);
        return (name, "", after);
    };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(inside) = value.strip_prefix(quote) {
            let end = inside.find(quote).unwrap_or(inside.len());
            return (name, &inside[..end], inside.get(end + 1..).unwrap_or(""));
        }
    }
    let end = value.find(char::is_whitespace).unwrap_or(value.len());
    (name, &value[..end], &value[end..])
}

fn declarations(style: &str) -> impl Iterator<Item = (&str, &str)> {
    style.split(';').filter_map(|declaration| {
        let (property, value) = declaration.split_once(':')?;
        let value = value.trim().trim_end_matches("!important").trim();
        Some((property.trim(), value))
    })
}

/// Whether declarations hide an element.
fn hides(style: &str) -> bool {
    let is_zero = |value: &str| {
        let digits: String = value
            .chars()
            .take_while(|it| it.is_ascii_digit() || *it == '.')
            .collect();
        digits.parse::<f32>().is_ok_and(|it| it < 1.5)
            && !value.ends_with("em")
            && !value.ends_with('%')
            || digits.parse::<f32>().is_ok_and(|it| it == 0.0)
    };
    let is_far = |value: &str| {
        value.starts_with('-') && value[1..].chars().take_while(char::is_ascii_digit).count() >= 3
    };
    let mut is_small = false;
    let mut cuts = false;
    let by_one = declarations(style).any(|(property, value)| {
        let is_size = ["height", "max-height", "width", "max-width"].contains(&property);
        is_small |= is_size && is_zero(value);
        cuts |= property.starts_with("overflow") && value.starts_with("hidden");
        match property {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" => value.parse::<f32>().is_ok_and(|it| it < 0.1),
            "font-size" => is_zero(value),
            "mso-hide" => value == "all",
            "text-indent" | "left" | "top" | "margin-left" => is_far(value),
            "color" => value == "transparent",
            "clip" => value.starts_with("rect(0"),
            _ => false,
        }
    });
    by_one || (is_small && cuts)
}

fn is_white(color: &str) -> bool {
    let plain: String = color.chars().filter(|it| !it.is_whitespace()).collect();
    let hex = plain.strip_prefix('#').filter(|it| it.is_ascii());
    let is_light_hex = match hex {
        Some(hex) if hex.len() == 6 => (0..3)
            .all(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).is_ok_and(|it| it >= 0xf8)),
        Some(hex) if hex.len() == 3 => hex.eq_ignore_ascii_case("fff"),
        _ => false,
    };
    is_light_hex
        || plain == "white"
        || plain == "rgb(255,255,255)"
        || plain.starts_with("rgba(255,255,255,")
}

/// Classes that a rule with one class as its selector hides.
fn hidden_classes(html: &str) -> HashSet<String> {
    let mut classes = HashSet::new();
    let mut rest = html;
    let mut left = MAX_SHEET_BYTES;
    while let Some(start) = find_ignoring_case(rest, "<style") {
        let sheet = &rest[start..];
        let end = find_ignoring_case(sheet, "</style").unwrap_or(sheet.len());
        let cut = sheet[..end].floor_char_boundary(left);
        let sheet_text = sheet[..cut].to_ascii_lowercase();
        left -= cut.min(left);
        for rule in sheet_text.split('}') {
            let Some((selectors, body)) = rule.rsplit_once('{') else {
                continue;
            };
            if hides(body) {
                let last = selectors.rsplit(['{', '>']).next().unwrap_or_default();
                classes.extend(last.split(',').filter_map(class_of));
            }
        }
        rest = &sheet[end..];
        if left == 0 || end == sheet.len() {
            break;
        }
        rest = rest.get(1..).unwrap_or("");
    }
    classes
}

/// The class of a selector such as `.note` or `span.note`.
fn class_of(selector: &str) -> Option<String> {
    let (element, class) = selector.trim().split_once('.')?;
    let is_simple = |text: &str| {
        text.chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_".contains(it))
    };
    (is_simple(element) && is_simple(class) && !class.is_empty()).then(|| class.to_owned())
}

fn find_ignoring_case(text: &str, name: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let is_it = text
            .as_bytes()
            .get(start..start + name.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
        if is_it {
            return Some(start);
        }
        at = start + 1;
    }
    None
}

fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .char_indices()
            .take(12)
            .find(|(_, it)| *it == ';')
            .map(|(at, _)| at);
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|it| *it != '\0');
    }
    let character = match name {
        "amp" | "AMP" => '&',
        "lt" | "LT" => '<',
        "gt" | "GT" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "euro" => '€',
        "pound" => '£',
        "yen" => '¥',
        "cent" => '¢',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "bull" => '•',
        "middot" => '·',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "times" => '×',
        "deg" => '°',
        "frac12" => '½',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        "zwnj" | "zwj" => '\u{200b}',
        "shy" => '\u{ad}',
        "thinsp" => '\u{2009}',
        _ => return None,
    };
    Some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_a_reader_sees() {
        let rows = [
            ("<p>One</p><p>Two &amp; three</p>", "One\n\nTwo & three"),
            ("a<br>b<br/>c", "a\nb\nc"),
            ("<div>a</div><div>b  c\n d</div>", "a\nb c d"),
            (
                "<table><tr><td>Total</td><td>EUR&nbsp;5</td></tr></table>",
                "Total EUR\u{a0}5",
            ),
            (
                "Yes<blockquote>Do <b>you</b>?<br>Now?</blockquote>No",
                "Yes\n> Do you?\n> Now?\nNo",
            ),
            (
                "<head><title>t</title><style>p{color:red}</style></head><body>x</body>",
                "x",
            ),
            ("a < b and <3", "a < b and <3"),
            ("<a title='x > y' href=z>link</a>", "link"),
            ("<script>if (a<b) alert('</p>')</script>x", "x"),
            ("&#8364;5 &#xA3;6 &nope; &", "€5 £6 &nope; &"),
            (
                "<body bgcolor=black><font color=white>shown</font>",
                "shown",
            ),
        ];
        for (html, text) in rows {
            assert_eq!(visible(html).text.trim(), text, "{html}");
        }
    }

    #[test]
    fn leaves_out_what_is_hidden() {
        for hidden in [
            "<span style='display:none'>H</span>",
            "<span style=\"DISPLAY : NONE !important\">H</span>",
            "<span hidden>H</span>",
            "<div style='visibility:hidden'><b>H</b></div>",
            "<span style='font-size:0px'>H</span>",
            "<span style='font-size:1px'>H</span>",
            "<span style='opacity:0'>H</span>",
            "<span style='color:#ffffff'>H</span>",
            "<font color=white>H</font>",
            "<span style='color:#fff;background:#fff'>H</span>",
            "<span style='mso-hide:all'>H</span>",
            "<div style='height:0;overflow:hidden'>H</div>",
            "<div style='position:absolute;left:-9999px'>H</div>",
            "<style>.x{display:none}</style><i class='y x'>H</i>",
            "<style>@media all{ span.x , p { font-size: 0 } }</style><span class=x>H</span>",
        ] {
            let seen = visible(&format!("<p>a</p>{hidden}<p>b</p>"));
            assert_eq!(
                seen.text.split_whitespace().collect::<Vec<_>>(),
                ["a", "b"],
                "{hidden}"
            );
            assert!(seen.has_hidden, "{hidden}");
        }
        assert!(!visible("<head>x</head><p>a</p>").has_hidden);
    }

    #[test]
    fn survives_broken_markup() {
        for html in [
            "<",
            "<a",
            "<a href=\"",
            "</",
            "<!--",
            "<p <b>x",
            "</p></p>",
            "&#xffffffff;",
            "<style>.",
            "<é>",
        ] {
            let _ = visible(html);
        }
        let deep = visible(&"<div>".repeat(100_000));
        assert!(deep.text.is_empty());
    }
}
