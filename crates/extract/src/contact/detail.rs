//! Telephone numbers and addresses in a text.

use crate::token::steps;

/// Digits of a telephone number with its country (E.164 allows 15).
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// A telephone number or an address in a text.
pub(super) struct Detail {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: String,
    pub(super) is_phone: bool,
    /// A telephone number says its country, so that its value is whole.
    pub(super) has_country: bool,
}

/// The first detail at or after `from`.
pub(super) fn next_detail(text: &str, from: usize) -> Option<Detail> {
    let mut at = from;
    while at < text.len() {
        steps::count();
        let rest = &text[at..];
        let next = rest.chars().next()?;
        let before = &text[..at];
        // A number does not begin within another one.
        let is_within = next.is_ascii_digit()
            && before
                .trim_end_matches([' ', '-', '.', '/', '\u{a0}'])
                .ends_with(|it: char| it.is_ascii_digit());
        let is_start =
            !is_within && !before.ends_with(|it: char| it.is_alphanumeric() || it == '+');
        if is_start && let Some(detail) = phone(text, at).or_else(|| address(text, at)) {
            return Some(detail);
        }
        // A run of letters and digits is looked at once.
        let run: usize = if next.is_alphanumeric() {
            rest.chars()
                .take_while(|it| it.is_alphanumeric())
                .map(char::len_utf8)
                .sum()
        } else {
            next.len_utf8()
        };
        at += run;
    }
    None
}

/// `+44 20 7946 0123`, `0049 ...`, `(415) 555-0134`.
fn phone(text: &str, at: usize) -> Option<Detail> {
    let rest = &text[at..];
    let mut digits = String::new();
    let mut end = 0;
    let mut gap = 0;
    for (offset, character) in rest.char_indices().take(40) {
        steps::count();
        let is_sign = matches!(
            character,
            ' ' | '-' | '.' | '/' | '(' | ')' | '\u{a0}' | '\u{2011}'
        );
        if character.is_ascii_digit() {
            // "+44 (0)20" has a trunk digit that is not dialled from abroad.
            let is_trunk = !digits.is_empty()
                && rest[..offset].ends_with('(')
                && rest[offset..].starts_with("0)");
            if !is_trunk {
                digits.push(character);
            }
            end = offset + 1;
            gap = 0;
        } else if is_sign && gap < 2 || (offset == 0 && character == '+') {
            gap += 1;
        } else {
            break;
        }
    }
    let first = rest.chars().next()?;
    if !(first == '+' || first == '(' || first.is_ascii_digit()) {
        return None;
    }
    // Letters behind it make it a code; a longer run of digits is none either.
    let is_closed = !rest[end..].starts_with(|it: char| it.is_alphanumeric() || it == '@');
    let international = match digits.strip_prefix("00") {
        Some(behind) if rest.starts_with("00") => Some(behind.to_owned()),
        Some(_) | None if first == '+' => Some(digits.clone()),
        Some(_) | None => None,
    };
    let has_country = international.is_some();
    let digits = international.unwrap_or(digits);
    let is_number = is_closed
        && PHONE_DIGITS.contains(&digits.len())
        && !(has_country && digits.starts_with('0'));
    is_number.then(|| Detail {
        start: at,
        end: at + end,
        value: format!("+{digits}"),
        is_phone: true,
        has_country,
    })
}

/// `name@host.example`, with a domain of at least two labels.
fn address(text: &str, at: usize) -> Option<Detail> {
    let rest = &text[at..];
    let is_local = |it: char| it.is_ascii_alphanumeric() || "._%+-".contains(it);
    let local: usize = rest.chars().take(65).take_while(|it| is_local(*it)).count();
    if !(1..=64).contains(&local) || !rest[local..].starts_with('@') {
        return None;
    }
    let domain_start = local + 1;
    let domain: String = rest[domain_start..]
        .chars()
        .take(254)
        .take_while(|it| it.is_alphanumeric() || *it == '.' || *it == '-')
        .collect();
    let domain = domain.trim_end_matches(['.', '-']);
    let labels: Vec<&str> = domain.split('.').collect();
    let is_domain = labels.len() >= 2
        && labels
            .iter()
            .all(|it| !it.is_empty() && it.len() <= 63 && !it.starts_with('-'))
        && labels
            .last()
            .is_some_and(|it| it.chars().all(char::is_alphabetic) && it.len() >= 2);
    let name = &rest[..local];
    let is_name = !name.starts_with('.') && !name.ends_with('.') && !name.contains("..");
    (is_domain && is_name && local + domain.len() <= 253).then(|| Detail {
        start: at,
        end: at + domain_start + domain.len(),
        value: format!("{name}@{}", domain.to_lowercase()),
        is_phone: false,
        has_country: true,
    })
}
