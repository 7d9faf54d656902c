//! Times of day beside a day, and the instants that they name.

use time::{Date, Duration, Month, Weekday};

use crate::mark;
use crate::token::{Kind, Token};

/// How far beside a day its time is looked for.
const NEAR: usize = 5;

/// A time of day, as the text has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    /// Minutes after midnight.
    minutes: i64,
    zone: Zone,
    /// Why it is in doubt, if it is.
    pub(crate) mark: Option<&'static str>,
}

/// In whose time it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Zone {
    /// No zone stands beside it: the author's.
    Author,
    /// A name with these meanings, in minutes ahead of UTC.
    Named(&'static [i32]),
    /// A name or phrase that is not read.
    Unclear,
}

/// The time that stands beside the day from `start` to `end`: none, one, or a mark that says why it
/// is not read.
pub(crate) fn beside(tokens: &[Token], start: usize, end: usize) -> Result<Option<Clock>, Mark> {
    let of_day = tokens[start..end].iter().rev().find_map(part_of_day);
    if let Some(found) = behind(tokens, end, of_day)? {
        return Ok(Some(found));
    }
    match before(tokens, start)? {
        Some(found) => Ok(Some(found)),
        None if names_a_time(tokens) => Err(mark::NOT_EXTRACTED),
        None => Ok(None),
    }
}

/// Whether a time stands anywhere in the sentence, in some form that may not be read.
fn names_a_time(tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| {
        let token = &tokens[at];
        let is_named = token.is_one_of(&["midnight", "noon", "midday", "o'clock"]);
        let is_spoken = token.is_one_of(&["half", "quarter"])
            && tokens
                .get(at + 1)
                .is_some_and(|it| it.is_one_of(&["past", "to"]));
        let is_number = token.kind == Kind::Number;
        let is_digits = is_number && token.text.contains(':');
        let is_led = is_number
            && token.text.len() == 4
            && at > 0
            && leads_to_a_time(&tokens[at - 1])
            && tokens.get(at + 1).is_none_or(|it| it.kind == Kind::Sign);
        let is_halved = is_number && half_of_day(tokens, at + 1).0.is_some();
        is_named || is_spoken || is_digits || is_led || is_halved
    })
}

/// What midnight beside a day, at which something is wanted, leaves of that day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Midnight {
    /// "midnight on Friday": mostly the end of it.
    Named,
    /// "0:00 on Friday", "12 am": its beginning, if the author means what they write.
    InDigits,
}

/// The midnight that stands right beside the day from `start` to `end`.
pub(crate) fn midnight_beside(tokens: &[Token], start: usize, end: usize) -> Option<Midnight> {
    let mut first = start;
    while first > 0 && start - first < NEAR + 3 && is_of_a_time(tokens, first - 1) {
        first -= 1;
    }
    let mut last = end;
    while last < end + NEAR && last < tokens.len() && is_of_a_time(tokens, last) {
        last += 1;
    }
    let beside = (first..start).chain(end..last);
    beside.clone().find_map(|at| midnight_at(tokens, at))
}

fn is_of_a_time(tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    joins_a_time(token)
        || token.kind == Kind::Number
        || token.is_one_of(&["am", "a", "m", "midnight"])
        || token.is_sign(".")
}

fn midnight_at(tokens: &[Token], at: usize) -> Option<Midnight> {
    let token = &tokens[at];
    if token.is_word("midnight") {
        return Some(Midnight::Named);
    }
    let (hour, minute, _) = digits(token)?;
    let half = half_of_day(tokens, at + 1).0;
    (minute == 0 && is_midnight(token, hour, half)).then_some(Midnight::InDigits)
}

type Mark = &'static str;

fn behind(tokens: &[Token], end: usize, of_day: Option<Half>) -> Result<Option<Clock>, Mark> {
    let mut at = end;
    let mut is_led = false;
    let mut of_day = of_day;
    while at < end + NEAR && tokens.get(at).is_some_and(joins_a_time) {
        is_led |= leads_to_a_time(&tokens[at]);
        of_day = part_of_day(&tokens[at]).or(of_day);
        at += 1;
    }
    if tokens.get(at).is_some_and(is_inexact) && at < end + NEAR {
        return Err(mark::TIME_INEXACT);
    }
    let Some((clock, length)) = clock(tokens, at, is_led, of_day)? else {
        return Ok(None);
    };
    let next = tokens.get(at + length);
    let is_choice = next.is_some_and(|it| it.is_word("or"))
        && tokens
            .get(at + length + 1)
            .is_some_and(|it| it.kind == Kind::Number);
    if is_choice {
        return Err(mark::TIME_INEXACT);
    }
    Ok(Some(clock))
}

