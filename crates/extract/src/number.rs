//! Decimal numbers as people write them: `1.234,56`, `1,234.56`, `1 234.56`, `12'500.00`.

/// What a single separator before three digits means in this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimal {
    Point,
    Comma,
}

/// How a number reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Digits before the point, digits behind it.
    Exact(String, String),
    /// A comma before three digits, taken for thousands.
    Assumed(String),
    /// A separator that could be either.
    Ambiguous,
    /// No number of the grammar.
    Unreadable,
}

/// Reads a number; `style` is what the rest of the message shows.
pub(crate) fn read(text: &str, style: Option<Decimal>) -> Reading {
    let plain: String = text
        .chars()
        .map(|it| if is_grouping_only(it) { '\'' } else { it })
        .collect();
    if plain.contains(['/', '-', '–', ':', '?']) {
        return Reading::Unreadable;
    }
    let points = plain.matches('.').count();
    let commas = plain.matches(',').count();
    match (points, commas) {
        (0, 0) => grouped(&plain, '\'', ""),
        (_, 0) => one_kind(&plain, '.', points, style),
        (0, _) => one_kind(&plain, ',', commas, style),
        (_, _) => {
            let decimal = if plain.rfind('.') > plain.rfind(',') {
                '.'
            } else {
                ','
            };
            let group = if decimal == '.' { ',' } else { '.' };
            match plain.rsplit_once(decimal) {
                // "1,234.567": another group, or a fraction that no money has.
                Some((_, fraction)) if fraction.len() == 3 => Reading::Ambiguous,
                Some((whole, fraction)) => grouped(whole, group, fraction),
                None => Reading::Unreadable,
            }
        }
    }
}

/// The decimal sign that a number shows beyond doubt, if it does.
pub(crate) fn shown_style(text: &str) -> Option<Decimal> {
    let points = text.matches('.').count();
    let commas = text.matches(',').count();
    if points > 0 && commas > 0 {
        let is_point = text.rfind('.') > text.rfind(',');
        let is_read = matches!(read(text, None), Reading::Exact(..));
        return is_read.then_some(if is_point {
            Decimal::Point
        } else {
            Decimal::Comma
        });
    }
    if points + commas != 1 {
        return None;
    }
    let (_, fraction) = text.rsplit_once(['.', ','])?;
    let is_plain = (1..=2).contains(&fraction.len()) && !text.contains(['/', ':', '-']);
    is_plain.then_some(if points == 1 {
        Decimal::Point
    } else {
        Decimal::Comma
    })
}

fn is_grouping_only(character: char) -> bool {
    matches!(character, '’' | ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// A number with one kind of separator besides those that only group.
fn one_kind(plain: &str, separator: char, count: usize, style: Option<Decimal>) -> Reading {
    let Some((whole, last)) = plain.rsplit_once(separator) else {
        return Reading::Unreadable;
    };
    if count > 1 {
        return grouped(plain, separator, "");
    }
    if last.len() != 3 {
        let is_fraction = (1..=2).contains(&last.len()) || last.len() == 4;
        return if is_fraction {
            grouped(whole, '\'', last)
        } else {
            Reading::Unreadable
        };
    }
    if whole.contains('\'') {
        return Reading::Ambiguous;
    }
    match (style, separator) {
        (Some(Decimal::Point), ',') | (Some(Decimal::Comma), '.') => grouped(plain, separator, ""),
        (None, ',') => match grouped(plain, separator, "") {
            Reading::Exact(whole, _) => Reading::Assumed(whole),
            other @ (Reading::Assumed(_) | Reading::Ambiguous | Reading::Unreadable) => other,
        },
        (Some(_) | None, _) => Reading::Ambiguous,
    }
}

/// Digits in groups of three, joined by `group`.
fn grouped(whole: &str, group: char, fraction: &str) -> Reading {
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let mut groups = whole.split(group);
    let first = groups.next().unwrap_or_default();
    let has_groups = whole.contains(group);
    let is_whole = !first.is_empty()
        && is_digits(first)
        && (!has_groups || first.len() <= 3)
        && (first.len() == 1 || !first.starts_with('0'))
        && !(has_groups && first == "0")
        && groups.all(|it| it.len() == 3 && is_digits(it));
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    if !is_whole || digits.len() > 12 || fraction.len() > 4 || !is_digits(fraction) {
        return Reading::Unreadable;
    }
    Reading::Exact(digits, fraction.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(whole: &str, fraction: &str) -> Reading {
        Reading::Exact(whole.to_owned(), fraction.to_owned())
    }

    #[test]
    fn reads_the_ways_in_which_people_write_numbers() {
        let rows = [
            ("7", exact("7", "")),
            ("1.234,56", exact("1234", "56")),
            ("1,234.56", exact("1234", "56")),
            ("1'234.56", exact("1234", "56")),
            ("12’500", exact("12500", "")),
            ("1\u{202f}234,5", exact("1234", "5")),
            ("1.234.567", exact("1234567", "")),
            ("1,234,567.8", exact("1234567", "8")),
            ("12,5", exact("12", "5")),
            ("12.50", exact("12", "50")),
            ("0.99", exact("0", "99")),
            ("1,234", Reading::Assumed("1234".to_owned())),
            ("45.000", Reading::Ambiguous),
            ("1,234.567", Reading::Ambiguous),
            ("1'234.567", Reading::Ambiguous),
            ("1,23,456", Reading::Unreadable),
            ("1.234,567,89", Reading::Unreadable),
            ("007", Reading::Unreadable),
            ("0,123", Reading::Unreadable),
            ("12:30", Reading::Unreadable),
            ("1234,567", Reading::Unreadable),
        ];
        for (text, reading) in rows {
            assert_eq!(read(text, None), reading, "{text}");
        }
    }

    #[test]
    fn the_rest_of_the_message_decides_what_one_separator_means() {
        assert_eq!(shown_style("1.234,56"), Some(Decimal::Comma));
        assert_eq!(shown_style("9.99"), Some(Decimal::Point));
        assert_eq!(shown_style("45.000"), None);
        assert_eq!(read("45.000", Some(Decimal::Comma)), exact("45000", ""));
        assert_eq!(read("45,000", Some(Decimal::Point)), exact("45000", ""));
        assert_eq!(read("45.000", Some(Decimal::Point)), Reading::Ambiguous);
    }
}
