//! Whether a date or an amount is what its sentence asks for.

use crate::amount::{self, Amount};
use crate::clock::{self, Midnight};
use crate::cue::{self, Cue, Tie};
use crate::date::{Mention, Phrase};
use crate::mark;
use crate::sentence::Sentence;
use crate::token::{Kind, Token, stands};

/// What a deadline that nobody asks for in its sentence leaves of the confidence: trains are due
/// too.
const NOT_ASKED: f64 = 0.85;

/// Verbs of a state that lasts until a day, which is no day by which something is wanted.
const LASTING: &[&str] = &[
    "wait", "stay", "keep", "hold", "closed", "open", "away", "valid", "leave", "remain",
    "continue", "stop", "pause", "use", "be", "store", "postpone", "delay", "off", "every", "each",
    "daily",
];

/// What a date that is asked for leaves of its confidence, and why it is in doubt, if it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) factor: f64,
    pub(super) mark: Option<&'static str>,
}

/// Whether a date is one end of a range, or one of several choices.
pub(super) fn is_in_range(tokens: &[Token], mentions: &[Mention], at: usize) -> bool {
    let joins = |token: &Token| {
        token.is_one_of(&["or", "to", "and", "until", "through"])
            || token.is_sign("-")
            || token.is_sign("–")
    };
    let mention = &mentions[at];
    let meets_next = mentions
        .get(at + 1)
        .is_some_and(|next| next.start == mention.end + 1 && joins(&tokens[mention.end]));
    let meets_last = at.checked_sub(1).is_some_and(|last| {
        mentions[last].end + 1 == mention.start && joins(&tokens[mentions[last].end])
    });
    let begins = tokens[mention.start.saturating_sub(6)..mention.start]
        .iter()
        .any(|it| it.is_word("between"));
    let is_choice = mention.start >= 2
        && tokens[mention.start - 1].is_one_of(&["or", "and", "to"])
        && tokens[mention.start - 2].kind == Kind::Number;
    let is_later = mentions
        .get(at + 1)
        .is_some_and(|next| is_chosen_from(&tokens[mention.end..next.start]));
    let is_earlier = at
        .checked_sub(1)
        .is_some_and(|last| is_chosen_from(&tokens[mentions[last].end..mention.start]));
    meets_next || meets_last || begins || is_choice || is_later || is_earlier
}

/// Whether the words between two days make one of them a choice: "by Friday, or by Monday".
fn is_chosen_from(between: &[Token]) -> bool {
    const FILLERS: &[&str] = &[
        "or",
        "by",
        "on",
        "at",
        "the",
        "latest",
        "maybe",
        "possibly",
        "perhaps",
        "even",
        "else",
        "otherwise",
        "failing",
        "that",
        "early",
    ];
    between.len() <= 8
        && between
            .iter()
            .any(|it| it.is_one_of(&["or", "otherwise", "failing"]))
        && between
            .iter()
            .all(|it| it.is_one_of(FILLERS) || it.is_sign(",") || it.is_sign("("))
}

/// "or later", "plus two days", "or the day after": the day is not the last one.
pub(super) fn is_open_ended(tokens: &[Token], mention: &Mention) -> bool {
    let after = &tokens[mention.end..];
    let phrases = [
        &["or", "later"][..],
        &["or", "after"],
        &["or", "thereafter"],
        &["or", "the", "day", "after"],
        &["or", "the", "next"],
        &["or", "the", "following"],
        &["onwards"],
        &["onward"],
        &["plus"],
    ];
    phrases.iter().any(|it| stands(after, it)) || after.first().is_some_and(|it| it.is_sign("+"))
}

/// Whether the same sentence moves a day to the next one that it names: "(extended to Monday)".
pub(super) fn is_moved(tokens: &[Token], mentions: &[Mention], at: usize) -> bool {
    const MOVES: &[&str] = &[
        "extended",
        "moved",
        "postponed",
        "changed",
        "shifted",
        "pushed",
        "delayed",
        "forward",
        "now",
    ];
    let Some(next) = mentions.get(at + 1) else {
        return false;
    };
    let between = &tokens[mentions[at].end..next.start];
    between.len() <= 6
        && between.iter().any(|it| it.is_one_of(MOVES))
        && between
            .last()
            .is_some_and(|it| it.is_one_of(&["to", "until", "till", "now"]))
}

/// Whether midnight beside a day leaves open which day is meant: "by 0:00 on Friday".
pub(super) fn is_midnight_unclear(tokens: &[Token], mention: &Mention) -> bool {
    clock::midnight_beside(tokens, mention.start, mention.end) == Some(Midnight::InDigits)
}

