//! Whether a sentence says that an amount is to be paid.

use super::Amount;
use crate::token::{Kind, Token, find, stands};

/// Whether the sentence itself, or the line that introduces it, says that this amount is to be paid.
pub(crate) fn is_due(
    tokens: &[Token],
    amount: &Amount,
    all: &[Amount],
    is_introduced: bool,
) -> bool {
    if is_introduced
        || payment_follows(tokens, amount.end)
        || is_missing(tokens)
        || (all.len() == 1 && is_to_be_paid(&tokens[amount.end..]))
    {
        return true;
    }
    let cues = payments(tokens);
    let Some(cue) = cues.iter().rev().find(|at| **at < amount.start) else {
        return false;
    };
    let is_free = !all.iter().any(|other| {
        let is_between = other.start > *cue && other.end <= amount.start;
        let is_listed = tokens
            .get(amount.start.wrapping_sub(1))
            .is_some_and(|it| it.is_word("and"));
        is_between && !is_listed
    });
    is_free && amount.start - cue <= 16
}

/// "240 EUR .. needs to be paid", "12 EUR, payable".
fn is_to_be_paid(after: &[Token]) -> bool {
    let near = &after[..after.len().min(12)];
    find(near, &["be", "paid"], 0).is_some() || near.iter().any(|it| it.is_word("payable"))
}

/// "we have not yet received your payment of": what is missing is due.
pub(crate) fn is_missing(tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| {
        let is_not = tokens[at].is_word("not") || tokens[at].text.ends_with("n't");
        let near = tokens[at + 1..].iter().take(3);
        is_not
            && tokens[..at]
                .iter()
                .any(|it| it.is_one_of(&["we", "i", "payment", "is", "was"]))
            && near
                .clone()
                .any(|it| it.is_one_of(&["received", "arrived", "seen", "got"]))
    })
}

/// Words that say that something is to be paid.
pub(crate) fn payments(tokens: &[Token]) -> Vec<usize> {
    (0..tokens.len())
        .filter(|at| {
            let token = &tokens[*at];
            let after = &tokens[at + 1..];
            let before = at.checked_sub(1).map(|it| &tokens[it]);
            token.kind == Kind::Word
                && match token.text.as_str() {
                    "pay" if before.is_some_and(is_determiner) => false,
                    "owed" if before.is_some_and(|it| it.is_one_of(&["you", "we", "i"])) => false,
                    "pay" | "remit" | "settle" | "payable" | "owe" | "owes" | "owed"
                    | "outstanding" | "overdue" | "unpaid" | "dues" => true,
                    "due" => !after.first().is_some_and(|it| it.is_word("to")),
                    "transfer" | "wire" => {
                        before.is_some_and(|it| it.is_one_of(&["please", "you", "to"]))
                    }
                    "paid" => before.is_some_and(|it| it.is_word("be")),
                    "payment" => stands(after, &["of"]) || stands(after, &["due"]),
                    "open" => {
                        before.is_some_and(|it| it.is_one_of(&["are", "is", "still", "remain"]))
                            || after.first().is_some_and(|it| {
                                it.is_one_of(&["items", "invoices", "amount", "amounts", "balance"])
                            })
                    }
                    "total" => before.is_some_and(|it| it.is_one_of(&["invoice", "grand"])),
                    _ => false,
                }
        })
        .collect()
}

fn is_determiner(token: &Token) -> bool {
    token.is_one_of(&[
        "the", "a", "my", "your", "our", "his", "her", "their", "base", "net",
    ])
}

/// "EUR 450 is due", "EUR 450 outstanding".
fn payment_follows(tokens: &[Token], end: usize) -> bool {
    let skipped = tokens[end..]
        .iter()
        .take(4)
        .take_while(|it| {
            it.is_sign(",")
                || it.is_one_of(&[
                    "is", "are", "remains", "remain", "still", "now", "past", "long",
                ])
        })
        .count();
    let next = &tokens[end + skipped..];
    let is_due = next.first().is_some_and(|it| {
        it.is_one_of(&["due", "outstanding", "payable", "overdue", "unpaid", "owed"])
            || (it.is_word("open") && skipped > 0)
    });
    is_due && !stands(next, &["due", "to"])
}
