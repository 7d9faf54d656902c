//! What a phrase says about a day: the grammar of dates, on the tokens of one sentence.

mod calendar;
mod period;
mod relative;

use time::{Date, Month, Weekday};

use self::calendar::calendar;
use self::period::{end_of, end_of_day_behind, vague};
use self::relative::{relative, span};
use crate::token::{Kind, Token, stands};

/// In which order numeric dates of the message stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    DayMonth,
    MonthDay,
}

/// A phrase that names a day, before it is resolved against the message's date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phrase {
    /// Year, month, day.
    Full(i32, u8, u8),
    /// Month and day; a weekday may stand beside it.
    MonthDay(u8, u8),
    /// Two numbers and perhaps a year, in an order that only the message shows.
    Numeric(u8, u8, Option<i32>),
    /// "the 14th".
    DayOfMonth(u8),
    /// "Friday".
    Weekday(Weekday),
    /// "this Friday".
    ThisWeekday(Weekday),
    /// "next Friday".
    NextWeekday(Weekday),
    /// "Friday week": the coming one, and a week more.
    WeekdayWeek(Weekday),
    /// "the 5th of this month", "of next month": so many months ahead.
    DayOfMonthAhead(u8, u8),
    /// Days after the message.
    InDays(i64),
    /// The last day of the month so many months ahead.
    EndOfMonthAhead(u8),
    /// "the end of November".
    EndOfMonth(u8, Option<i32>),
    /// "the end of the year".
    EndOfYear,
    /// A phrase that names no single day, with its mark.
    Unclear(&'static str),
    /// A day that is over, e.g. "last Friday".
    Past,
}

/// A phrase and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Mention {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) phrase: Phrase,
    /// A weekday written beside the date.
    pub(crate) beside: Option<Weekday>,
    /// It names the end of a period or day, so that "before" it means by it.
    pub(crate) is_end: bool,
    /// Only a weekday or a relative word, which may also modify a noun ("the Friday report").
    pub(crate) is_bare: bool,
}

/// All mentions in a sentence, in order.
pub(crate) fn mentions(tokens: &[Token]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match mention_at(tokens, at) {
            Some(mention) => {
                at = mention.end;
                found.push(mention);
            }
            None => at += 1,
        }
    }
    found
}

fn mention_at(tokens: &[Token], at: usize) -> Option<Mention> {
    let rest = &tokens[at..];
    let (phrase, length) = end_of(rest)
        .or_else(|| dated(rest))
        .or_else(|| relative(rest))
        .or_else(|| vague(rest))?;
    let is_date = rest[0].kind == Kind::Number || rest[0].is_glued;
    if is_date && calendar::is_in_a_name(tokens, at, at + length) {
        return None;
    }
    let behind = weekday_behind_date(&rest[length..], &phrase);
    let length = length + behind.map_or(0, |(_, length)| length);
    let end_of_day = end_of_day_behind(&rest[length..]);
    let is_end = end_of_day.is_some() || end_of(rest).is_some();
    let is_bare = matches!(phrase, Phrase::Weekday(_));
    let beside = weekday_before_date(rest, &phrase).or(behind.map(|(weekday, _)| weekday));
    Some(Mention {
        start: at,
        end: at + length + end_of_day.unwrap_or(0),
        phrase,
        beside,
        is_end,
        is_bare,
    })
}

fn weekday_before_date(rest: &[Token], phrase: &Phrase) -> Option<Weekday> {
    let is_date = matches!(
        phrase,
        Phrase::Full(..) | Phrase::MonthDay(..) | Phrase::Numeric(..) | Phrase::DayOfMonth(_)
    );
    rest.iter().take(2).find_map(weekday).filter(|_| is_date)
}

/// "12 November 2026 (Thursday)".
fn weekday_behind_date(after: &[Token], phrase: &Phrase) -> Option<(Weekday, usize)> {
    let is_date = matches!(
        phrase,
        Phrase::Full(..) | Phrase::MonthDay(..) | Phrase::Numeric(..)
    );
    let is_open = after.first().is_some_and(|it| it.is_sign("("));
    let weekday = after.get(1).and_then(weekday)?;
    let is_closed = after.get(2).is_some_and(|it| it.is_sign(")"));
    (is_date && is_open && is_closed).then_some((weekday, 3))
}

