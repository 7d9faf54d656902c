//! What a phrase says about a day: the grammar of dates, on the tokens of one sentence.

mod calendar;

use time::{Date, Month, Weekday};

use self::calendar::{calendar, month, year};
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
    let is_end = end_of(rest).is_some();
    let is_bare = matches!(phrase, Phrase::Weekday(_));
    let behind = weekday_behind_date(&rest[length..], &phrase);
    let beside = weekday_before_date(rest, &phrase).or(behind.map(|(weekday, _)| weekday));
    Some(Mention {
        start: at,
        end: at + length + behind.map_or(0, |(_, length)| length),
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

/// "end of November", "EOD Thursday", "month end".
fn end_of(rest: &[Token]) -> Option<(Phrase, usize)> {
    const OF_DAY: &[&[&str]] = &[
        &["eod"],
        &["cob"],
        &["eob"],
        &["close", "of", "business"],
        &["close", "of", "play"],
        &["end", "of", "business"],
        &["end", "of", "day"],
        &["end", "of", "the", "day"],
        &["end", "of", "the", "working", "day"],
        &["end", "of", "play"],
    ];
    let length = OF_DAY.iter().find(|it| stands(rest, it)).map(|it| it.len());
    if let Some(length) = length {
        let skipped = rest[length..]
            .iter()
            .take_while(|it| it.is_one_of(&["on", "of", "the"]) || it.is_sign(","))
            .count();
        let day = &rest[length + skipped..];
        return match dated(day).or_else(|| relative(day)) {
            Some((phrase, more)) => Some((phrase, length + skipped + more)),
            None => Some((Phrase::InDays(0), length)),
        };
    }
    end_of_period(rest)
}

fn end_of_period(rest: &[Token]) -> Option<(Phrase, usize)> {
    use crate::mark::DATE_VAGUE;
    let short: &[(&[&str], Phrase)] = &[
        (&["eom"], Phrase::EndOfMonthAhead(0)),
        (&["month", "end"], Phrase::EndOfMonthAhead(0)),
        (&["eoy"], Phrase::EndOfYear),
        (&["year", "end"], Phrase::EndOfYear),
        (&["eow"], Phrase::Unclear(DATE_VAGUE)),
    ];
    if let Some((words, phrase)) = short.iter().find(|(words, _)| stands(rest, words)) {
        return Some((phrase.clone(), words.len()));
    }
    if !stands(rest, &["end", "of"]) {
        return None;
    }
    let after = &rest[2..];
    let skipped = after
        .iter()
        .take_while(|it| it.is_one_of(&["the", "this"]))
        .count();
    let (head, tail) = after[skipped..].split_first()?;
    let length = 3 + skipped;
    if head.is_word("month") {
        return Some((Phrase::EndOfMonthAhead(0), length));
    }
    if head.is_word("next") && tail.first().is_some_and(|it| it.is_word("month")) {
        return Some((Phrase::EndOfMonthAhead(1), length + 1));
    }
    if head.is_word("year") {
        return Some((Phrase::EndOfYear, length));
    }
    if let Some(month) = month(head) {
        let year = tail.first().and_then(year);
        return Some((
            Phrase::EndOfMonth(month, year),
            length + usize::from(year.is_some()),
        ));
    }
    let is_period = head.is_one_of(&["week", "quarter", "next", "q", "summer", "term", "season"]);
    if is_period {
        return Some((Phrase::Unclear(DATE_VAGUE), length));
    }
    // "the end of today", "the end of Friday".
    let day = &after[skipped..];
    let (phrase, more) = dated(day).or_else(|| relative(day))?;
    Some((phrase, 2 + skipped + more))
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
    if stands(&rest[1..], &["next", "week"]) {
        return Some((Phrase::NextWeekday(day), 3));
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

/// "tomorrow", "today".
fn named(rest: &[Token]) -> Option<(Phrase, usize)> {
    let named: &[(&[&str], Phrase)] = &[
        (&["day", "after", "tomorrow"], Phrase::InDays(2)),
        (&["today"], Phrase::InDays(0)),
        (&["tonight"], Phrase::InDays(0)),
        (&["tomorrow"], Phrase::InDays(1)),
        (&["tmrw"], Phrase::InDays(1)),
        (&["yesterday"], Phrase::Past),
    ];
    let (words, phrase) = named.iter().find(|(words, _)| stands(rest, words))?;
    Some((phrase.clone(), words.len()))
}

/// "tomorrow", "in 3 days", "within two weeks".
fn relative(rest: &[Token]) -> Option<(Phrase, usize)> {
    if let Some(found) = named(rest) {
        return Some(found);
    }
    let first = rest.first()?;
    if first.is_one_of(&["in", "within"]) {
        let skipped = rest[1..]
            .iter()
            .take_while(|it| it.is_one_of(&["the", "next", "another", "coming"]))
            .count();
        let start = 1 + skipped.min(2);
        let (phrase, length) = span(rest.get(start..)?)?;
        return Some(match from_other_day(&rest[start + length..]) {
            Some(more) => (
                Phrase::Unclear(crate::mark::DATE_VAGUE),
                start + length + more,
            ),
            None => (phrase, start + length),
        });
    }
    let (phrase, length) = span(rest)?;
    let tail = &rest[length..];
    if tail.first().is_some_and(|it| it.is_word("ago")) {
        return Some((Phrase::Past, length + 1));
    }
    if stands(tail, &["from", "now"]) || stands(tail, &["from", "today"]) {
        return Some((phrase, length + 2));
    }
    let more = from_other_day(tail).or_else(|| from_event(tail))?;
    Some((Phrase::Unclear(crate::mark::DATE_VAGUE), length + more))
}

/// "a week on Friday", "two days after 12 November": how many tokens the other day takes.
fn from_other_day(tail: &[Token]) -> Option<usize> {
    let first = tail.first()?;
    if !first.is_one_of(&["on", "from", "after", "before", "of"]) {
        return None;
    }
    let (phrase, length) = dated(&tail[1..]).or_else(|| named(&tail[1..]))?;
    let is_today = phrase == Phrase::InDays(0) && first.is_word("from");
    (!is_today).then_some(1 + length)
}

/// "30 days after receipt": counted from something that is no day.
fn from_event(tail: &[Token]) -> Option<usize> {
    let first = tail.first()?;
    first
        .is_one_of(&["after", "before", "following", "upon"])
        .then_some(1)
}

/// "3 days", "two weeks", "a fortnight", "48 hours".
fn span(rest: &[Token]) -> Option<(Phrase, usize)> {
    if let Some(length) = vague_span(rest) {
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), length));
    }
    let count = rest.first().and_then(count)?;
    let unit = rest.get(1)?;
    let days = match unit.text.as_str() {
        "day" | "days" => Some(count),
        "week" | "weeks" => Some(count * 7),
        "fortnight" => Some(count * 14),
        "hours" if count % 24 == 0 => Some(count / 24),
        _ => None,
    };
    if let Some(days) = days.filter(|days| *days > 0) {
        return Some((Phrase::InDays(days), 2));
    }
    let is_working = unit.is_one_of(&["business", "working", "work", "banking"]);
    if is_working && rest.get(2).is_some_and(|it| it.is_one_of(&["day", "days"])) {
        return Some((Phrase::Unclear(crate::mark::DATE_BUSINESS_DAYS), 3));
    }
    let is_coarse = unit.is_one_of(&[
        "hour", "hours", "month", "months", "year", "years", "minutes",
    ]);
    is_coarse.then_some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2))
}

