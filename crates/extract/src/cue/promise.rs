//! Phrases by which an author commits to something.

use super::NEAR;
use super::request::{IMPERATIVES, opening_length};
use crate::token::{Kind, Token, stands};

/// A phrase by which an author commits to something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Promise {
    pub(crate) at: usize,
    /// What the way of saying it leaves of the confidence.
    pub(crate) factor: f64,
}

/// Words that stand between "will" and its verb.
const ADVERBS: &[&str] = &[
    "also",
    "then",
    "gladly",
    "certainly",
    "definitely",
    "surely",
    "happily",
    "just",
    "personally",
    "of",
    "course",
    "now",
    "both",
    "all",
    "be",
    "able",
    "to",
    "still",
    "only",
];

/// What is no deed: nobody commits to anything by it.
const NO_DEED: &[&str] = &[
    "see",
    "meet",
    "know",
    "need",
    "want",
    "like",
    "hope",
    "try",
    "attend",
    "miss",
    "stay",
    "travel",
    "go",
    "think",
    "talk",
    "speak",
    "wait",
    "probably",
    "possibly",
    "likely",
    "not",
    "never",
    "maybe",
    "hopefully",
    "join",
    "fly",
    "depend",
    "remain",
    "assume",
    "expect",
    "aim",
    "seek",
    "look",
    "work",
    "am",
    "are",
    "been",
    "away",
    "in",
    "at",
    "on",
    "out",
    "off",
    "here",
    "there",
    "busy",
    "happy",
    "glad",
    "closed",
    "available",
    "reachable",
    "unable",
    "a",
    "the",
    "with",
    "more",
    "you",
    "we",
    "i",
    "it",
    "this",
    "that",
    "they",
    "anyone",
    "somebody",
    "someone",
    "needing",
    "wanting",
    "expecting",
    "hoping",
    "trying",
    "waiting",
    "travelling",
    "traveling",
    "flying",
    "staying",
    "attending",
];

/// What happens to goods and work that somebody is to get.
const DELIVERIES: &[&str] = &[
    "shipped",
    "sent",
    "delivered",
    "arrive",
    "dispatched",
    "leave",
    "ship",
    "deliver",
    "ready",
    "done",
    "finished",
    "completed",
    "installed",
    "repaired",
    "fixed",
    "returned",
    "posted",
    "collected",
    "collect",
    "pick",
    "bring",
    "come",
    "reach",
    "refunded",
    "paid",
    "published",
    "complete",
    "finish",
    "handle",
    "start",
    "uploaded",
    "available",
    "call",
    "contact",
    "visit",
    "fit",
    "install",
    "repair",
];

/// Everything by which the sentence commits its author to something, in order.
pub(crate) fn commitments(tokens: &[Token]) -> Vec<Promise> {
    let start = opening_length(tokens);
    (0..tokens.len())
        .filter_map(|at| {
            let factor = commitment_at(tokens, at, at == start || is_after_yes(tokens, at))?;
            Some(Promise { at, factor })
        })
        .collect()
}

/// Whether "yes", "sure" or the like and a comma stand before.
fn is_after_yes(tokens: &[Token], at: usize) -> bool {
    at == 2
        && tokens[1].is_sign(",")
        && tokens[0].is_one_of(&["yes", "yep", "sure", "ok", "okay", "fine", "good", "thanks"])
}

fn commitment_at(tokens: &[Token], at: usize, is_first: bool) -> Option<f64> {
    let token = &tokens[at];
    if token.kind != Kind::Word {
        return None;
    }
    let before = at.checked_sub(1).map(|it| &tokens[it]);
    let after = &tokens[at + 1..];
    let is_author = |token: &Token| token.is_one_of(&["i", "we"]);
    match token.text.as_str() {
        "i'll" | "we'll" => has_deed(after).then_some(1.0),
        "you'll" => gets_something(after).then_some(0.9),
        "will" | "shall" => match before {
            Some(subject) if is_author(subject) => has_deed(after).then_some(1.0),
            Some(subject) if subject.is_word("you") => gets_something(after).then_some(0.9),
            Some(_) if !is_first => is_delivered(tokens, at).then_some(0.85),
            Some(_) | None => (is_first && has_deed(after)).then_some(0.9),
        },
        "it'll" => is_delivered(tokens, at).then_some(0.85),
        "going" => {
            let is_own = is_first
                || before.is_some_and(|it| it.is_one_of(&["i'm", "we're"]))
                || (before.is_some_and(|it| it.is_one_of(&["am", "are"]))
                    && at >= 2
                    && is_author(&tokens[at - 2]));
            let is_to = after.first().is_some_and(|it| it.is_word("to"));
            (is_own && is_to && has_deed(&after[1..])).then_some(0.9)
        }
        "promise" | "guarantee" | "undertake" | "commit" | "pledge" => {
            let is_own = is_first || before.is_some_and(is_author);
            let leads = after.first().is_some_and(|it| {
                it.is_one_of(&[
                    "to",
                    "that",
                    "you",
                    "the",
                    "delivery",
                    "completion",
                    "i",
                    "we",
                ])
            });
            (is_own && leads).then_some(1.0)
        }
        "expect" if is_first => {
            let is_from_us = [&["from", "us"][..], &["from", "me"]]
                .iter()
                .any(|it| crate::token::find(after, it, 0).is_some());
            is_from_us.then_some(0.8)
        }
        _ => None,
    }
}

