//! Whether a date or an amount is what its sentence asks for.

use crate::amount::{self, Amount};
use crate::cue::{self, Cue, Tie};
use crate::date::{Mention, Phrase};
use crate::mark;
use crate::sentence::Sentence;
use crate::token::{Kind, Token};

/// What a deadline that nobody asks for in its sentence leaves of the confidence: trains are due
/// too.
const NOT_ASKED: f64 = 0.85;

/// Verbs of a state that lasts until a day, which is no day by which something is wanted.
const LASTING: &[&str] = &[
    "wait", "stay", "keep", "hold", "closed", "open", "away", "valid", "leave", "remain",
    "continue", "stop", "pause", "use", "be", "store", "postpone", "delay", "off",
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
        && tokens[mention.start - 1].is_one_of(&["or"])
        && tokens[mention.start - 2].kind == Kind::Number;
    meets_next || meets_last || begins || is_choice
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
    match tie {
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
    Ok(())
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
