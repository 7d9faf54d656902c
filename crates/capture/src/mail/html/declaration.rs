//! What the declarations of a style say about whether something is seen.

use super::color::is_transparent;

/// A style without comments and escapes, so that `d\69splay` is read as browsers read it.
pub(super) fn plain(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some(at) = rest.find(['/', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else if let Some(escaped) = rest.strip_prefix('\\') {
            rest = unescape(escaped, &mut out);
        } else {
            out.push('/');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out.to_ascii_lowercase()
}

/// Reads what follows a backslash, and returns what follows that.
fn unescape<'a>(escaped: &'a str, out: &mut String) -> &'a str {
    let digits = escaped
        .bytes()
        .take(6)
        .take_while(u8::is_ascii_hexdigit)
        .count();
    if digits == 0 {
        let mut characters = escaped.chars();
        out.extend(characters.next());
        return characters.as_str();
    }
    let code = u32::from_str_radix(&escaped[..digits], 16).unwrap_or(0);
    out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
    let after = &escaped[digits..];
    after.strip_prefix([' ', '\t', '\n']).unwrap_or(after)
}

pub(super) fn declarations(style: &str) -> impl Iterator<Item = (&str, &str)> {
    style.split(';').filter_map(|declaration| {
        let (property, value) = declaration.split_once(':')?;
        let value = value.trim().trim_end_matches("!important").trim();
        Some((property.trim(), value))
    })
}

/// Whether declarations leave text that is too small to see; none where the text is as large as that
/// around it, or as a share of that.
pub(super) fn has_tiny_text(style: &str) -> Option<bool> {
    let is_absolute = |value: &str| {
        let is_share = value.ends_with("em") && !value.ends_with("rem") || value.ends_with('%');
        !is_share && value != "inherit"
    };
    declarations(style)
        .filter_map(|(property, value)| match property {
            "font-size" => Some(value),
            "font" => value
                .split_whitespace()
                .filter_map(|word| word.split('/').next())
                .find(|word| word.starts_with(|it: char| it.is_ascii_digit()) && !is_weight(word)),
            _ => None,
        })
        .filter(|value| is_tiny(value) || is_absolute(value))
        .map(is_tiny)
        .last()
}

/// "font: 400 12px/1.5 a": a number without a unit is no size, but for 0.
fn is_weight(word: &str) -> bool {
    word != "0" && word.bytes().all(|it| it.is_ascii_digit())
}

/// Whether declarations hide an element with all that is in it.
pub(super) fn hides(style: &str) -> bool {
    let mut is_small = false;
    let mut cuts = false;
    let by_one = declarations(style).any(|(property, value)| {
        let is_size = ["height", "max-height", "width", "max-width"].contains(&property);
        is_small |= is_size && is_tiny(value);
        is_small |= property == "line-height" && number(value) == Some(0.0);
        is_small |= property == "text-indent" && value == "100%";
        cuts |= property.starts_with("overflow")
            && (value.starts_with("hidden") || value.starts_with("clip"));
        match property {
            "display" => value == "none",
            "content-visibility" => value == "hidden",
            "transform" | "-webkit-transform" | "-ms-transform" => is_transformed_away(value),
            "scale" | "zoom" => number(value).is_some_and(|it| it < 0.1),
            "filter" => value.starts_with("opacity(0") || value.contains("alpha(opacity=0"),
            "clip-path" => ["inset(50%", "inset(100%", "circle(0", "polygon(0 0,0 0"]
                .iter()
                .any(|it| value.replace(", ", ",").starts_with(it)),
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" => is_transparent_share(value),
            "mso-hide" => value == "all",
            "text-decoration" | "text-decoration-line" => value.contains("line-through"),
            "text-indent" | "left" | "top" | "right" | "bottom" | "margin-left" | "margin-top"
            | "margin" | "translate" | "inset" => is_far(value),
            "color" | "-webkit-text-fill-color" => is_transparent(value),
            "clip" => value.starts_with("rect(0"),
            // Letters on each other.
            "letter-spacing" => value.strip_prefix('-').is_some_and(|it| {
                let least = if it.ends_with("em") { 0.4 } else { 5.0 };
                number(it).is_some_and(|it| it >= least)
            }),
            _ => false,
        }
    });
    by_one || (is_small && cuts)
}

/// The number that a value begins with.
fn number(value: &str) -> Option<f32> {
    let value = value.strip_prefix("calc(").unwrap_or(value);
    let end = value
        .find(|it: char| !it.is_ascii_digit() && it != '.')
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

fn is_tiny(value: &str) -> bool {
    let limit = if value.ends_with("em") {
        0.3
    } else if value.ends_with('%') {
        20.0
    } else {
        1.5
    };
    number(value).is_some_and(|it| it == 0.0 || it < limit)
}

pub(super) fn is_transparent_share(value: &str) -> bool {
    let share = if value.ends_with('%') { 10.0 } else { 0.1 };
    number(value).is_some_and(|it| it < share)
}

/// Outside of every window: hundreds to the left or above, tens of thousands to the right.
fn is_far(value: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    value
        .strip_prefix('-')
        .map_or(digits(value) >= 5, |after| digits(after) >= 3)
}

fn is_transformed_away(value: &str) -> bool {
    let moved = value
        .split_once("translate")
        .and_then(|(_, rest)| rest.split_once('('))
        .is_some_and(|(_, amount)| is_far(amount));
    let scaled = value
        .split_once("scale")
        .and_then(|(_, rest)| rest.split_once('('))
        .and_then(|(_, amount)| number(amount))
        .is_some_and(|it| it < 0.1);
    moved || scaled || value.contains("(90deg")
}