/// Whether the sentence asks for something by that date: how far that lowers the confidence, or
/// the mark that says why not.
pub(super) fn judge(
    sentence: &Sentence,
    requests: &[Cue],
    mention: &Mention,
    is_introduced: bool,
) -> Result<Asked, &'static str> {
    let tokens = &sentence.tokens;
    let tie = tie(sentence, mention);
    if tie == Tie::Other {
        return Err(mark::NOT_EXTRACTED);
    }
    let governor = governor(tokens, requests, mention);
    if governor.is_none() && !(is_introduced && tie == Tie::By) {
        let is_asked = sentence.is_question && tie == Tie::By;
        return Err(if is_asked {
            mark::QUESTIONED
        } else {
            mark::NOT_EXTRACTED
        });
    }
    object(sentence, requests, mention, governor)?;
    let from = governor.filter(|at| *at < mention.start).unwrap_or(0);
    let is_loose = matches!(tie, Tie::On | Tie::Bare);
    if is_loose && !cue::asks_for_delivery_on(tokens, from, mention.start, tie == Tie::Bare) {
        return Err(mark::NOT_EXTRACTED);
    }
    let is_counted = matches!(mention.phrase, Phrase::InDays(_));
    let has_other_start = tokens
        .get(mention.end)
        .is_some_and(|it| it.is_one_of(&["of", "after", "from"]));
    if is_counted && has_other_start {
        return Err(mark::DATE_VAGUE);
    }
    let is_request = requests.iter().any(|it| Some(it.at) == governor);
    let factor = if is_request { 1.0 } else { NOT_ASKED };
    let asked = |factor| Ok(Asked { factor, mark: None });
    if is_midnight_unclear(tokens, mention) {
        return Err(mark::TIME_MIDNIGHT);
    }
    let is_midnight =
        clock::midnight_beside(tokens, mention.start, mention.end) == Some(Midnight::Named);
    match tie {
        Tie::By if is_midnight => Ok(Asked {
            factor: 0.75 * factor,
            mark: Some(mark::TIME_MIDNIGHT),
        }),
        Tie::By => asked(factor),
        Tie::On => asked(0.9 * factor),
        Tie::Bare if cue::stands_alone(tokens, mention.end) => asked(0.85 * factor),
        Tie::Until if is_request && !tokens[from..mention.start].iter().any(lasts) => Ok(Asked {
            factor: 0.8 * factor,
            mark: Some(mark::DATE_UNTIL),
        }),
        Tie::Before => Err(mark::DATE_EXCLUSIVE),
        Tie::Bare | Tie::Until | Tie::Other => Err(mark::NOT_EXTRACTED),
    }
}

fn lasts(token: &Token) -> bool {
    token.is_one_of(LASTING)
}

/// Whether a day is named in passing ("it was busy today"): no request, no "by", no date.
pub(super) fn is_plain_talk(sentence: &Sentence, requests: &[Cue], mention: &Mention) -> bool {
    let is_date = matches!(
        mention.phrase,
        Phrase::Full(..) | Phrase::MonthDay(..) | Phrase::Numeric(..)
    );
    !is_date && requests.is_empty() && tie(sentence, mention) != Tie::By
}

fn tie(sentence: &Sentence, mention: &Mention) -> Tie {
    cue::tie(
        &sentence.tokens,
        mention.start,
        mention.end,
        mention.is_end,
        mention.is_bare,
    )
}

/// The cue that the date belongs to: the last one before it, else the first one behind it.
fn governor(tokens: &[Token], requests: &[Cue], mention: &Mention) -> Option<usize> {
    let mut cues: Vec<usize> = requests.iter().map(|it| it.at).collect();
    cues.extend(cue::deadlines(tokens));
    let before = cues.iter().copied().filter(|at| *at < mention.start).max();
    before.or_else(|| cues.iter().copied().filter(|at| *at >= mention.end).min())
}

/// Why a date beside a request is still not what is asked for.
fn object(
    sentence: &Sentence,
    requests: &[Cue],
    mention: &Mention,
    governor: Option<usize>,
) -> Result<(), &'static str> {
    let tokens = &sentence.tokens;
    let at = mention.start;
    let cue = governor.unwrap_or(at);
    if cue::is_reported(tokens, cue.min(at)) {
        return Err(mark::REPORTED);
    }
    if cue::is_negated(tokens, at) || cue::is_negated(tokens, cue) {
        return Err(mark::NEGATED);
    }
    if cue::is_asked_about(tokens, at) || (sentence.is_question && requests.is_empty()) {
        return Err(mark::QUESTIONED);
    }
    if cue::is_conditional(tokens, at)
        || cue::is_conditional(tokens, cue)
        || cue::condition_follows(tokens, mention.end)
    {
        return Err(mark::CONDITIONAL);
    }
    let from = if cue < at { cue + 1 } else { 0 };
    if cue::gives_reason(tokens, from, at) {
        return Err(mark::NOT_EXTRACTED);
    }
    if cue::promises(tokens, from, at) {
        return Err(mark::NOT_EXTRACTED);
    }
    if cue::tells_past(tokens, from, at) {
        return Err(mark::DATE_PAST);
    }
    if is_of_third_party(tokens, cue, at) {
        return Err(mark::NOT_EXTRACTED);
    }
    if is_for_author(&tokens[from.min(at)..at]) || is_one_of_two(tokens, mention) {
        return Err(mark::NOT_EXTRACTED);
    }
    Ok(())
}

