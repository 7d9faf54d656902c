//! Why an amount that is named beside a payment is still not owed as such.

use super::currency::currency_before;
use super::{Amount, is_missing};
use crate::cue;
use crate::mark;
use crate::token::{Kind, Token, find, stands};

/// Why an amount that is named beside a payment is still not owed as such.
pub(crate) fn objection(tokens: &[Token], amount: &Amount) -> Option<&'static str> {
    let before = &tokens[..amount.start];
    let after = &tokens[amount.end..];
    if is_negative(tokens, amount.start) {
        return Some(mark::AMOUNT_NEGATIVE);
    }
    if is_rate(after) {
        return Some(mark::AMOUNT_RATE);
    }
    let is_read = amount.currency.is_some();
    let is_part = is_read && (is_multiple(before) || is_changed_behind(after));
    if is_part || is_inexact(before, after) {
        return Some(mark::AMOUNT_INEXACT);
    }
    if is_threatened(before) || is_paid_by_others(before) || is_paid_already(tokens, before) {
        return Some(mark::AMOUNT_NOT_DUE);
    }
    let is_settled = tokens.iter().enumerate().any(|(at, token)| {
        let is_to_be = at > 0 && tokens[at - 1].is_word("be");
        token.is_one_of(&[
            "refund",
            "refunded",
            "discount",
            "save",
            "saved",
            "saving",
            "savings",
            "budget",
            "estimate",
            "estimated",
            "quote",
            "quoted",
            "credit",
            "credited",
            "voucher",
            "cashback",
            "worth",
            "previously",
            "deposited",
            "waived",
            "reversed",
            "win",
            "won",
            "prize",
            "limit",
            "salary",
            "reimburse",
            "reimbursed",
            "received",
        ]) || (token.is_one_of(&["paid", "settled"]) && !is_to_be)
    }) && !is_missing(tokens);
    let promised = cue::promises(tokens, 0, amount.start);
    let was_due = [
        &["was", "due"][..],
        &["were", "due"],
        &["due", "was"],
        &["due", "would"],
        &["due", "were"],
    ]
    .iter()
    .any(|it| find(tokens, it, 0).is_some());
    (is_settled || promised || was_due).then_some(mark::AMOUNT_NOT_DUE)
}

/// "to avoid a fee of 15 EUR", "otherwise a surcharge of 10 EUR": due only if something else is not
/// done.
fn is_threatened(before: &[Token]) -> bool {
    let clause = before
        .iter()
        .rposition(|it| it.is_sign(",") || it.is_sign(";"));
    let near = &before[clause.map_or(0, |at| at + 1)..];
    near.iter()
        .any(|it| it.is_one_of(&["avoid", "avoiding", "otherwise", "else", "failing"]))
        || near
            .iter()
            .position(|it| it.is_word("or"))
            .is_some_and(|at| {
                near[at..].iter().any(|it| {
                    it.is_one_of(&["fee", "charge", "surcharge", "penalty", "fine", "interest"])
                })
            })
}

/// "thank you for your payment of", "we processed the payment of", "is to be paid to you".
fn is_paid_already(tokens: &[Token], before: &[Token]) -> bool {
    const DONE: &[&str] = &[
        "thank",
        "thanks",
        "for",
        "approved",
        "approve",
        "cancel",
        "stop",
        "authorise",
        "authorize",
        "made",
        "processed",
        "sent",
        "confirm",
        "confirmed",
        "initiated",
        "booked",
        "acknowledge",
        "authorised",
        "authorized",
        "reached",
        "got",
    ];
    let payment = before.iter().rposition(|it| it.is_word("payment"));
    let is_done = payment.is_some_and(|at| {
        let lead = &before[at.saturating_sub(5)..at];
        lead.iter().any(|it| it.is_one_of(DONE))
    });
    let is_to_owner = [
        &["paid", "to", "you"][..],
        &["payable", "to", "you"],
        &["pay", "you"],
    ]
    .iter()
    .any(|it| find(tokens, it, 0).is_some());
    (is_done && !is_missing(tokens)) || is_to_owner
}