fn before(tokens: &[Token], start: usize) -> Result<Option<Clock>, Mark> {
    let first = start.saturating_sub(NEAR + 3);
    for at in (first..start).rev() {
        let is_led = at
            .checked_sub(1)
            .is_some_and(|it| leads_to_a_time(&tokens[it]));
        if let Some((clock, length)) = clock(tokens, at, is_led, None)? {
            let between = tokens.get(at + length..start).unwrap_or_default();
            let is_beside = between.iter().all(joins_a_time);
            return Ok(is_beside.then_some(clock));
        }
    }
    Ok(None)
}

fn joins_a_time(token: &Token) -> bool {
    token.is_one_of(&[
        "at",
        "on",
        "the",
        "from",
        "morning",
        "afternoon",
        "evening",
        "night",
        "starting",
    ]) || [",", "(", "@", "-", "–", ":", "/"]
        .iter()
        .any(|sign| token.is_sign(sign))
}

fn leads_to_a_time(token: &Token) -> bool {
    token.is_one_of(&["at", "from"]) || token.is_sign("@")
}

/// The half of the day that a word beside a day names.
fn part_of_day(token: &Token) -> Option<Half> {
    match token.text.as_str() {
        "morning" => Some(Half::Morning),
        "afternoon" => Some(Half::Afternoon),
        "evening" | "night" | "tonight" => Some(Half::Evening),
        _ => None,
    }
}

fn is_inexact(token: &Token) -> bool {
    token.is_one_of(&[
        "around", "about", "after", "before", "between", "any", "anytime", "sometime",
    ])
}

/// The time that begins at `at`, and how many tokens it takes with its zone.
/// `of_day` is the half of the day that stands before it.
fn clock(
    tokens: &[Token],
    at: usize,
    is_led: bool,
    of_day: Option<Half>,
) -> Result<Option<(Clock, usize)>, Mark> {
    let Some(first) = tokens.get(at) else {
        return Ok(None);
    };
    if first.is_one_of(&["noon", "midday"]) {
        let (zone, length) = zone(tokens, at + 1);
        let clock = Clock {
            minutes: 12 * 60,
            zone,
            mark: None,
        };
        return Ok(Some((clock, 1 + length)));
    }
    let Some((hour, mut minute, mut is_whole)) = digits(first) else {
        return Ok(None);
    };
    let (half, mut length) = half_of_day(tokens, at + 1);
    let is_clocked = tokens
        .get(at + 1)
        .is_some_and(|it| it.is_one_of(&["o'clock", "hrs", "hours", "uhr"]) || is_hour_sign(it));
    let is_written_out = first.text.contains(':');
    if half.is_none() && !is_written_out && !is_led && !is_clocked {
        return Ok(None);
    }
    length += 1 + usize::from(is_clocked);
    // "17h30"
    if let Some(behind) = tokens
        .get(at + length)
        .filter(|it| is_clocked && is_whole && it.is_glued && it.kind == Kind::Number)
    {
        let is_minute = behind.text.len() == 2;
        minute = behind
            .text
            .parse()
            .ok()
            .filter(|it| is_minute && *it < 60)
            .ok_or(mark::TIME_INEXACT)?;
        is_whole = false;
        length += 1;
    }
    if minute == 0 && is_midnight(first, hour, half) {
        return Err(mark::TIME_MIDNIGHT);
    }
    let (hour, mark) = match half.or(of_day.filter(|_| hour <= 12)) {
        Some(half) => (of_half(hour, half).ok_or(mark::TIME_INEXACT)?, None),
        None => of_whole_day(first, hour, is_whole)?,
    };
    let (zone, more) = zone(tokens, at + length);
    let clock = Clock {
        minutes: hour * 60 + minute,
        zone,
        mark,
    };
    Ok(Some((clock, length + more)))
}

/// "12 am", "0:00": at one end of the day or at the other, as people use it.
fn is_midnight(token: &Token, hour: i64, half: Option<Half>) -> bool {
    let is_zero = hour == 0 && token.text.contains(':');
    is_zero || (hour == 12 && half == Some(Half::Morning))
}

fn is_hour_sign(token: &Token) -> bool {
    token.is_glued && token.is_word("h")
}

/// Hour and minute of `15:00`, `8.15` or `9`, and whether it is an hour only.
fn digits(token: &Token) -> Option<(i64, i64, bool)> {
    if token.kind != Kind::Number {
        return None;
    }
    let number = |text: &str| {
        let is_short = (1..=2).contains(&text.len());
        text.parse::<i64>().ok().filter(|_| is_short)
    };
    let parts: Vec<&str> = token.text.split([':', '.']).collect();
    let (hour, minute, is_whole) = match parts.as_slice() {
        [hour] => (number(hour)?, 0, true),
        [hour, minute] if minute.len() == 2 => (number(hour)?, number(minute)?, false),
        _ => return None,
    };
    (hour < 24 && minute < 60).then_some((hour, minute, is_whole))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
    /// From five on.
    Evening,
}

