//! In whose time a time of day is, and across which days its zone may have changed its clocks.

use time::{Date, Duration, Month, Weekday};

use crate::token::{Kind, Token};

/// In whose time it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Zone {
    /// No zone stands beside it: the author's.
    Author,
    /// A name with these meanings, in minutes ahead of UTC.
    Named(&'static [i32]),
    /// A name or phrase that is not read.
    Unclear,
}

/// The zone that stands behind a time, and how many tokens it takes.
pub(super) fn zone(tokens: &[Token], at: usize) -> (Zone, usize) {
    const NAMES: &[(&str, &[i32])] = &[
        ("utc", &[0]),
        ("gmt", &[0]),
        ("wet", &[0]),
        ("cet", &[60]),
        ("cest", &[120]),
        ("eet", &[120]),
        ("eest", &[180]),
        ("msk", &[180]),
        ("sast", &[120]),
        ("bst", &[60, 360]),
        ("ist", &[330, 60, 120]),
        ("sgt", &[480]),
        ("hkt", &[480]),
        ("jst", &[540]),
        ("kst", &[540]),
        ("aest", &[600]),
        ("aedt", &[660]),
        ("nzst", &[720]),
        ("nzdt", &[780]),
        ("est", &[-300, 600]),
        ("edt", &[-240]),
        ("cst", &[-360, 480]),
        ("cdt", &[-300]),
        ("mst", &[-420]),
        ("mdt", &[-360]),
        ("pst", &[-480, 480]),
        ("pdt", &[-420]),
    ];
    const VAGUE: &[&str] = &[
        "et", "ct", "mt", "pt", "your", "local", "eastern", "central", "pacific", "mountain",
        "their", "his", "her",
    ];
    // "15:00 (GMT)"
    let is_bracketed = tokens.get(at).is_some_and(|it| it.is_sign("("));
    let at = at + usize::from(is_bracketed);
    let Some(token) = tokens.get(at) else {
        return (Zone::Author, 0);
    };
    // "est" and "ist" are words of other languages in lower case.
    if let Some((_, meanings)) = NAMES
        .iter()
        .find(|(name, _)| token.is_word(name) && token.is_upper)
    {
        // "UTC+2" names another zone than UTC.
        let is_shifted = tokens
            .get(at + 1)
            .is_some_and(|it| it.is_sign("+") || it.is_sign("-"));
        return (
            if is_shifted {
                Zone::Unclear
            } else {
                Zone::Named(meanings)
            },
            1,
        );
    }
    let is_vague = token.is_one_of(VAGUE) && (token.text.len() > 2 || token.is_upper);
    let is_code = token.kind == Kind::Word && token.is_upper && (3..=4).contains(&token.text.len());
    // "(London)", "London time", "New York time".
    let is_place = is_bracketed && token.is_capital;
    let is_time_of = tokens[at..]
        .iter()
        .take(4)
        .find(|it| !it.is_capital)
        .is_some_and(|it| it.is_word("time"))
        && token.is_capital;
    if is_vague || is_code || is_place || is_time_of {
        return (Zone::Unclear, 1);
    }
    (Zone::Author, 0)
}

/// Whether a country with this offset may change its clocks between two days. Only days of the usual
/// changes count: Sundays of Europe, North America, and Australia and New Zealand.
pub(super) fn clocks_may_change(from: Date, to: Date, offset: i32) -> bool {
    use Month::{April, March, November, October, September};
    let windows: &[(Month, u8, u8)] = match offset {
        -600..=-120 => &[(March, 8, 14), (November, 1, 7)],
        0..=180 => &[(March, 25, 31), (October, 25, 31)],
        570..=780 => &[(April, 1, 7), (September, 24, 30), (October, 1, 7)],
        _ => return false,
    };
    let days = (to - from).whole_days();
    if days > 366 {
        return true;
    }
    (1..=days.max(0)).any(|ahead| {
        from.checked_add(Duration::days(ahead)).is_some_and(|day| {
            let is_in = windows.iter().any(|(month, first, last)| {
                day.month() == *month && (*first..=*last).contains(&day.day())
            });
            is_in && day.weekday() == Weekday::Sunday
        })
    })
}
