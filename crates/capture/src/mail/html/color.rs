//! Colours: whether one can be told from what is behind it.

use super::declaration::is_transparent_share;

/// How far each part of two colours may differ that nobody tells apart.
const ALIKE: u8 = 24;

/// The basic names (CSS 2.1).
const NAMES: &[(&str, [u8; 3])] = &[
    ("aqua", [0, 255, 255]),
    ("black", [0, 0, 0]),
    ("blue", [0, 0, 255]),
    ("fuchsia", [255, 0, 255]),
    ("gray", [128, 128, 128]),
    ("green", [0, 128, 0]),
    ("grey", [128, 128, 128]),
    ("lime", [0, 255, 0]),
    ("maroon", [128, 0, 0]),
    ("navy", [0, 0, 128]),
    ("olive", [128, 128, 0]),
    ("purple", [128, 0, 128]),
    ("red", [255, 0, 0]),
    ("silver", [192, 192, 192]),
    ("snow", [255, 250, 250]),
    ("teal", [0, 128, 128]),
    ("white", [255, 255, 255]),
    ("yellow", [255, 255, 0]),
];

/// A colour without spaces; empty where it is that of the element around.
pub(super) fn plain_color(color: &str) -> String {
    let plain: String = color.chars().filter(|it| !it.is_whitespace()).collect();
    if plain == "inherit" || plain == "currentcolor" {
        return String::new();
    }
    plain
}

/// The colour in a `background`, among images and positions.
pub(super) fn shorthand_color(value: &str) -> String {
    let found = value.split_whitespace().find(|it| channels(it).is_some());
    plain_color(found.unwrap_or(value))
}

/// Whether nobody can tell two colours apart.
pub(super) fn is_like(color: &str, other: &str) -> bool {
    match (channels(color), channels(other)) {
        (Some(color), Some(other)) => color
            .iter()
            .zip(other)
            .all(|(one, other)| one.abs_diff(other) < ALIKE),
        (_, _) => color == other,
    }
}

/// Red, green and blue; none for forms that are not read.
fn channels(color: &str) -> Option<[u8; 3]> {
    if let Some((_, known)) = NAMES.iter().find(|(name, _)| *name == color) {
        return Some(*known);
    }
    if let Some(hex) = color.strip_prefix('#') {
        return hexadecimal(hex);
    }
    if color.starts_with("hsl") && color.trim_end_matches(')').ends_with(",100%") {
        return Some([255; 3]);
    }
    let parts = color
        .strip_prefix("rgba(")
        .or_else(|| color.strip_prefix("rgb("))?;
    let parts = parts.trim_end_matches(')').split(',').take(3);
    let parts: Option<Vec<u8>> = parts.map(|it| it.parse().ok()).collect();
    parts?.try_into().ok()
}

fn hexadecimal(hex: &str) -> Option<[u8; 3]> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|it| it.to_digit(16).and_then(|it| u8::try_from(it).ok()))
        .collect();
    match digits?.as_slice() {
        [red, green, blue] | [red, green, blue, _] => Some([red * 17, green * 17, blue * 17]),
        [a, b, c, d, e, f] | [a, b, c, d, e, f, _, _] => Some([a * 16 + b, c * 16 + d, e * 16 + f]),
        _ => None,
    }
}

/// Whether a colour leaves what it paints unseen.
pub(super) fn is_transparent(color: &str) -> bool {
    let compact: String = color.chars().filter(|it| !it.is_whitespace()).collect();
    let by_hex = compact.strip_prefix('#').is_some_and(|hex| {
        (hex.len() == 8 && hex.ends_with("00")) || (hex.len() == 4 && hex.ends_with('0'))
    });
    let is_function = ["rgb", "hsl"].iter().any(|it| compact.starts_with(it));
    let separator = if compact.contains('/') { '/' } else { ',' };
    let has_share = compact.contains('/') || compact.contains("a(");
    let by_share = is_function
        && has_share
        && compact
            .trim_end_matches(')')
            .rsplit(separator)
            .next()
            .is_some_and(is_transparent_share);
    compact == "transparent" || by_hex || by_share
}