/// "a few days", "a couple of weeks", "two or three days", "2-3 days": how many tokens it takes.
fn vague_span(rest: &[Token]) -> Option<usize> {
    let is_unit = |at: usize| {
        rest.get(at)
            .is_some_and(|it| it.is_one_of(&["days", "weeks", "hours", "months"]))
    };
    let skipped = usize::from(rest.first().is_some_and(|it| it.is_one_of(&["a", "next"])));
    let first = rest.get(skipped)?;
    let is_pair = rest.get(1).is_some_and(|it| it.is_one_of(&["or", "to"]))
        && count(&rest[0]).is_some()
        && rest.get(2).and_then(count).is_some();
    let is_range = first.kind == Kind::Number && first.text.contains(['-', '–']);
    let unit = match () {
        () if first.is_one_of(&["few", "several", "some"]) || is_range => skipped + 1,
        () if first.is_word("couple") => {
            skipped + 1 + usize::from(rest.get(skipped + 1)?.is_word("of"))
        }
        () if is_pair => 3,
        () => return None,
    };
    is_unit(unit).then_some(unit + 1)
}

/// Periods without a day.
fn vague(rest: &[Token]) -> Option<(Phrase, usize)> {
    if let Some(found) = week(rest).or_else(|| feast(rest)) {
        return Some(found);
    }
    let first = rest.first()?;
    let second = rest.get(1);
    let is_period = |token: &Token| token.is_one_of(&["week", "month", "quarter", "year"]);
    if first.is_one_of(&["next", "this", "coming"]) && second.is_some_and(is_period) {
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2));
    }
    let is_quarter =
        first.is_word("q") && second.is_some_and(|it| it.is_glued && count(it).is_some());
    if is_quarter {
        return Some((Phrase::Unclear(crate::mark::DATE_VAGUE), 2));
    }
    month(first)?;
    let has_year = second.and_then(year).is_some();
    // "may" and "march" are mostly verbs; alone they say nothing.
    let is_name = has_year || (first.is_capital && !first.is_one_of(&["may", "march"]));
    is_name.then_some((
        Phrase::Unclear(crate::mark::DATE_VAGUE),
        1 + usize::from(has_year),
    ))
}

