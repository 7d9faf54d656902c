//! Phrases by which people are to meet.

use super::clause;
use crate::token::{Kind, Token, find, stands};

/// How surely the day of a mention is one on which to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) at: usize,
    pub(crate) confidence: f64,
}

/// What people do when they meet.
const NOUNS: &[&str] = &[
    "meeting",
    "appointment",
    "interview",
    "workshop",
    "session",
    "webinar",
    "conference",
    "rehearsal",
    "viewing",
    "visit",
    "handover",
    "inspection",
    "lunch",
    "dinner",
    "breakfast",
    "coffee",
    "drinks",
    "tea",
    "brunch",
    "assembly",
    "hearing",
    "opening",
    "demo",
    "catchup",
    "standup",
    "seminar",
    "consultation",
    "training",
    "briefing",
    "walkthrough",
    "chat",
    "kickoff",
    "call",
    "party",
    "kick-off",
];

/// Words between such a noun and its day.
const BETWEEN: &[&str] = &[
    "is",
    "are",
    "takes",
    "take",
    "taking",
    "will",
    "place",
    "be",
    "has",
    "have",
    "been",
    "set",
    "scheduled",
    "confirmed",
    "fixed",
    "planned",
    "moved",
    "rescheduled",
    "booked",
    "arranged",
    "to",
    "for",
    "on",
    "at",
    "with",
    "the",
    "our",
    "your",
    "next",
    "calendar",
    "in",
    "now",
    "held",
    "you",
    "us",
    "me",
    "this",
    "again",
    "by",
    "phone",
    "video",
    "office",
    "about",
    "coming",
];

/// The cue that ties the mention from `start` to `end` to a meeting, if one does.
pub(crate) fn meeting(
    tokens: &[Token],
    start: usize,
    end: usize,
    is_question: bool,
) -> Option<Meeting> {
    proposal(tokens, start, end, is_question).or_else(|| statement(tokens, start, end, is_question))
}

/// "let's meet", "see you", "can we talk", "are you free for a call", "how about lunch".
fn proposal(tokens: &[Token], start: usize, end: usize, is_question: bool) -> Option<Meeting> {
    let found = |at, confidence| Some(Meeting { at, confidence });
    let (first, last) = clause(tokens, start);
    for at in (first..start).rev() {
        let after = &tokens[at + 1..];
        let is = |words: &[&str]| stands(&tokens[at..], words);
        if is(&["see", "you"]) || is(&["seeing", "you"]) || is(&["meeting", "you"]) {
            let is_told = is(&["meeting", "you"]) && !looks_forward(tokens, at);
            return if is_told { None } else { found(at, 0.75) };
        }
        let is_joint = is(&["let's"])
            || is(&["let", "us"])
            || [
                &["can", "we"][..],
                &["could", "we"],
                &["shall", "we"],
                &["should", "we"],
            ]
            .iter()
            .any(|it| is(it))
            || is(&["we", "should"])
            || is(&["we", "meet"])
            || is(&["we", "could"]);
        if is_joint && meets(&tokens[at..start.max(at + 1)]) {
            return found(at, 0.75);
        }
        if tokens[at].is_one_of(&["join", "attend"]) && names_joint(&after[..start - at - 1]) {
            return found(at, 0.75);
        }
        let asks_free = (is(&["are", "you", "free"]) || is(&["are", "you", "available"]))
            || is(&["you", "have", "time"])
            || is(&["how", "about"])
            || is(&["what", "about"]);
        if asks_free && (has_noun(&tokens[at..last]) || tokens[at].is_one_of(&["are", "have"])) {
            return found(at, 0.7);
        }
        let asks_call = tokens[at].is_word("make") && names_joint(&after[..start - at - 1]);
        if asks_call && is_question {
            return found(at, 0.7);
        }
        if tokens[at].is_one_of(&["move", "reschedule", "postpone"])
            && has_noun(&after[..start - at - 1])
            && tokens[start - 1].is_one_of(&["to", "on", "until"])
        {
            return found(at, 0.7);
        }
    }
    suits(tokens, start, end, is_question)
}

/// "Would Thursday suit you for the visit?", "On Friday we meet".
fn suits(tokens: &[Token], start: usize, end: usize, is_question: bool) -> Option<Meeting> {
    let after = &tokens[end..];
    let near = &after[..after.len().min(12)];
    let opens = start
        .checked_sub(1)
        .is_some_and(|it| tokens[it].is_one_of(&["would", "does", "could", "is", "will"]));
    let works = near
        .iter()
        .any(|it| it.is_one_of(&["suit", "work", "ok", "okay", "fine", "good", "possible"]));
    if is_question && opens && works && has_noun(near) {
        return Some(Meeting {
            at: start,
            confidence: 0.7,
        });
    }
    let we_meet = near
        .windows(2)
        .any(|it| it[0].is_one_of(&["we", "we'll"]) && it[1].is_one_of(&["meet", "talk"]));
    (start <= 1 && we_meet).then_some(Meeting {
        at: start,
        confidence: 0.7,
    })
}