/// Whether a deed follows, behind adverbs.
fn has_deed(after: &[Token]) -> bool {
    let verb = after
        .iter()
        .find(|it| !it.is_one_of(ADVERBS) && !it.is_sign(","));
    let is_being = after.first().is_some_and(|it| it.is_word("be"));
    verb.is_some_and(|verb| {
        let is_deed = verb.kind == Kind::Word && !verb.is_one_of(NO_DEED);
        // "I'll be sending it", "I'll be done"; not "I'll be late".
        let is_done = verb.text.ends_with("ing") || verb.is_one_of(DELIVERIES);
        is_deed && (!is_being || is_done || after.get(1).is_some_and(|it| it.is_word("able")))
    })
}

/// "you will have the keys".
fn gets_something(after: &[Token]) -> bool {
    let verb = after.iter().find(|it| !it.is_one_of(ADVERBS));
    let gets = verb.is_some_and(|it| it.is_one_of(&["get", "have", "receive", "find", "hear"]));
    // "You will hear from Tom": what others do.
    let is_from_others = after
        .iter()
        .position(|it| it.is_word("from"))
        .and_then(|at| after.get(at + 1))
        .is_some_and(|it| {
            let is_ours = it.is_one_of(&["us", "me", "our", "my", "now", "the"]);
            it.kind == Kind::Word && !is_ours
        });
    gets && !is_from_others
        && !after
            .windows(2)
            .take(3)
            .any(|it| it[0].is_one_of(&["have", "get"]) && it[1].is_word("to"))
}

/// "your order will be shipped", "our driver will collect it", "it will be ready".
fn is_delivered(tokens: &[Token], at: usize) -> bool {
    let subject = &tokens[at.saturating_sub(4)..at];
    let is_ours = subject
        .iter()
        .any(|it| it.is_one_of(&["your", "our", "the", "everything", "all"]))
        || tokens[at].is_word("it'll")
        || subject.last().is_some_and(|it| it.is_word("it"));
    let after = &tokens[at + 1..];
    let verb = after.iter().find(|it| !it.is_one_of(ADVERBS));
    let is_person = subject
        .last()
        .is_some_and(|it| it.is_one_of(&["he", "she", "they", "who", "which", "that"]));
    // "The supplier will deliver the parts to us": the author gets them.
    let is_to_author = after
        .iter()
        .take(NEAR)
        .any(|it| it.is_one_of(&["us", "me"]));
    is_ours && !is_person && !is_to_author && verb.is_some_and(|it| it.is_one_of(DELIVERIES))
}

/// Whether the words from `from` to `to` say that it is only hoped, tried or likely.
pub(crate) fn is_hedged(tokens: &[Token], from: usize, to: usize) -> bool {
    const ALWAYS: &[&str] = &[
        "hoping",
        "hopefully",
        "trying",
        "maybe",
        "perhaps",
        "probably",
        "might",
        "possibly",
        "ideally",
        "intend",
        "doubt",
        "doubtful",
        "likely",
        "unlikely",
        "pretend",
        "imagine",
        "presumably",
        "apparently",
        "hardly",
        "theoretically",
    ];
    // "the plan" is a thing, "your best" is no try.
    const AS_VERBS: &[&str] = &["hope", "try", "aim", "plan"];
    const OF_AUTHOR: &[&str] = &["think", "believe", "guess", "reckon", "suppose", "wish"];
    const PHRASES: &[&[&str]] = &[
        &["with", "luck"],
        &["any", "luck"],
        &["fingers", "crossed"],
        &["as", "if"],
        &["my", "best"],
        &["our", "best"],
        &["in", "theory"],
        &["who", "says"],
    ];
    (from.min(to)..to).any(|at| {
        let token = &tokens[at];
        let is_after = |words: &[&str]| at > 0 && tokens[at - 1].is_one_of(words);
        let is_thing = is_after(&["the", "a", "this", "our", "your", "my", "new", "project"]);
        token.is_one_of(ALWAYS)
            || (token.is_one_of(AS_VERBS) && !is_thing)
            || (token.is_one_of(OF_AUTHOR) && is_after(&["i", "we", "would", "don't", "do"]))
            || PHRASES.iter().any(|it| stands(&tokens[at..], it))
    })
}

/// Whether the words before `to` tell what the author said to somebody else: "I told Anna that".
pub(crate) fn is_said_to_others(tokens: &[Token], to: usize) -> bool {
    const SAYS: &[&str] = &[
        "tell",
        "told",
        "telling",
        "inform",
        "informed",
        "assure",
        "assured",
        "promised",
        "convince",
        "convinced",
        "remind",
        "reminded",
    ];
    (0..to.min(tokens.len())).any(|at| {
        let is_to_us = tokens.get(at + 1).is_none_or(|it| {
            it.is_one_of(&["you", "u", "me", "us", "to"]) || it.kind == Kind::Sign
        });
        tokens[at].is_one_of(SAYS) && !is_to_us
    })
}

/// Whether the words from `from` to `to` begin another clause, which the day belongs to.
pub(crate) fn begins_other_clause(tokens: &[Token], from: usize, to: usize) -> bool {
    (from..to.min(tokens.len())).any(|at| {
        tokens[at].is_one_of(&[
            "why", "what", "how", "when", "where", "who", "which", "whether", "while", "until",
            "because", "since",
        ]) || (tokens[at].is_word("that")
            && tokens
                .get(at + 1)
                .is_some_and(|it| it.kind == Kind::Word && !it.is_one_of(IMPERATIVES))
            && at > from + 1)
            || stands(&tokens[at..], &["so", "you"])
    })
}
