//! Dates that name at least their month, or an ordinal day.

use super::Phrase;
use crate::token::{Kind, Token};

/// What an ordinal counts that is no day of a month: "the 2nd draft", "the 5th working day".
const COUNTED: &[&str] = &[
    "working",
    "business",
    "banking",
    "day",
    "week",
    "month",
    "quarter",
    "half",
    "floor",
    "draft",
    "version",
    "edition",
    "round",
    "time",
    "invoice",
    "instalment",
    "installment",
    "payment",
    "reminder",
    "copy",
    "report",
    "stage",
    "phase",
    "part",
    "item",
    "meeting",
    "session",
    "attempt",
    "anniversary",
    "birthday",
    "century",
    "grade",
    "person",
    "one",
];

/// A date that names at least its month, or "the 14th".
pub(super) fn calendar(rest: &[Token]) -> Option<(Phrase, usize)> {
    let first = rest.first()?;
    if first.kind == Kind::Number {
        return numeric(first).map(|it| (it, 1)).or_else(|| day_month(rest));
    }
    if first.is_word("the") {
        return day_month(&rest[1..])
            .map(|(phrase, length)| (phrase, length + 1))
            .or_else(|| {
                let day = rest.get(1).and_then(day)?;
                let is_ordinal = rest.get(2).is_some_and(is_ordinal_suffix);
                let after = rest.get(3..)?;
                let counts_things = after.first().is_some_and(|it| it.is_one_of(COUNTED));
                (is_ordinal && !counts_things).then(|| of_some_month(day, after, 3))
            });
    }
    month_day(rest)
}

/// "the 14th", "the 14th of next month", "the 14th of every month".
fn of_some_month(day: u8, after: &[Token], length: usize) -> (Phrase, usize) {
    let is_of = after.first().is_some_and(|it| it.is_word("of"));
    let is_month = after
        .get(2)
        .is_some_and(|it| it.is_one_of(&["month", "quarter", "year"]));
    let which = after.get(1).filter(|_| is_of && is_month);
    let phrase = match which.map(|it| it.text.as_str()) {
        None | Some("the") => return (Phrase::DayOfMonth(day), length),
        Some("this") if after[2].is_word("month") => Phrase::DayOfMonthAhead(day, 0),
        Some("next") if after[2].is_word("month") => Phrase::DayOfMonthAhead(day, 1),
        Some("last") => Phrase::Past,
        Some("every" | "each") => Phrase::Unclear(crate::mark::DATE_RECURRING),
        Some(_) => Phrase::Unclear(crate::mark::DATE_VAGUE),
    };
    (phrase, length + 3)
}

/// "14 August 2026", "14th of August", "14-Aug-26".
fn day_month(rest: &[Token]) -> Option<(Phrase, usize)> {
    let first = rest.first().filter(|it| it.kind == Kind::Number)?;
    let mut at = 1;
    if rest.get(at).is_some_and(is_ordinal_suffix) {
        at += 1;
    }
    while rest
        .get(at)
        .is_some_and(|it| it.is_word("of") || it.is_sign(".") || it.is_sign("-") || it.is_sign(","))
        && at < 3
    {
        at += 1;
    }
    let month = rest.get(at).and_then(month)?;
    at += 1;
    if rest
        .get(at)
        .is_some_and(|it| it.is_sign(".") || it.is_sign("-") || it.is_sign(","))
    {
        let is_joint = rest.get(at + 1).and_then(year).is_some();
        at += usize::from(is_joint || rest[at].is_sign("."));
    }
    let year = rest.get(at).and_then(year);
    at += usize::from(year.is_some());
    if first.text.contains(['-', '–', '/']) {
        // "14-16 August"
        return Some((Phrase::Unclear(crate::mark::DATE_RANGE), at));
    }
    let day = day(first)?;
    Some((exact(year, month, day), at))
}

/// "August 14, 2026", "Aug. 14th".
fn month_day(rest: &[Token]) -> Option<(Phrase, usize)> {
    let month = rest.first().and_then(month)?;
    let mut at = 1;
    while at < 3
        && rest
            .get(at)
            .is_some_and(|it| it.is_sign(".") || it.is_word("the") || it.is_sign("-"))
    {
        at += 1;
    }
    let number = rest.get(at).filter(|it| it.kind == Kind::Number)?;
    if number.text.contains(['-', '–']) {
        return Some((Phrase::Unclear(crate::mark::DATE_RANGE), at + 1));
    }
    let day = day(number)?;
    at += 1;
    if rest.get(at).is_some_and(is_ordinal_suffix) {
        at += 1;
    }
    let has_comma = rest
        .get(at)
        .is_some_and(|it| it.is_sign(",") || it.is_sign("-"));
    let year = rest
        .get(at + usize::from(has_comma))
        .filter(|it| it.text.len() == 4)
        .and_then(year);
    if year.is_some() {
        at += 1 + usize::from(has_comma);
    }
    Some((exact(year, month, day), at))
}

