//! What ties a date to its sentence.

use super::NEAR;
use crate::date::Mention;
use crate::token::{Kind, Token, find, stands};

/// What ties a date to its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// By that day.
    By,
    /// Before that day, without it.
    Before,
    /// On that day.
    On,
    /// Until that day, which many writers say for by.
    Until,
    /// Nothing: the date may belong to a noun.
    Bare,
    /// It is a topic, an origin or a start.
    Other,
}

/// What ties the date from `start` to `end`.
pub(crate) fn tie(
    tokens: &[Token],
    start: usize,
    end: usize,
    is_end_of_period: bool,
    is_bare: bool,
) -> Tie {
    if stands(&tokens[end..], &["at", "the", "latest"]) || stands(&tokens[end..], &["latest"]) {
        return Tie::By;
    }
    let mut at = start;
    let mut has_on = false;
    let mut has_time = false;
    while at > 0 && start - at < NEAR && is_between(&tokens[at - 1]) {
        at -= 1;
        has_on |= tokens[at].is_word("on");
        has_time |= tokens[at].kind == Kind::Number
            || tokens[at].is_one_of(&["noon", "midnight", "midday"]);
    }
    let loose = match (has_on, is_bare || !follows_freely(tokens, end)) {
        (true, _) | (false, false) => Tie::On,
        (false, true) => Tie::Bare,
    };
    let Some(word) = at.checked_sub(1).map(|it| &tokens[it]) else {
        return loose;
    };
    let earlier = &tokens[at.saturating_sub(NEAR)..at];
    match word.text.as_str() {
        "by" | "due" | "deadline" => Tie::By,
        "before" if is_end_of_period || has_time => Tie::By,
        "before"
            if earlier
                .iter()
                .rev()
                .skip(1)
                .take(1)
                .any(|it| it.is_word("or")) =>
        {
            Tie::By
        }
        "before" => Tie::Before,
        "than" if earlier.iter().any(|it| it.is_word("later")) => Tie::By,
        "until" | "till"
            if earlier
                .iter()
                .rev()
                .take(4)
                .any(|it| it.is_one_of(&["have", "has"])) =>
        {
            Tie::By
        }
        "until" | "till" | "til" if earlier.last().is_some_and(|it| it.is_word("latest")) => {
            Tie::By
        }
        "until" | "till" | "til" => Tie::Until,
        "for" if earlier.iter().any(|it| it.is_word("ready")) => Tie::By,
        "date" if earlier.iter().any(|it| it.is_one_of(&["due", "delivery"])) => Tie::By,
        "is" | "are" | "=" if names_deadline(earlier) => Tie::By,
        "but" | "except" | "excluding" => Tie::Other,
        "from" | "of" | "since" | "dated" | "after" | "between" | "through" | "during" | "for"
        | "than" | "to" | "about" | "around" | "roughly" | "approximately" | "circa" | "ca"
        | "as" | "starting" | "is" | "are" | "was" | "were" | "date" => Tie::Other,
        _ if tokens.get(at).is_some_and(|it| it.is_sign(":")) && names_deadline(earlier) => Tie::By,
        _ => loose,
    }
}

/// Whether "by" is followed by digits that are no day and stand beside none: "by 5 pm", "by 12.11.".
pub(crate) fn has_unread_deadline(tokens: &[Token], days: &[Mention]) -> bool {
    (0..tokens.len()).any(|at| {
        let skipped = tokens[at + 1..]
            .iter()
            .take(2)
            .take_while(|it| it.is_one_of(&["the", "at", "latest", "about"]))
            .count();
        let number = at + 1 + skipped;
        let is_number = tokens
            .get(number)
            .is_some_and(|it| it.kind == Kind::Number && !it.is_glued);
        let is_share = tokens
            .get(number + 1)
            .is_some_and(|it| it.is_sign("%") || it.is_one_of(&["percent", "per"]));
        let has_day = days
            .iter()
            .any(|it| it.end > number && it.start < number + NEAR);
        tokens[at].is_word("by") && is_number && !is_share && !has_day
    })
}

fn names_deadline(earlier: &[Token]) -> bool {
    earlier.iter().any(|it| it.is_word("deadline"))
        || find(earlier, &["due", "date"], 0).is_some()
        || find(earlier, &["delivery", "date"], 0).is_some()
        || find(earlier, &["closing", "date"], 0).is_some()
}

/// Words between a preposition and its day: "by 5 pm on the", "by close of business on".
fn is_between(token: &Token) -> bool {
    let is_time = token.kind == Kind::Number
        && (token.text.contains(':') || token.text.parse::<u8>().is_ok_and(|it| it <= 24));
    let is_sign = token.is_sign(",") || token.is_sign("(") || token.is_sign(":");
    is_time
        || is_sign
        || token.is_one_of(&[
            "on",
            "the",
            "at",
            "latest",
            "noon",
            "midday",
            "midnight",
            "am",
            "pm",
            "morning",
            "afternoon",
            "evening",
            "o'clock",
            "cet",
            "gmt",
            "utc",
            "very",
        ])
}

/// Whether no noun follows that the date may modify.
fn follows_freely(tokens: &[Token], end: usize) -> bool {
    tokens.get(end).is_none_or(|it| {
        it.kind == Kind::Sign
            || it.is_one_of(&[
                "please", "pls", "plz", "at", "and", "so", "if", "latest", "because", "as", "or",
                "by", "to", "for",
            ])
            || is_part_of_day(it)
    })
}

/// Whether a bare date is followed by nothing that it could modify.
pub(crate) fn stands_alone(tokens: &[Token], end: usize) -> bool {
    tokens.get(end).is_none_or(|it| {
        it.kind == Kind::Sign || it.is_one_of(&["please", "pls", "plz", "at"]) || is_part_of_day(it)
    })
}

fn is_part_of_day(token: &Token) -> bool {
    token.is_one_of(&[
        "morning",
        "afternoon",
        "evening",
        "night",
        "noon",
        "lunchtime",
        "midday",
    ])
}
