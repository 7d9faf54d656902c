//! Phrases by which an author asks for something.

use super::NEAR;
use crate::token::{Kind, Token, find, stands};

/// A phrase by which an author asks for something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cue {
    pub(crate) at: usize,
    pub(crate) confidence: f64,
}

/// Verbs that ask for a delivery when a sentence begins with them.
pub(super) const IMPERATIVES: &[&str] = &[
    "send",
    "provide",
    "deliver",
    "submit",
    "return",
    "confirm",
    "upload",
    "share",
    "review",
    "approve",
    "sign",
    "reply",
    "respond",
    "complete",
    "prepare",
    "pay",
    "forward",
    "email",
    "mail",
    "ship",
    "finish",
    "update",
    "check",
    "fill",
    "transfer",
    "remit",
    "give",
    "bring",
    "get",
    "book",
    "order",
    "settle",
    "renew",
    "call",
    "ring",
    "leave",
    "drop",
    "translate",
    "redo",
    "fix",
    "clear",
    "register",
    "buy",
    "collect",
    "cancel",
    "ask",
    "tell",
    "hand",
    "answer",
    "print",
    "lock",
    "pick",
    "write",
    "add",
    "remove",
    "correct",
    "test",
    "draft",
    "close",
    "open",
    "pack",
    "supply",
    "file",
    "execute",
    "present",
    "make",
    "wire",
    "clean",
    "attach",
    "include",
    "inform",
];

/// What stands behind such a verb if it is one.
const AFTER_IMPERATIVE: &[&str] = &[
    "the", "a", "an", "us", "me", "your", "this", "these", "those", "it", "them", "back", "all",
    "any", "both", "our", "my", "over", "by", "to", "in", "out", "that", "him", "her", "with",
    "sure", "up",
];

/// What follows "please" where nothing is asked for.
const NO_REQUEST_AFTER_PLEASE: &[&str] = &[
    "find",
    "note",
    "see",
    "be",
    "ignore",
    "disregard",
    "enjoy",
    "accept",
    "visit",
    "click",
    "consider",
    "feel",
    "excuse",
    "forgive",
    "contact",
    "do",
    "don't",
    "unsubscribe",
    "never",
    "not",
    "refer",
    "stop",
    "keep",
    "remember",
    "bear",
];

/// What follows "could you" where nothing is asked for.
const NO_REQUEST_AFTER_YOU: &[&str] = &[
    "be", "believe", "imagine", "see", "like", "prefer", "have", "agree", "ever", "really", "not",
    "attend", "make", "do",
];

/// Everything by which the sentence asks for something, in order.
pub(crate) fn requests(tokens: &[Token]) -> Vec<Cue> {
    if is_courtesy(tokens) {
        return Vec::new();
    }
    let start = opening_length(tokens);
    (0..tokens.len())
        .filter_map(|at| {
            let confidence = request_at(tokens, at, at == start)?;
            Some(Cue { at, confidence })
        })
        .collect()
}