/// "am", "p.m.", "in the evening", and how many tokens that takes.
fn half_of_day(tokens: &[Token], at: usize) -> (Option<Half>, usize) {
    let word = |back: usize| tokens.get(at + back);
    let is = |back: usize, text: &str| word(back).is_some_and(|it| it.is_word(text));
    let has_stop = |back: usize| usize::from(word(back).is_some_and(|it| it.is_sign(".")));
    for (letter, whole, half) in [("a", "am", Half::Morning), ("p", "pm", Half::Afternoon)] {
        if is(0, whole) {
            return (Some(half), 1);
        }
        if is(0, letter) && has_stop(1) == 1 && is(2, "m") {
            return (Some(half), 3 + has_stop(3));
        }
    }
    let half = match (is(0, "in") && is(1, "the"), is(0, "at") && is(1, "night")) {
        (true, _) => word(2).and_then(part_of_day),
        (_, true) => return (Some(Half::Evening), 2),
        (false, false) => None,
    };
    (half, if half.is_some() { 3 } else { 0 })
}

fn of_half(hour: i64, half: Half) -> Option<i64> {
    let is_on_dial = (1..=12).contains(&hour);
    match half {
        // "12 in the morning", "2 at night": at one end of the day or at the other.
        Half::Morning => (is_on_dial && hour < 12).then_some(hour),
        Half::Afternoon => is_on_dial.then_some(hour % 12 + 12),
        Half::Evening => (5..=11).contains(&hour).then_some(hour + 12),
    }
}

/// An hour without a half of the day: sure from 13 on and with a leading zero, assumed in working
/// hours, else not read.
fn of_whole_day(
    token: &Token,
    hour: i64,
    is_whole: bool,
) -> Result<(i64, Option<&'static str>), Mark> {
    let is_sure = hour >= 13 || token.text.starts_with('0') || (!is_whole && hour >= 8);
    match hour {
        _ if is_sure => Ok((hour, None)),
        8..=12 => Ok((hour, Some(mark::HALF_DAY_ASSUMED))),
        _ => Err(mark::HALF_DAY_UNCLEAR),
    }
}

/// The zone that stands behind a time, and how many tokens it takes.
fn zone(tokens: &[Token], at: usize) -> (Zone, usize) {
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

impl Clock {
    /// The instant of this time on a day, as a value of the vocabulary; or why it is not known.
    pub(crate) fn on(
        &self,
        day: Date,
        sent: Option<Date>,
        author_offset: Option<i32>,
    ) -> Result<String, Mark> {
        let offset = match self.zone {
            Zone::Author => self.author_offset(day, sent, author_offset)?,
            Zone::Named([offset]) => *offset,
            Zone::Named(meanings) => author_offset
                .filter(|it| meanings.contains(it))
                .ok_or(mark::TIME_ZONE_UNCLEAR)?,
            Zone::Unclear => return Err(mark::TIME_ZONE_UNCLEAR),
        };
        let minutes = Duration::minutes(self.minutes - i64::from(offset));
        let instant = day
            .midnight()
            .checked_add(minutes)
            .ok_or(mark::DATE_IMPLAUSIBLE)?;
        let (year, month, day) = (instant.year(), u8::from(instant.month()), instant.day());
        let (hour, minute) = (instant.hour(), instant.minute());
        Ok(format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z"
        ))
    }

    /// The author's offset on that day, which is that of the message unless clocks change between.
    fn author_offset(
        &self,
        day: Date,
        sent: Option<Date>,
        author_offset: Option<i32>,
    ) -> Result<i32, Mark> {
        let offset = author_offset.ok_or(mark::TIME_ZONE_UNCLEAR)?;
        let sent = sent.ok_or(mark::TIME_ZONE_UNCLEAR)?;
        if clocks_may_change(sent, day, offset) {
            return Err(mark::TIME_CLOCK_CHANGE);
        }
        Ok(offset)
    }
}

