//! Money that is named in a form that is not read.

use super::currency::currency_after;
use super::{Amount, payments};
use crate::token::{Kind, Token};

/// Whether money is named beside a payment in some form that is not read: "five hundred euros",
/// "500,- EUR", "20 quid", "Total due: 500".
pub(crate) fn has_unread(tokens: &[Token], all: &[Amount], is_day: impl Fn(usize) -> bool) -> bool {
    let cues = payments(tokens);
    let is_read = |at: usize| all.iter().any(|it| (it.start..it.end).contains(&at)) || is_day(at);
    let is_figure = |at: usize| tokens.get(at).is_some_and(counts) && !is_read(at);
    let is_money = (0..tokens.len()).any(|at| {
        let is_named = names_money(tokens, at) && !is_read(at);
        is_named && (at.saturating_sub(4)..at + 4).any(is_figure)
    });
    // "pay 500", "due: 500", not "pay 3 invoices".
    let is_bare = cues.iter().any(|cue| {
        let skipped = tokens[cue + 1..]
            .iter()
            .take(3)
            .take_while(|it| it.is_sign(":") || it.is_one_of(&["of", "is", "the"]))
            .count();
        let at = cue + 1 + skipped;
        let is_end = tokens.get(at + 1).is_none_or(|it| {
            it.kind == Kind::Sign
                || it.is_one_of(&["by", "on", "until", "before", "please", "today"])
        });
        is_figure(at) && is_end
    });
    !cues.is_empty() && (is_money || is_bare)
}

/// A figure, or a word that counts.
fn counts(token: &Token) -> bool {
    let is_sign = token.kind == Kind::Sign && token.text.chars().all(char::is_numeric);
    is_sign
        || token.kind == Kind::Number
        || token.is_one_of(&[
            "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve",
            "fifteen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty",
            "ninety", "hundred", "thousand", "million", "dozen",
        ])
}

/// A currency, or a word by which people mean one.
fn names_money(tokens: &[Token], at: usize) -> bool {
    let is_beside_digits = tokens[at].is_glued && at > 0 && tokens[at - 1].kind == Kind::Number;
    currency_after(tokens, at).is_some()
        || tokens[at].is_one_of(&[
            "bucks", "quid", "grand", "cents", "pence", "btc", "eth", "usdt", "rs", "inr", "chf",
            "aed", "brl", "mxn", "krw", "thb", "ils",
        ])
        || (tokens[at].is_word("p") && is_beside_digits)
}