fn request_at(tokens: &[Token], at: usize, is_first: bool) -> Option<f64> {
    let token = &tokens[at];
    if token.kind != Kind::Word {
        return None;
    }
    let before = |back: usize| at.checked_sub(back).and_then(|it| tokens.get(it));
    let after = &tokens[at + 1..];
    match token.text.as_str() {
        "please" | "pls" | "plz" | "kindly" => {
            let next = word_after(
                after,
                &[
                    "also", "just", "then", "kindly", "both", "could", "can", "would", "you",
                ],
            );
            let is_empty = next.is_some_and(|it| it.is_one_of(NO_REQUEST_AFTER_PLEASE))
                && !asks_after_all(after);
            (!is_empty).then_some(0.8)
        }
        "can" | "could" | "may" if asks_to_have(after) => Some(0.7),
        "can" | "could" | "would" | "will" => {
            let asks_for_words = before(1).is_some_and(|it| {
                it.is_one_of(&["what", "how", "why", "when", "where", "which", "who"])
            });
            if asks_for_words {
                return None;
            }
            let is_asked = after.first().is_some_and(|it| it.is_one_of(&["you", "u"]));
            let next = word_after(
                after.get(1..)?,
                &[
                    "please", "also", "kindly", "possibly", "just", "maybe", "then",
                ],
            )?;
            let is_verb = (next.kind == Kind::Word && !next.is_one_of(NO_REQUEST_AFTER_YOU))
                || asks_after_all(&after[1..]);
            let is_about_the_author = find(after, &["mind", "if"], 0).is_some_and(|it| it <= 2);
            (is_asked && is_verb && !is_about_the_author).then_some(0.8)
        }
        "need" | "require" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'd", "we'd", "i'll", "we'll"]));
            let is_to = after.first().is_some_and(|it| it.is_word("to"));
            let is_for_you = before(1).is_some_and(|it| it.is_word("you")) && is_to;
            ((subject && !is_to) || is_for_you || (is_first && !is_to)).then_some(0.7)
        }
        "like" | "want" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'd", "we'd"]));
            let asks = [
                &["you", "to"][..],
                &["to", "have"],
                &["to", "receive"],
                &["to", "get"],
                &["to", "ask"],
            ];
            (subject && asks.iter().any(|it| stands(after, it))).then_some(0.75)
        }
        "appreciate" => {
            let is_wish = (1..=2)
                .filter_map(before)
                .any(|it| it.is_one_of(&["would", "i'd", "we'd"]));
            is_wish.then_some(0.75)
        }
        "grateful" | "obliged" | "thankful" => {
            let is_wish = after.first().is_some_and(|it| it.is_one_of(&["if", "for"]))
                && (1..=3)
                    .filter_map(before)
                    .any(|it| it.is_one_of(&["would", "should", "i'd", "we'd"]));
            is_wish.then_some(0.75)
        }
        "great" | "good" | "nice" | "helpful" | "lovely" | "perfect" | "wonderful"
        | "fantastic" => {
            let is_wish = before(1).is_some_and(|it| it.is_word("be"))
                && before(2).is_some_and(|it| it.is_one_of(&["would", "it'd"]));
            let leads = [
                &["if", "you", "could"][..],
                &["if", "you", "can"],
                &["if", "you", "would"],
                &["to", "have"],
                &["to", "get"],
                &["to", "receive"],
            ];
            (is_wish && leads.iter().any(|it| stands(after, it))).then_some(0.75)
        }
        "mind" if is_first => {
            let is_asked = after.first().is_some_and(|it| it.text.ends_with("ing"));
            is_asked.then_some(0.7)
        }
        "chance" | "way" => {
            let is_asked = [&["you", "can"][..], &["you", "could"]]
                .iter()
                .any(|it| stands(after, it));
            is_asked.then_some(0.75)
        }
        "possible" => {
            let is_asked = before(1).is_some_and(|it| it.is_one_of(&["be", "it"]))
                && (1..=3).filter_map(before).any(|it| it.is_word("it"));
            let leads = [&["to"][..], &["for", "you", "to"]]
                .iter()
                .any(|it| stands(after, it));
            (is_asked && leads).then_some(0.75)
        }
        "requested" | "required" | "asked" => {
            let is_told = (1..=3).filter_map(before).any(|it| it.is_word("are"))
                && (2..=4).filter_map(before).any(|it| it.is_word("you"));
            (is_told && after.first().is_some_and(|it| it.is_word("to"))).then_some(0.75)
        }
        "remember" if is_first => {
            let is_reminder = after.first().is_some_and(|it| it.is_word("to"));
            is_reminder.then_some(0.7)
        }
        "be" if is_first => stands(after, &["sure", "to"]).then_some(0.7),
        "ask" | "asking" | "request" | "requesting" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'm", "we're", "must"]));
            let asks = after
                .first()
                .is_some_and(|it| it.is_one_of(&["you", "for", "that", "the", "your"]));
            (subject && asks).then_some(0.75)
        }
        "must" | "have" => {
            let is_must = token.text == "must" || after.first().is_some_and(|it| it.is_word("to"));
            let is_yours = before(1).is_some_and(|it| it.is_one_of(&["you", "you'll"]))
                || (before(1).is_some_and(|it| it.is_one_of(&["will", "still", "also"]))
                    && before(2).is_some_and(|it| it.is_word("you")));
            (is_must && is_yours).then_some(0.65)
        }
        "let" => {
            let asks = stands(after, &["me", "know"]) || stands(after, &["us", "know"]);
            asks.then_some(0.75)
        }
        "forget" => {
            let is_own = before(2).is_some_and(|it| {
                it.is_one_of(&["i", "we", "will", "shall", "i'll", "we'll", "would"])
            });
            let is_reminder = before(1).is_some_and(|it| it.is_one_of(&["don't", "not"]))
                && !is_own
                && after.first().is_some_and(|it| it.is_word("to"));
            is_reminder.then_some(0.7)
        }
        verb if is_first && IMPERATIVES.contains(&verb) => {
            let is_verb = after
                .first()
                .is_some_and(|it| it.is_one_of(AFTER_IMPERATIVE));
            is_verb.then_some(0.7)
        }
        _ => None,
    }
}