fn exact(year: Option<i32>, month: u8, day: u8) -> Phrase {
    match year {
        Some(year) => Phrase::Full(year, month, day),
        None => Phrase::MonthDay(month, day),
    }
}

/// Whether the digits from `start` to `end` are part of an address, a file's name, a code or a
/// version, which name no day.
pub(super) fn is_in_a_name(tokens: &[Token], start: usize, end: usize) -> bool {
    const JOINTS: &[&str] = &["/", "_", "=", "?", "&", "#", "@", "%", "\\", "~"];
    let joins = |token: &Token| token.kind == Kind::Sign && JOINTS.contains(&token.text.as_str());
    let before = start.checked_sub(1).map(|at| &tokens[at]);
    let follows =
        tokens[start].is_glued && before.is_some_and(|it| joins(it) || it.kind == Kind::Word);
    let goes_on = tokens.get(end).is_some_and(|it| it.is_glued && joins(it))
        && tokens.get(end + 1).is_some_and(|it| it.is_glued);
    let is_named = before.is_some_and(|it| {
        it.is_one_of(&[
            "code",
            "version",
            "release",
            "build",
            "reference",
            "ref",
            "password",
        ])
    });
    follows || goes_on || is_named
}

/// `2026-08-14`, `14.8.2026`, `03/11/2026`, `3/11`.
fn numeric(token: &Token) -> Option<Phrase> {
    let text = token.text.as_str();
    let separator = ['-', '/', '.', '–']
        .into_iter()
        .find(|it| text.contains(*it))?;
    let parts: Vec<&str> = text.split(separator).collect();
    let number = |part: &str| part.parse::<u16>().ok().filter(|_| part.len() <= 4);
    let small = |part: &str| {
        let is_short = (1..=2).contains(&part.len());
        part.parse::<u8>().ok().filter(|_| is_short)
    };
    match parts.as_slice() {
        [year, month, day] if year.len() == 4 => Some(Phrase::Full(
            i32::from(number(year)?),
            small(month)?,
            small(day)?,
        )),
        [day, month, year] if year.len() == 4 || year.len() == 2 => {
            let (first, second) = (small(day)?, small(month)?);
            let year = i32::from(number(year)?);
            let year = if year < 100 { 2000 + year } else { year };
            match separator {
                // Only day-first countries join dates with points.
                '.' => Some(Phrase::Full(year, second, first)),
                _ => Some(Phrase::Numeric(first, second, Some(year))),
            }
        }
        [first, second] if separator == '/' => {
            Some(Phrase::Numeric(small(first)?, small(second)?, None))
        }
        _ => None,
    }
}

pub(super) fn day(token: &Token) -> Option<u8> {
    let is_short = token.kind == Kind::Number && token.text.len() <= 2;
    let day = token.text.parse().ok().filter(|_| is_short)?;
    (1..=31).contains(&day).then_some(day)
}

pub(super) fn year(token: &Token) -> Option<i32> {
    let text = token.text.as_str();
    let is_year = token.kind == Kind::Number && text.bytes().all(|it| it.is_ascii_digit());
    let number: i32 = text.parse().ok().filter(|_| is_year)?;
    match text.len() {
        4 if (1900..=2200).contains(&number) => Some(number),
        2 if token.is_glued => Some(2000 + number),
        _ => None,
    }
}

pub(super) fn is_ordinal_suffix(token: &Token) -> bool {
    token.is_glued && token.is_one_of(&["st", "nd", "rd", "th"])
}

pub(super) fn month(token: &Token) -> Option<u8> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let text = token.text.as_str();
    if token.kind != Kind::Word || text.len() < 3 {
        return None;
    }
    let is_short = text.len() == 3 || text == "sept";
    let found = NAMES
        .iter()
        .position(|name| *name == text || (is_short && name.starts_with(text)))?;
    u8::try_from(found + 1).ok()
}