/// Whether a country with this offset may change its clocks between two days. Only days of the usual
/// changes count: Sundays of Europe, North America, and Australia and New Zealand.
fn clocks_may_change(from: Date, to: Date, offset: i32) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    fn day(text: &str) -> Date {
        let mut parts = text.split('-').filter_map(|it| it.parse::<u16>().ok());
        let mut next = || parts.next().unwrap();
        let (year, month, day) = (next(), next(), next());
        let month = Month::try_from(u8::try_from(month).unwrap()).unwrap();
        Date::from_calendar_date(i32::from(year), month, u8::try_from(day).unwrap()).unwrap()
    }

    fn read(text: &str, offset: Option<i32>) -> Result<Option<String>, Mark> {
        let tokens = tokens(text);
        let at = tokens.iter().position(|it| it.is_word("friday")).unwrap();
        let friday = day("2026-11-06");
        let found = beside(&tokens, at, at + 1)?;
        found
            .map(|clock| clock.on(friday, Some(day("2026-11-03")), offset))
            .transpose()
    }

    #[test]
    fn reads_times_on_either_side_of_the_day() {
        let rows = [
            ("Friday at 3 pm", "2026-11-06T15:00:00Z"),
            ("Friday 3pm", "2026-11-06T15:00:00Z"),
            ("Friday, 9:30 a.m.", "2026-11-06T09:30:00Z"),
            ("Friday at 4.15 p.m.", "2026-11-06T16:15:00Z"),
            ("at 10 am on Friday", "2026-11-06T10:00:00Z"),
            ("at 15:45 on Friday", "2026-11-06T15:45:00Z"),
            ("Friday at noon", "2026-11-06T12:00:00Z"),
            ("Friday at 17h30", "2026-11-06T17:30:00Z"),
            ("Friday evening at 8", "2026-11-06T20:00:00Z"),
            ("Friday morning at 7", "2026-11-06T07:00:00Z"),
            ("Friday at 9 at night", "2026-11-06T21:00:00Z"),
            ("Friday at 15:00 (GMT)", "2026-11-06T15:00:00Z"),
            ("Friday at 12 pm", "2026-11-06T12:00:00Z"),
            ("Friday at 14h", "2026-11-06T14:00:00Z"),
            ("Friday at 9", "2026-11-06T09:00:00Z"),
            ("Friday at 3 in the afternoon", "2026-11-06T15:00:00Z"),
            ("Friday at 08:15", "2026-11-06T08:15:00Z"),
        ];
        for (text, instant) in rows {
            assert_eq!(read(text, Some(0)), Ok(Some(instant.to_owned())), "{text}");
        }
        for text in ["Friday", "Friday 3 boxes", "Friday with 14 people"] {
            assert_eq!(read(text, Some(0)), Ok(None), "{text}");
        }
        for (text, mark) in [
            ("Friday at 7", mark::HALF_DAY_UNCLEAR),
            ("Friday at 2:30", mark::HALF_DAY_UNCLEAR),
            ("Friday after 3 pm", mark::TIME_INEXACT),
            ("Friday between 3 and 5 pm", mark::TIME_INEXACT),
            ("Friday at 3 pm PT", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 3 pm your time", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 12 am", mark::TIME_MIDNIGHT),
            ("Friday at 0:00", mark::TIME_MIDNIGHT),
            ("Friday at 2 at night", mark::TIME_INEXACT),
            ("Friday at 10:00 or 11:00", mark::TIME_INEXACT),
            ("Friday at half past five", mark::NOT_EXTRACTED),
            ("Friday at 1700", mark::NOT_EXTRACTED),
            ("Friday at 24:00", mark::NOT_EXTRACTED),
            ("Friday at 3 pm London time", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 15:00 (Berlin)", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 15:00 their time", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 3 pm UTC+2", mark::TIME_ZONE_UNCLEAR),
            ("Friday at 3 pm XYZ", mark::TIME_ZONE_UNCLEAR),
        ] {
            assert_eq!(read(text, Some(0)), Err(mark), "{text}");
        }
    }

    #[test]
    fn a_zone_that_several_share_is_the_authors_or_none() {
        let at = |text: &str, offset| read(&format!("Friday at 3 pm {text}"), offset);
        let instant = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(at("IST", Some(330)), instant("2026-11-06T09:30:00Z"));
        assert_eq!(at("CST", Some(480)), instant("2026-11-06T07:00:00Z"));
        assert_eq!(at("CST", Some(-360)), instant("2026-11-06T21:00:00Z"));
        assert_eq!(at("CST", Some(60)), Err(mark::TIME_ZONE_UNCLEAR));
        assert_eq!(at("IST", None), Err(mark::TIME_ZONE_UNCLEAR));
        assert_eq!(at("CET", Some(-480)), instant("2026-11-06T14:00:00Z"));
        assert_eq!(at("", None), Err(mark::TIME_ZONE_UNCLEAR));
    }

    #[test]
    fn no_time_is_given_across_a_change_of_clocks() {
        let change = |from: &str, to: &str, offset| clocks_may_change(day(from), day(to), offset);
        assert!(change("2026-10-19", "2026-11-03", 120));
        assert!(!change("2026-10-26", "2026-11-03", 60));
        assert!(change("2026-10-30", "2026-11-02", -300));
        assert!(!change("2026-11-02", "2026-11-20", -300));
        assert!(change("2026-03-30", "2026-04-09", 660));
        assert!(!change("2026-01-01", "2026-12-01", 330));
        assert!(change("2026-01-01", "2028-01-01", 60));
    }
}