/// "who needs it by", "tell Anna that she has to reply by", "I need Tom to send it by".
fn is_of_third_party(tokens: &[Token], cue: usize, at: usize) -> bool {
    let Some(words) = tokens.get(cue + 1..at) else {
        return false;
    };
    let is_other = |it: &Token| {
        it.is_one_of(&["he", "she", "they", "him", "her", "them"])
            || (it.is_capital && it.kind == Kind::Word && !it.is_one_of(&["i", "i'm", "i'd"]))
    };
    // "due before you move in on"
    let is_event = words.windows(2).any(|it| {
        it[0].is_one_of(&["before", "after", "when", "once"])
            && it[1].is_one_of(&["i", "you", "we", "he", "she", "they", "it"])
    });
    let is_clause = is_event || words.iter().any(|it| it.is_word("who"));
    let tells = words
        .iter()
        .take(3)
        .any(|it| it.is_one_of(&["tell", "inform", "remind", "check", "ask", "confirm"]));
    let is_told = tells
        && words
            .windows(2)
            .any(|it| it[0].is_one_of(&["that", "if"]) && is_other(&it[1]));
    let needs = tokens[cue].is_one_of(&["need", "want", "like", "require", "expect"]);
    let is_needed = needs
        && words.first().is_some_and(is_other)
        && words.iter().take(4).any(|it| it.is_word("to"));
    is_clause || is_told || is_needed
}

/// "remind me to pay the rent by": what the author does by that day.
fn is_for_author(words: &[Token]) -> bool {
    let is_us = |it: &Token| it.is_one_of(&["me", "us"]);
    words.windows(3).any(|it| {
        let lets = it[0].is_one_of(&["remind", "allow", "trust", "for"])
            && is_us(&it[1])
            && it[2].is_word("to");
        let is_let = it[0].is_word("let")
            && is_us(&it[1])
            && !it[2].is_one_of(&["know", "have", "get", "see", "hear"]);
        lets || is_let
    })
}

/// "by Thursday, Friday at the latest": two days for one thing.
fn is_one_of_two(tokens: &[Token], mention: &Mention) -> bool {
    let is_comma = tokens.get(mention.end).is_some_and(|it| it.is_sign(","));
    let after = tokens.get(mention.end + 1..).unwrap_or_default();
    let latest = after
        .windows(2)
        .take(5)
        .position(|it| it[0].is_word("the") && it[1].is_word("latest"));
    let is_second_day = latest.is_some_and(|at| {
        (1..=4).contains(&at)
            && after[..at]
                .iter()
                .any(|it| it.is_capital || it.kind == Kind::Number)
    });
    is_comma && is_second_day
}

pub(super) fn judge_amount(
    sentence: &Sentence,
    found: &Amount,
) -> Result<(String, &'static str), &'static str> {
    let tokens = &sentence.tokens;
    let at = found.start;
    if let Some(objection) = amount::objection(tokens, found) {
        return Err(objection);
    }
    if cue::is_reported(tokens, at) {
        return Err(mark::REPORTED);
    }
    if cue::is_negated(tokens, at) && !amount::is_missing(tokens) {
        return Err(mark::NEGATED);
    }
    let payment = amount::payments(tokens).into_iter().rfind(|cue| *cue < at);
    if payment.is_some_and(|cue| cue::is_negated(tokens, cue)) && !amount::is_missing(tokens) {
        return Err(mark::NEGATED);
    }
    if cue::is_conditional(tokens, at) || cue::condition_follows(tokens, found.end) {
        return Err(mark::CONDITIONAL);
    }
    if cue::is_asked_about(tokens, at) || (sentence.is_question && cue::requests(tokens).is_empty())
    {
        return Err(mark::QUESTIONED);
    }
    let decimal = found.decimal.clone()?;
    if !decimal.contains(|digit| matches!(digit, '1'..='9')) {
        return Err(mark::AMOUNT_NOT_DUE);
    }
    found
        .currency
        .map(|currency| (decimal, currency))
        .ok_or(mark::CURRENCY_UNKNOWN)
}
