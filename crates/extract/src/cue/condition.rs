//! Conditions that a clause hangs on.

use super::clause;
use crate::token::{Token, stands};

/// Phrases with "if" that only make a request polite.
const POLITE: &[&[&str]] = &[
    &["possible"],
    &["at", "all"],
    &["you", "can"],
    &["you", "could"],
    &["you", "would"],
    &["you", "please"],
    &["you", "don't", "mind"],
    &["you", "have", "time"],
    &["necessary"],
    &["convenient"],
    &["that", "works"],
    &["it", "is", "possible"],
    &["it's", "possible"],
    &["not"],
    &["you", "have", "not"],
    &["you", "haven't"],
    &["so"],
];

/// Words before "if" where it says for what somebody would be thankful, or asks whether.
const BEFORE_WHETHER: &[&str] = &[
    "grateful",
    "appreciate",
    "it",
    "know",
    "obliged",
    "thankful",
    "glad",
    "happy",
    "kind",
    "great",
    "see",
    "check",
    "confirm",
    "tell",
    "me",
    "us",
    "wonder",
    "wondering",
    "ask",
    "even",
    "as",
];

/// Whether a condition governs the clause around `at`: one in the clause itself, or one that opens
/// the sentence before it ("If the client agrees, please send").
pub(crate) fn is_conditional(tokens: &[Token], at: usize) -> bool {
    let (start, _) = clause(tokens, at);
    let in_clause = (start..at).any(|at| {
        let is_inverted =
            tokens[at].is_word("should") && tokens.get(at + 1).is_some_and(|it| it.is_word("you"));
        let opens = tokens[at].is_one_of(&[
            "if", "unless", "once", "when", "assuming", "provided", "suppose",
        ]);
        (opens || is_inverted) && is_binding(tokens, at)
    });
    let opening = tokens.iter().take(2).position(|it| {
        it.is_one_of(&[
            "if", "unless", "once", "when", "assuming", "provided", "should", "were", "in", "as",
        ])
    });
    in_clause
        || has_proviso(tokens)
        || opening.is_some_and(|first| {
            let is_lead = first == 0 || tokens[0].is_one_of(&["and", "but", "so", "only"]);
            first < at && is_lead && opens_sentence(tokens, first) && is_binding(tokens, first)
        })
}

/// Phrases that make all of a sentence depend on something: "subject to", "weather permitting".
fn has_proviso(tokens: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["subject", "to"],
        &["depending", "on"],
        &["depending", "upon"],
        &["depends", "on"],
        &["contingent", "on"],
        &["conditional", "on"],
        &["on", "condition"],
        &["god", "willing"],
        &["all", "being", "well"],
        &["all", "goes", "well"],
    ];
    (0..tokens.len()).any(|at| {
        let opens_clause = at == 0 || tokens[at - 1].is_sign(",");
        let is_pending = opens_clause && tokens[at].is_one_of(&["pending", "barring"]);
        let is_permitting = tokens[at].is_word("permitting");
        is_pending || is_permitting || PHRASES.iter().any(|it| stands(&tokens[at..], it))
    })
}

/// Whether a condition follows what ends at `end`: "by Friday if the client agrees".
pub(crate) fn condition_follows(tokens: &[Token], end: usize) -> bool {
    let skipped = usize::from(tokens.get(end).is_some_and(|it| it.is_sign(",")));
    let at = end + skipped;
    let rest = tokens.get(at..).unwrap_or_default();
    let opens = rest
        .first()
        .is_some_and(|it| it.is_one_of(&["if", "unless", "assuming"]))
        || [
            &["provided", "that"][..],
            &["once", "the"],
            &["once", "you"],
            &["as", "soon", "as"],
            &["depending", "on"],
            &["at", "the", "earliest"],
            &["in", "case"],
            &["only", "if"],
            &["or", "so"],
        ]
        .iter()
        .any(|it| stands(rest, it));
    // "Let me know by Friday if you can come" asks whether.
    let asks_whether = rest.first().is_some_and(|it| it.is_word("if"))
        && tokens[..end].iter().any(|it| {
            it.is_one_of(&[
                "know",
                "tell",
                "confirm",
                "check",
                "see",
                "say",
                "inform",
                "advise",
                "reply",
                "wonder",
                "ask",
                "answer",
                "whether",
                "grateful",
                "appreciate",
                "great",
            ])
        });
    opens && !asks_whether && is_binding(tokens, at)
}

fn opens_sentence(tokens: &[Token], at: usize) -> bool {
    let after = &tokens[at + 1..];
    match tokens[at].text.as_str() {
        "should" => after
            .first()
            .is_some_and(|it| it.is_one_of(&["you", "the", "he", "she", "they", "we", "it"])),
        "were" => after
            .first()
            .is_some_and(|it| it.is_one_of(&["the", "you", "they", "we"])),
        "in" => after.first().is_some_and(|it| it.is_word("case")),
        "as" => stands(after, &["soon", "as"]) || stands(after, &["long", "as"]),
        _ => true,
    }
}

fn is_binding(tokens: &[Token], at: usize) -> bool {
    let after = &tokens[at + 1..];
    let skipped = after.iter().take_while(|it| it.is_sign(",")).count();
    let is_polite = POLITE.iter().any(|it| stands(&after[skipped..], it));
    let asks_whether = at > 0 && tokens[at - 1].is_one_of(BEFORE_WHETHER);
    let is_refusal = stands(after, &["you", "have", "not", "received"]);
    (!is_polite || is_refusal) && !asks_whether
}
