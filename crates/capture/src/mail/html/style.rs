//! What attributes and style sheets say about whether an element is seen.

use std::collections::HashSet;

use super::declaration::{declarations, hides, is_white, plain};
use super::entity::decode_entities;

/// The most of a style sheet that is looked at.
const MAX_SHEET_BYTES: usize = 256 * 1024;

/// What an element's attributes say about its look.
#[derive(Debug, Default)]
pub(super) struct Style {
    pub(super) is_hidden: bool,
    pub(super) is_white_text: bool,
    /// The colours of text and background, where one declaration names both.
    color: String,
    /// Whether the background is white, if one is named.
    pub(super) background: Option<bool>,
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
                let style = plain(value);
                self.is_hidden |= hides(&style);
                for (property, value) in declarations(&style) {
                    match property {
                        "color" => {
                            self.is_white_text = is_white(value);
                            self.color = plain_color(value);
                        }
                        "background" | "background-color"
                            if value != "none" && value != "transparent" =>
                        {
                            self.background = Some(is_white(value));
                            let has_one_color =
                                !self.color.is_empty() && self.color == plain_color(value);
                            self.is_hidden |= has_one_color;
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

/// A colour without spaces, and short hexadecimal forms in full.
fn plain_color(color: &str) -> String {
    let plain: String = color.chars().filter(|it| !it.is_whitespace()).collect();
    match plain.strip_prefix('#') {
        Some(hex) if hex.len() == 3 => {
            let twice = hex.chars().flat_map(|it| [it, it]);
            std::iter::once('#').chain(twice).collect()
        }
        Some(_) | None => plain,
    }
}

/// What style sheets hide.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    /// Classes that a rule with one class as its selector hides.
    pub(super) hidden_classes: HashSet<String>,
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
            if hides(body) {
                let last = selectors.rsplit(['{', ';']).next().unwrap_or_default();
                for selector in last.split(',') {
                    match class_of(selector) {
                        Some(class) => {
                            sheets.hidden_classes.insert(class);
                        }
                        None => sheets.has_unread = true,
                    }
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