/// Dates and weekdays, with a weekday before a date.
fn dated(rest: &[Token]) -> Option<(Phrase, usize)> {
    let Some(day) = rest.first().and_then(weekday) else {
        return calendar(rest).or_else(|| qualified_weekday(rest));
    };
    let skipped = rest[1..]
        .iter()
        .take_while(|it| it.is_one_of(&["the"]) || it.is_sign(",") || it.is_sign("("))
        .count();
    // "Friday, i.e. 6 November", "Friday = 6 November"
    let that_is = rest[1..]
        .iter()
        .take(6)
        .take_while(|it| {
            it.is_one_of(&["i", "e", "ie", "namely"])
                || [",", "=", ".", "("].iter().any(|sign| it.is_sign(sign))
        })
        .count();
    if that_is > skipped
        && let Some((phrase, length)) = rest.get(1 + that_is..).and_then(calendar)
    {
        return Some((phrase, 1 + that_is + length));
    }
    let start = 1 + skipped.min(2);
    if let Some((phrase, length)) = rest.get(start..).and_then(calendar) {
        return Some((phrase, start + length));
    }
    if let Some(found) = day_beside_weekday(rest, start) {
        return Some(found);
    }
    if let Some(found) = qualified_behind(rest) {
        return Some(found);
    }
    if rest.get(1).is_some_and(|it| it.is_word("week")) {
        return Some((Phrase::WeekdayWeek(day), 2));
    }
    if rest.get(1).is_some_and(|it| it.is_word("fortnight")) {
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2));
    }
    // "Friday in two weeks"
    if rest.get(1).is_some_and(|it| it.is_word("in"))
        && let Some((_, length)) = rest.get(2..).and_then(span)
    {
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2 + length));
    }
    if stands(&rest[1..], &["after", "next"]) {
        return Some((Phrase::Unclear(crate::mark::DATE_NEXT_WEEKDAY), 3));
    }
    for (words, length) in [
        (&["next", "week"][..], 3),
        (&["of", "next", "week"], 4),
        (&["next"], 2),
    ] {
        if stands(&rest[1..], words) {
            return Some((Phrase::NextWeekday(day), length));
        }
    }
    if stands(&rest[1..], &["last", "week"]) {
        return Some((Phrase::Past, 3));
    }
    let is_plural = rest[0].text.ends_with("days");
    if is_plural {
        return Some((Phrase::Unclear(crate::mark::DATE_RECURRING), 1));
    }
    if rest
        .get(1)
        .is_some_and(|it| it.is_one_of(&["or", "to"]) || it.is_sign("-") || it.is_sign("/"))
        && rest.get(2).and_then(weekday).is_some()
    {
        return Some((Phrase::Unclear(crate::mark::DATE_RANGE), 3));
    }
    Some((Phrase::Weekday(day), 1))
}

/// "Monday 16th", "Thursday the 12th", "Monday 16": the weekday says which month it is.
fn day_beside_weekday(rest: &[Token], at: usize) -> Option<(Phrase, usize)> {
    let day = rest.get(at).and_then(calendar::day)?;
    let next = rest.get(at + 1);
    if next.is_some_and(calendar::is_ordinal_suffix) {
        return Some((Phrase::DayOfMonth(day), at + 2));
    }
    // "Monday 5 pm" and "Monday, 3 copies" name no day of a month.
    let is_plain = at == 1
        && !rest[at].is_glued
        && next.is_none_or(|it| it.kind == Kind::Sign && !it.is_glued || it.is_sign("."));
    is_plain.then_some((Phrase::DayOfMonth(day), at + 1))
}

/// "the Friday after 12 November", "Friday each week": no day that the weekday alone would name.
fn qualified_behind(rest: &[Token]) -> Option<(Phrase, usize)> {
    let next = rest.get(1)?;
    if next.is_one_of(&["each", "every"]) {
        return Some((
            Phrase::Unclear(crate::mark::DATE_RECURRING),
            3.min(rest.len()),
        ));
    }
    if next.is_one_of(&["after", "before", "following", "preceding"]) {
        let (_, length) = rest.get(2..).and_then(calendar)?;
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2 + length));
    }
    None
}

fn qualified_weekday(rest: &[Token]) -> Option<(Phrase, usize)> {
    // Days with names of their own, which move or are observed on other days.
    const NAMED: &[&str] = &[
        "black", "good", "cyber", "easter", "ash", "whit", "palm", "holy", "maundy", "shrove",
    ];
    let (first, tail) = rest.split_first()?;
    let day = tail.first().and_then(weekday)?;
    let phrase = match first.text.as_str() {
        name if NAMED.contains(&name) => Phrase::Unclear(crate::mark::DATE_VAGUE),
        "this" | "coming" => Phrase::ThisWeekday(day),
        "next" => Phrase::NextWeekday(day),
        "last" | "past" | "previous" => Phrase::Past,
        "every" | "each" => Phrase::Unclear(crate::mark::DATE_RECURRING),
        _ => return None,
    };
    // "next Friday, 6 November" names its day itself.
    match dated(tail) {
        Some((exact @ (Phrase::Full(..) | Phrase::MonthDay(..) | Phrase::Numeric(..)), length)) => {
            Some((exact, length + 1))
        }
        _ => Some((phrase, 2)),
    }
}

fn weekday(token: &Token) -> Option<Weekday> {
    if token.kind != Kind::Word {
        return None;
    }
    let weekday = match token.text.as_str() {
        "monday" | "mon" | "mondays" => Weekday::Monday,
        "tuesday" | "tue" | "tues" | "tuesdays" => Weekday::Tuesday,
        "wednesday" | "wed" | "wednesdays" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" | "thursdays" => Weekday::Thursday,
        "friday" | "fri" | "fridays" => Weekday::Friday,
        "saturday" | "sat" | "saturdays" => Weekday::Saturday,
        "sunday" | "sun" | "sundays" => Weekday::Sunday,
        _ => return None,
    };
    // "sat" and "wed" and "sun" are words of their own in lower case.
    let is_name = token.is_capital || token.text.len() > 4;
    is_name.then_some(weekday)
}

/// The order that the numeric dates of a text show: exactly one that fits at least one of them.
pub(crate) fn shown_order<'a>(mentions: impl Iterator<Item = &'a Mention>) -> Option<Order> {
    let mut day_first = false;
    let mut month_first = false;
    for mention in mentions {
        if let Phrase::Numeric(first, second, year) = mention.phrase {
            let year = year.unwrap_or(2000);
            day_first |= calendar_day(year, first, second).is_none();
            month_first |= calendar_day(year, second, first).is_none();
        }
    }
    match (day_first, month_first) {
        (true, false) => Some(Order::DayMonth),
        (false, true) => Some(Order::MonthDay),
        (true, true) | (false, false) => None,
    }
}

pub(crate) fn calendar_day(year: i32, month: u8, day: u8) -> Option<Date> {
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}
