//! Ends of days and periods, and periods without a day.

use super::calendar::{month, year};
use super::relative::{count, relative};
use super::{Phrase, dated};
use crate::token::{Kind, Token, stands};

/// The end of a day.
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

/// "Thursday EOD", "Thursday, close of business": how many tokens the end of that day takes.
pub(super) fn end_of_day_behind(after: &[Token]) -> Option<usize> {
    let skipped = after
        .iter()
        .take(2)
        .take_while(|it| {
            it.is_one_of(&["by", "at", "before"]) || it.is_sign(",") || it.is_sign("(")
        })
        .count();
    let phrase = OF_DAY.iter().find(|it| stands(&after[skipped..], it))?;
    let end = skipped + phrase.len();
    let goes_on = after
        .get(end)
        .is_some_and(|it| it.is_one_of(&["of", "on", "tomorrow", "today"]));
    (!goes_on && dated(&after[end..]).is_none()).then_some(end)
}

/// "end of November", "EOD Thursday", "month end".
pub(super) fn end_of(rest: &[Token]) -> Option<(Phrase, usize)> {
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
    if let Some(year) = year(head) {
        return Some((Phrase::EndOfMonth(12, Some(year)), length));
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

/// Periods without a day.
pub(super) fn vague(rest: &[Token]) -> Option<(Phrase, usize)> {
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