/// "week 47", "W47", "the week of 9 November", "w/c 9 November".
fn week(rest: &[Token]) -> Option<(Phrase, usize)> {
    let unclear = |length| Some((Phrase::Unclear(crate::mark::DATE_VAGUE), length));
    let first = rest.first()?;
    let is_number = |at: usize| {
        let number = rest.get(at).filter(|it| it.kind == Kind::Number);
        number.is_some_and(|it| it.text.parse::<u8>().is_ok_and(|it| (1..=53).contains(&it)))
    };
    let is_code = first.is_word("w")
        && first.is_upper
        && rest
            .get(1)
            .is_some_and(|it| it.is_glued && it.text.len() == 2);
    if (is_code || first.is_one_of(&["week", "weeks", "wk", "kw", "cw"])) && is_number(1) {
        return unclear(2);
    }
    let is_begun = first.is_one_of(&["week", "wk"])
        && rest.get(1).is_some_and(|it| {
            it.is_one_of(&[
                "of",
                "commencing",
                "beginning",
                "starting",
                "ending",
                "from",
            ])
        });
    let is_short = first.is_word("w")
        && rest.get(1).is_some_and(|it| it.is_sign("/"))
        && rest.get(2).is_some_and(|it| it.is_one_of(&["c", "b", "e"]));
    let start = if is_short { 3 } else { 2 };
    if !is_begun && !is_short {
        return None;
    }
    let skipped = rest[start..]
        .iter()
        .take(2)
        .take_while(|it| it.is_one_of(&["the", "on"]))
        .count();
    let (_, length) = dated(&rest[start + skipped..])?;
    unclear(start + skipped + length)
}

/// Feasts, whose days are no part of the grammar: "Christmas Eve", "New Year".
fn feast(rest: &[Token]) -> Option<(Phrase, usize)> {
    const NAMES: &[&[&str]] = &[
        &["christmas", "eve"],
        &["christmas", "day"],
        &["christmas"],
        &["xmas"],
        &["boxing", "day"],
        &["new", "year's", "eve"],
        &["new", "year's", "day"],
        &["new", "year's"],
        &["new", "year"],
        &["easter"],
        &["thanksgiving"],
        &["halloween"],
        &["labor", "day"],
        &["labour", "day"],
        &["memorial", "day"],
        &["independence", "day"],
        &["bank", "holiday"],
    ];
    let name = NAMES.iter().find(|it| stands(rest, it))?;
    Some((Phrase::Unclear(crate::mark::DATE_VAGUE), name.len()))
}

fn count(token: &Token) -> Option<i64> {
    const WORDS: &[&str] = &[
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen", "fourteen",
    ];
    if token.is_one_of(&["a", "an"]) {
        return Some(1);
    }
    if token.kind == Kind::Number {
        return token.text.parse().ok().filter(|_| token.text.len() <= 3);
    }
    let position = WORDS.iter().position(|word| token.is_word(word))?;
    i64::try_from(position).ok()
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