/// "The meeting is on", "Lunch on Tuesday?", "Invitation: assembly on".
fn statement(tokens: &[Token], start: usize, _end: usize, is_question: bool) -> Option<Meeting> {
    let (first, _) = clause(tokens, start);
    // An invitation names its day behind a comma, too.
    let is_invitation = tokens
        .iter()
        .take(2)
        .any(|it| it.is_one_of(&["invitation", "reminder", "appointment", "invite"]));
    let first = if is_invitation { 0 } else { first };
    let noun = (first..start).rev().find(|at| is_noun(tokens, *at))?;
    let between = &tokens[noun + 1..start];
    let is_name = |token: &Token| token.is_capital && token.kind == Kind::Word;
    let is_tied = between.iter().all(|it| {
        it.is_one_of(BETWEEN)
            || is_name(it)
            || it.is_sign(",")
            || it.is_sign(":")
            || it.is_sign("(")
            || (it.kind == Kind::Number && between.len() <= 6)
            || it.is_one_of(&["am", "pm"])
    });
    let is_told_of = tokens[noun.saturating_sub(4)..noun].iter().any(|it| {
        it.is_one_of(&[
            "from", "of", "since", "during", "notes", "minutes", "slides", "thanks", "thank",
        ])
    });
    if !is_tied || is_told_of || is_of_others(tokens, noun) {
        return None;
    }
    let is_fragment = noun <= 2 && !has_verb(between);
    let is_joined = between.iter().any(|it| {
        it.is_one_of(&["on", "is", "for", "place", "to", "at", "set"]) || it.is_sign(",")
    });
    let confidence = match (is_question, is_fragment) {
        (true, true) if !tokens[noun].is_one_of(&["meeting", "appointment"]) || noun == 0 => 0.6,
        (true, _) => return None,
        (false, _) if is_joined || is_invitation => 0.75,
        (false, _) => return None,
    };
    Some(Meeting {
        at: noun,
        confidence,
    })
}

fn has_verb(tokens: &[Token]) -> bool {
    tokens
        .iter()
        .any(|it| it.is_one_of(&["is", "are", "takes", "will", "has", "have", "was"]))
}

fn looks_forward(tokens: &[Token], at: usize) -> bool {
    tokens[at.saturating_sub(4)..at]
        .iter()
        .any(|it| it.is_word("forward"))
}

fn is_noun(tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    if token.is_word("call") {
        return at
            .checked_sub(1)
            .is_some_and(|it| is_before_call(&tokens[it]));
    }
    // "kick-off" is three tokens.
    let is_kickoff = token.is_word("off")
        && at >= 2
        && tokens[at - 1].is_sign("-")
        && tokens[at - 2].is_word("kick");
    token.is_one_of(NOUNS) || is_kickoff
}

fn is_before_call(token: &Token) -> bool {
    token.is_one_of(&[
        "a",
        "the",
        "our",
        "quick",
        "short",
        "phone",
        "video",
        "conference",
        "team",
        "zoom",
        "this",
        "next",
        "brief",
        "weekly",
    ])
}

fn has_noun(tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| is_noun(tokens, at))
}

/// "us", "me", "our call": the author takes part.
fn names_joint(tokens: &[Token]) -> bool {
    tokens
        .iter()
        .any(|it| it.is_one_of(&["us", "me", "our", "my"]))
        || has_noun(tokens)
}

/// Verbs of meeting behind "let us" and "can we".
fn meets(tokens: &[Token]) -> bool {
    let is_verb = |at: usize| {
        let is_meet = tokens[at].is_word("meet")
            && !tokens
                .get(at + 1)
                .is_some_and(|it| it.is_one_of(&["this", "that", "these", "those", "their"]));
        is_meet
            || tokens[at].is_one_of(&["talk", "speak", "chat", "connect", "catch", "discuss", "do"])
    };
    (0..tokens.len()).any(is_verb) || has_noun(tokens)
}

/// "I have an appointment", "my interview": the author meets somebody else.
fn is_of_others(tokens: &[Token], noun: usize) -> bool {
    const NOT_OURS: &[&str] = &[
        "my", "his", "her", "their", "after", "before", "attended", "agenda", "enjoyed",
    ];
    let before = &tokens[noun.saturating_sub(5)..noun];
    let has = |words: &[&str]| before.iter().any(|it| it.is_one_of(words));
    let with_both = [&["with", "you"][..], &["with", "us"]]
        .iter()
        .any(|it| find(tokens, it, noun).is_some());
    // "I have put the interview in the calendar" is about both.
    let has_one = has(&["have", "had", "has", "got", "i've"]) && !has(&["put", "booked", "set"]);
    let is_owned = before.iter().any(|it| {
        let is_period = it.is_one_of(&["today's", "tomorrow's", "week's", "month's", "let's"]);
        it.kind == Kind::Word && it.text.ends_with("'s") && !is_period
    });
    !with_both && (has(NOT_OURS) || has_one || is_owned || meets_somebody(tokens, noun))
}

/// "I'm meeting Tom": a verb, with whom the author meets behind it.
fn meets_somebody(tokens: &[Token], at: usize) -> bool {
    let is_verb = tokens[at].is_word("meeting")
        && at.checked_sub(1).is_some_and(|it| {
            tokens[it].is_one_of(&[
                "i'm", "am", "we're", "are", "be", "is", "he's", "she's", "they're",
            ])
        });
    let is_named = tokens.get(at + 1).is_some_and(|it| {
        it.is_capital || it.is_one_of(&["the", "a", "my", "our", "him", "her", "them", "with"])
    });
    is_verb && is_named
}

/// Whether the meeting is off, over or only one of many.
pub(crate) fn is_off(tokens: &[Token]) -> bool {
    let has = |words: &[&str]| find(tokens, words, 0).is_some();
    has(&["is", "off"])
        || has(&["called", "off"])
        || has(&["call", "off"])
        || has(&["can't", "meet"])
        || has(&["cannot", "meet"])
        || tokens.iter().any(|it| it.is_word("cancel"))
        || tokens.iter().any(|it| {
            it.is_one_of(&[
                "cancelled",
                "canceled",
                "postponed",
                "every",
                "weekly",
                "met",
            ])
        })
}
