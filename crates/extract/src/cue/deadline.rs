//! Phrases that state a day by which something is wanted, and lines that introduce tasks.

use super::clause;
use crate::token::{Kind, Token, find, stands};

/// What comes to the owner by itself, so that "expected by" is no deadline.
const COMING: &[&str] = &[
    "delivery",
    "arrival",
    "parcel",
    "package",
    "order",
    "shipment",
    "goods",
    "results",
    "release",
    "train",
    "flight",
    "rain",
    "snow",
    "completion",
];

/// Phrases by which a sentence states that something has a day by which it is wanted.
pub(crate) fn deadlines(tokens: &[Token]) -> Vec<usize> {
    (0..tokens.len())
        .filter(|at| {
            let token = &tokens[*at];
            let is_past = at
                .checked_sub(1)
                .is_some_and(|it| tokens[it].is_one_of(&["was", "were", "been"]));
            let after = &tokens[at + 1..];
            let is_cue = match token.text.as_str() {
                "deadline" => true,
                "due" => !after.first().is_some_and(|it| it.is_word("to")),
                "must" | "should" => {
                    let is_able = after.get(1).is_some_and(|it| it.is_word("able"));
                    let is_wanted = after
                        .first()
                        .is_some_and(|it| it.is_one_of(&["be", "reach", "arrive"]));
                    is_wanted && !is_able
                }
                "closing" => after.first().is_some_and(|it| it.is_word("date")),
                "needs" | "has" | "have" | "need" => stands(after, &["to", "be"]),
                "needed" | "required" | "expected" | "wanted" => {
                    let is_forecast = token.text == "expected"
                        && tokens[..*at].iter().any(|it| it.is_one_of(COMING));
                    let is_led = after
                        .first()
                        .is_some_and(|it| it.is_one_of(&["by", "on", "no", "before"]));
                    is_led && !is_forecast
                }
                "until" | "till" => at
                    .checked_sub(1)
                    .is_some_and(|it| tokens[it].is_one_of(&["have", "has"])),
                "delivery" => after.first().is_some_and(|it| it.is_word("date")),
                _ => false,
            };
            is_cue && !is_past && token.kind == Kind::Word && !is_of_others(tokens, *at)
        })
        .collect()
}

/// "he is due", "my tax return is due", "Tom's report must be": what somebody else has to do.
fn is_of_others(tokens: &[Token], cue: usize) -> bool {
    const OTHERS: &[&str] = &["i", "i'm", "he", "he's", "she", "she's"];
    const NO_OWNERS: &[&str] = &[
        "it's",
        "that's",
        "there's",
        "here's",
        "what's",
        "let's",
        "today's",
        "tomorrow's",
        "week's",
        "month's",
        "year's",
        "day's",
    ];
    let (start, _) = clause(tokens, cue);
    let subject = &tokens[start..cue];
    let is_pronoun = subject.iter().rev().take(3).any(|it| it.is_one_of(OTHERS));
    let is_owned = subject.iter().rev().take(6).any(|it| {
        it.is_one_of(&["my", "his", "her", "their"])
            || (it.kind == Kind::Word && it.text.ends_with("'s") && !it.is_one_of(NO_OWNERS))
    });
    // "the deadline for Tom is", "for her": not "the deadline for applications".
    let behind = &tokens[cue + 1..];
    let is_for_one = behind.first().is_some_and(|it| it.is_word("for"))
        && behind.get(1).is_some_and(|it| {
            let is_name = it.is_capital && behind.get(2).is_some_and(|it| it.is_word("is"));
            is_name || it.is_one_of(&["him", "her", "them", "me", "us"])
        });
    is_pronoun || is_owned || is_for_one
}

/// Whether a line introduces what is to be done: "Still missing from you:", "To do:".
pub(crate) fn introduces_tasks(tokens: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["from", "you"],
        &["for", "you"],
        &["to", "do"],
        &["your", "tasks"],
        &["next", "steps"],
        &["action", "items"],
    ];
    let is_list = tokens
        .first()
        .is_some_and(|it| it.is_one_of(&["deadlines", "todo", "todos", "tasks"]));
    is_list || PHRASES.iter().any(|it| find(tokens, it, 0).is_some())
}
