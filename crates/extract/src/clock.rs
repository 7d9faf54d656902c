//! Times of day beside a day, and the instants that they name.

mod midnight;
mod zone;

use time::{Date, Duration};

use self::midnight::is_midnight;
pub(crate) use self::midnight::{Midnight, midnight_beside};
use self::zone::{Zone, clocks_may_change, zone};
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

#[cfg(test)]
mod tests;
