//! What attributes and style sheets say about whether an element is seen.

use std::collections::HashSet;

use super::color::{plain_color, shorthand_color};
use super::declaration::{declarations, has_tiny_text, hides, plain};
use super::entity::decode_entities;

/// The most of a style sheet that is looked at.
const MAX_SHEET_BYTES: usize = 256 * 1024;

/// What an element's attributes say about its look.
#[derive(Debug, Default)]
pub(super) struct Style {
    pub(super) is_hidden: bool,
    /// Whether its text is too small to see, if it says.
    pub(super) is_tiny: Option<bool>,
    /// It holds an earlier message.
    pub(super) is_quote: bool,
    /// A variable stands in it.
    pub(super) has_unread: bool,
    /// A dialog that is shown.
    pub(super) is_open: bool,
    /// The colours of text and background in one form; empty where none is named.
    pub(super) color: String,
    pub(super) background: String,
    pub(super) classes: Vec<String>,
    pub(super) id: String,
}

impl Style {
    pub(super) fn of(attributes: &str) -> Self {
        let mut style = Self::default();
        let lower = attributes.to_ascii_lowercase();
        let mut rest = lower.trim_start();
        while !rest.is_empty() {
            let (name, value, after) = attribute(rest);
            style.attribute(name, &decode_entities(value));
            rest = after.trim_start();
        }
        style
    }

    fn attribute(&mut self, name: &str, value: &str) {
        match name {
            "hidden" | "popover" => self.is_hidden = true,
            "aria-hidden" => self.is_hidden |= value.trim() == "true",
            "open" => self.is_open = true,
            "data-marker" => self.is_quote = value == "__quoted_text__",
            "class" => {
                self.classes = value
                    .split_whitespace()
                    .take(32)
                    .map(str::to_owned)
                    .collect()
            }
            "id" => self.id = value.to_owned(),
            "bgcolor" => self.background = plain_color(value),
            "color" | "text" => self.color = plain_color(value),
            "style" => {
                let style = plain(value);
                self.is_hidden |= hides(&style);
                self.is_tiny = has_tiny_text(&style);
                self.has_unread = style.contains("var(");
                for (property, value) in declarations(&style) {
                    match property {
                        "color" => self.color = plain_color(value),
                        "background" | "background-color"
                            if value != "none" && value != "transparent" =>
                        {
                            self.background = shorthand_color(value);
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

/// What rules with a plain selector hide.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    classes: HashSet<String>,
    ids: HashSet<String>,
    elements: HashSet<String>,
}

impl Hidden {
    pub(super) fn matches(&self, element: &str, style: &Style) -> bool {
        self.elements.contains(element)
            || self.ids.contains(&style.id)
            || style.classes.iter().any(|it| self.classes.contains(it))
    }

    /// Takes a selector such as `.note`, `span.note`, `#note` or `em`; not one of another kind.
    /// The text in an element that is `only_tiny` may have a size of its own.
    fn take(&mut self, selector: &str, only_tiny: bool) -> bool {
        let selector = selector.trim();
        let is_name = |text: &str| {
            let mut characters = text.chars();
            characters.all(|it| it.is_ascii_alphanumeric() || "-_".contains(it))
        };
        let (sign, element, name) = match selector.find(['.', '#']) {
            Some(at) => (&selector[at..=at], &selector[..at], &selector[at + 1..]),
            None => ("", selector, selector),
        };
        let is_open = only_tiny && sign.is_empty();
        if !is_name(element) || !is_name(name) || name.is_empty() || is_open {
            return false;
        }
        let names = match sign {
            "." => &mut self.classes,
            "#" => &mut self.ids,
            _ => &mut self.elements,
        };
        names.insert(name.to_owned());
        true
    }
}

/// What style sheets hide.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    pub(super) hidden: Hidden,
    /// A rule hides something, and its selector is of another kind.
    pub(super) has_unread: bool,
}

/// Reads the style sheets of a document.
pub(super) fn sheets(html: &str) -> Sheets {
    let mut sheets = Sheets::default();
    let mut rest = html;
    let mut left = MAX_SHEET_BYTES;
    while let Some(start) = find_ignoring_case(rest, "<style") {
        let sheet = &rest[start..];
        let end = find_ignoring_case(sheet, "</style").unwrap_or(sheet.len());
        let cut = sheet[..end].floor_char_boundary(left);
        let sheet_text = sheet[..cut].to_ascii_lowercase();
        let (_, sheet_text) = sheet_text.split_once('>').unwrap_or_default();
        let sheet_text = plain(&sheet_text.replace("<!--", " ").replace("-->", " "));
        left -= cut.min(left);
        for rule in sheet_text.split('}') {
            let Some((selectors, body)) = rule.rsplit_once('{') else {
                continue;
            };
            let is_hidden = hides(body);
            if is_hidden || has_tiny_text(body) == Some(true) {
                let last = selectors.rsplit(['{', ';']).next().unwrap_or_default();
                for selector in last.split(',') {
                    sheets.has_unread |= !sheets.hidden.take(selector, !is_hidden);
                }
            }
        }
        rest = &sheet[end..];
        if left == 0 || end == sheet.len() {
            break;
        }
        rest = rest.get(1..).unwrap_or("");
    }
    sheets
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