/// "I have to pay", "they owe", "you can pay": whoever the payment is by, it is not the owner's duty.
fn is_paid_by_others(before: &[Token]) -> bool {
    const VERBS: &[&str] = &["pay", "owe", "owes", "pays", "settle", "transfer", "wire"];
    const OTHERS: &[&str] = &["i", "he", "she", "they", "we", "us", "it"];
    let Some(verb) = before.iter().rposition(|it| it.is_one_of(VERBS)) else {
        return false;
    };
    let lead = &before[verb.saturating_sub(5)..verb];
    let subject = lead
        .iter()
        .rposition(|it| it.is_one_of(OTHERS) || it.is_one_of(&["you", "please", "kindly"]));
    let is_option = lead[subject.unwrap_or(0)..]
        .iter()
        .any(|it| it.is_one_of(&["can", "could", "may", "would", "might"]));
    match subject.map(|at| &lead[at]) {
        Some(subject) if subject.is_one_of(OTHERS) => {
            // "We need you to pay" is the owner's.
            !lead.iter().any(|it| it.is_word("you"))
        }
        Some(subject) => subject.is_word("you") && is_option,
        // "Bob has to pay".
        None if lead.len() >= 2
            && lead[lead.len() - 1].is_word("to")
            && lead[lead.len() - 2].is_one_of(&["has", "had"]) =>
        {
            true
        }
        // "Paul owes me".
        None => before[verb].is_one_of(&["owes", "pays"]),
    }
}

pub(super) fn is_negative(tokens: &[Token], start: usize) -> bool {
    let sign = start.checked_sub(1).and_then(|at| tokens.get(at));
    let is_glued = tokens.get(start).is_some_and(|it| it.is_glued);
    sign.is_some_and(|it| (it.is_sign("-") || it.is_sign("−")) && !it.is_glued) && is_glued
}

fn is_rate(after: &[Token]) -> bool {
    const UNITS: &[&str] = &[
        "month", "hour", "day", "unit", "year", "person", "week", "head", "piece", "night", "seat",
        "user",
    ];
    let Some(first) = after.first() else {
        return false;
    };
    let of_unit = first.is_one_of(&["a", "an", "every"])
        && after.get(1).is_some_and(|it| it.is_one_of(UNITS));
    let for_each = first.is_word("for")
        && after
            .get(1)
            .is_some_and(|it| it.is_one_of(&["each", "every", "one"]));
    of_unit
        || for_each
        || first.is_one_of(&[
            "per",
            "each",
            "hourly",
            "monthly",
            "daily",
            "weekly",
            "yearly",
            "annually",
            "quarterly",
            "pp",
            "apiece",
            "p",
        ])
        || (first.is_sign("/") && after.get(1).is_some_and(|it| it.kind == Kind::Word))
}

fn is_inexact(before: &[Token], after: &[Token]) -> bool {
    let about = before.iter().rev().take(2).any(|it| {
        it.is_one_of(&[
            "about",
            "approx",
            "approximately",
            "around",
            "roughly",
            "over",
            "under",
            "between",
            "circa",
            "ca",
            "nearly",
            "almost",
            "from",
            "minimum",
            "maximum",
            "least",
            "than",
            "most",
        ]) || it.is_sign("~")
    });
    let is_part = is_part_of(before);
    let is_between = before.iter().rev().take(5).any(|it| it.is_word("between"));
    let up_to = before.len() >= 2 && stands(&before[before.len() - 2..], &["up", "to"]);
    let or_so = stands(after, &["or", "so"])
        || stands(after, &["or", "more"])
        || stands(after, &["or", "less"]);
    let is_range = after
        .first()
        .is_some_and(|it| it.is_word("to") || it.is_sign("-") || it.is_sign("–"))
        && after
            .iter()
            .skip(1)
            .take(2)
            .any(|it| it.kind == Kind::Number);
    about || is_between || is_part || up_to || or_so || is_range
}