/// "I do not need": nothing is asked for.
pub(crate) fn is_unwanted(tokens: &[Token], at: usize) -> bool {
    tokens[at].is_one_of(&["need", "require", "want", "like"]) && super::is_negated(tokens, at)
}

/// Whether words that seldom ask for something do so here: "be so kind as to", "remember to".
fn asks_after_all(after: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["be", "so", "kind"],
        &["be", "so", "good"],
        &["be", "able", "to"],
        &["be", "willing", "to"],
        &["be", "sure", "to"],
        &["remember", "to"],
        &["see", "that"],
        &["see", "to", "it"],
        &["make", "sure"],
        &["make", "the"],
        &["make", "a"],
        &["have", "the"],
        &["have", "it"],
        &["do", "the"],
        &["keep", "the"],
    ];
    let skipped = after
        .iter()
        .take_while(|it| it.is_one_of(&["please", "also", "kindly", "possibly"]))
        .count();
    let rest = &after[skipped..];
    PHRASES.iter().any(|it| stands(rest, it))
}

/// "can I have your", "could we get the".
fn asks_to_have(after: &[Token]) -> bool {
    let is_us = after.first().is_some_and(|it| it.is_one_of(&["i", "we"]));
    let skipped = usize::from(after.get(1).is_some_and(|it| it.is_word("please")));
    let has = after
        .get(1 + skipped)
        .is_some_and(|it| it.is_one_of(&["have", "get"]));
    let a_thing = after
        .get(2 + skipped)
        .is_some_and(|it| it.is_one_of(&["your", "the", "a", "an", "some", "my", "our", "that"]));
    is_us && has && a_thing
}

/// The first word behind `fillers`.
fn word_after<'a>(tokens: &'a [Token], fillers: &[&str]) -> Option<&'a Token> {
    tokens
        .iter()
        .take(NEAR)
        .find(|it| !it.is_one_of(fillers) && it.kind == Kind::Word)
}

/// Greeting and connecting words before the first verb: "Hi Asha,", "Asha,", "Also,".
pub(super) fn opening_length(tokens: &[Token]) -> usize {
    let comma = tokens.iter().take(4).position(|it| it.is_sign(","));
    let greeting = comma.filter(|at| {
        let is_greeting =
            tokens[0].is_one_of(&["hi", "hello", "dear", "hey", "also", "then", "so", "and"]);
        is_greeting || (*at == 1 && tokens[0].is_capital)
    });
    let start = greeting.map_or(0, |at| at + 1);
    let joined = tokens[start..]
        .iter()
        .take(2)
        .take_while(|it| it.is_one_of(&["and", "then", "also"]))
        .count();
    start + joined
}

/// Phrases of politeness that ask for nothing.
fn is_courtesy(tokens: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["have", "any", "questions"],
        &["have", "questions"],
        &["have", "any", "further", "questions"],
        &["any", "questions"],
        &["have", "already", "paid"],
        &["already", "paid"],
        &["not", "hesitate"],
        &["don't", "hesitate"],
        &["feel", "free"],
        &["the", "environment"],
        &["wish", "to", "unsubscribe"],
        &["received", "this", "in", "error"],
        &["received", "this", "email", "in", "error"],
        &["received", "this", "message", "in", "error"],
    ];
    PHRASES
        .iter()
        .any(|phrase| find(tokens, phrase, 0).is_some())
}
