//! Days counted from the message: "tomorrow", "within two weeks".

use super::{Phrase, dated};
use crate::token::{Kind, Token, stands};

/// "tomorrow", "today".
fn named(rest: &[Token]) -> Option<(Phrase, usize)> {
    let named: &[(&[&str], Phrase)] = &[
        (&["day", "after", "tomorrow"], Phrase::InDays(2)),
        (
            &["tomorrow", "week"],
            Phrase::Unclear(crate::mark::DATE_VAGUE),
        ),
        (&["today", "week"], Phrase::Unclear(crate::mark::DATE_VAGUE)),
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
pub(super) fn relative(rest: &[Token]) -> Option<(Phrase, usize)> {
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
pub(super) fn span(rest: &[Token]) -> Option<(Phrase, usize)> {
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

pub(super) fn count(token: &Token) -> Option<i64> {
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