/// "half of the", "20 % of", "the remaining 250 of": only a part of the figure is due.
fn is_part_of(before: &[Token]) -> bool {
    let skipped = before
        .iter()
        .rev()
        .take_while(|it| it.is_one_of(&["the", "our", "your", "that", "those"]))
        .count();
    let Some((of, lead)) = before[..before.len() - skipped].split_last() else {
        return false;
    };
    let Some((part, earlier)) = lead.split_last().filter(|_| of.is_word("of")) else {
        return false;
    };
    let is_named = part.is_sign("%")
        || part.is_one_of(&[
            "half", "third", "thirds", "quarter", "quarters", "percent", "part", "share",
            "fraction", "most", "out",
        ]);
    // "invoice 12 of EUR 500" has a number of its own.
    let is_counted = is_figure(part)
        && earlier.last().is_none_or(|it| {
            it.is_one_of(&[
                "pay",
                "remaining",
                "first",
                "last",
                "second",
                "the",
                "other",
                "another",
                "only",
                "transfer",
                "remit",
                "settle",
                "just",
            ])
        });
    is_named || is_counted
}

/// A number, also in signs of its own: "½", "５".
fn is_figure(token: &Token) -> bool {
    token.kind == Kind::Number
        || (token.kind == Kind::Sign && token.text.chars().all(char::is_numeric))
}

/// "two invoices of", "3 x", "twice", "100-£150": the figure is not the whole of what is due.
fn is_multiple(before: &[Token]) -> bool {
    const PARTS: &[&str] = &[
        "invoices",
        "instalments",
        "installments",
        "payments",
        "rates",
        "parts",
        "vouchers",
        "tranches",
    ];
    let last = before.iter().rev().find(|it| !it.is_word("the"));
    let is_factor = last.is_some_and(|it| {
        it.is_one_of(&[
            "x", "times", "twice", "double", "triple", "thrice", "less", "plus",
        ]) || it.is_sign("×")
            || it.is_sign("*")
            || (it.kind == Kind::Sign && is_figure(it))
    });
    let count = before.len();
    let of_parts =
        count >= 2 && before[count - 1].is_word("of") && before[count - 2].is_one_of(PARTS);
    let in_range = count >= 2
        && before[count - 2].kind == Kind::Number
        && (before[count - 1].is_sign("-")
            || before[count - 1].is_sign("–")
            || before[count - 1].is_sign("/")
            || before[count - 1].is_one_of(&["or", "to"])
            || (before[count - 1].is_word("and") && currency_before(before, count - 2).is_none()));
    is_factor || of_parts || in_range
}

/// "plus VAT", "less EUR 50", "or USD 130": what follows changes the figure.
fn is_changed_behind(after: &[Token]) -> bool {
    let skipped = usize::from(
        after.first().is_some_and(|it| it.is_sign(","))
            && after
                .get(1)
                .is_some_and(|it| it.is_one_of(&["plus", "less", "minus"])),
    );
    let after = &after[skipped..];
    let Some(first) = after.first() else {
        return false;
    };
    let is_deducted =
        first.is_word("after") && after.get(1).is_some_and(|it| it.text.starts_with("deduct"));
    let adds = first.is_one_of(&[
        "plus",
        "less",
        "minus",
        "net",
        "extra",
        "more",
        "pcm",
        "excl",
        "excluding",
        "exclusive",
        "times",
        "x",
        "twice",
        "thrice",
    ]) || ["+", "×", "*"].iter().any(|it| first.is_sign(it));
    let is_repeated = after.get(1).is_some_and(|it| it.is_word("times"));
    let adds_cents = first.is_word("and")
        && after.get(1).is_some_and(|it| it.kind == Kind::Number)
        && after
            .get(2)
            .is_some_and(|it| it.is_one_of(&["cents", "cent", "pence", "p"]));
    let is_choice = (first.is_word("or") || first.is_sign("/"))
        && after
            .iter()
            .skip(1)
            .take(2)
            .any(|it| it.kind == Kind::Number);
    adds || is_deducted || is_repeated || adds_cents || is_choice
}
