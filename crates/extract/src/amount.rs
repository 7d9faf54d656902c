//! Amounts of money in a sentence, and whether they are to be paid.

mod currency;
mod objection;
mod payment;
mod unread;

use self::currency::{currency_after, currency_before};
use self::objection::is_negative;
pub(crate) use self::objection::objection;
pub(crate) use self::payment::{is_due, is_missing, payments};
pub(crate) use self::unread::has_unread;
use crate::mark;
use crate::number::{self, Decimal, Reading};
use crate::token::{Kind, Token};

/// An amount and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Amount {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The amount in the form of the vocabulary, or why it cannot be read.
    pub(crate) decimal: Result<String, &'static str>,
    pub(crate) currency: Option<&'static str>,
    pub(crate) confidence: f64,
    pub(crate) mark: Option<&'static str>,
}

/// Which decimal sign the numbers of a message show: those of one currency, else all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Styles {
    shown: Vec<(Option<&'static str>, Decimal)>,
}

/// Numbers beyond these show nothing new.
const MAX_SHOWN: usize = 64;

impl Styles {
    pub(crate) fn of<'a>(sentences: impl Iterator<Item = &'a [Token]>) -> Self {
        let shown = sentences.flat_map(|tokens| {
            let numbers = tokens
                .iter()
                .enumerate()
                .filter(|(_, it)| it.kind == Kind::Number);
            numbers.filter_map(move |(at, number)| {
                let style = number::shown_style(&number.text)?;
                let currency =
                    currency_before(tokens, at).or_else(|| currency_after(tokens, at + 1));
                Some((currency.and_then(|(currency, _)| currency.code), style))
            })
        });
        Self {
            shown: shown.take(MAX_SHOWN).collect(),
        }
    }

    fn of_currency(&self, code: &'static str) -> Option<Decimal> {
        let own = self
            .shown
            .iter()
            .filter(|(currency, _)| *currency == Some(code));
        let own: Vec<Decimal> = own.map(|(_, style)| *style).collect();
        let all = || self.shown.iter().map(|(_, style)| *style).collect();
        let styles: Vec<Decimal> = if own.is_empty() { all() } else { own };
        let first = styles.first().copied()?;
        styles.iter().all(|style| *style == first).then_some(first)
    }
}

/// All amounts with a sign of a currency, and bare decimals.
pub(crate) fn amounts(tokens: &[Token], styles: &Styles) -> Vec<Amount> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match (tokens[at].kind == Kind::Number)
            .then(|| amount_at(tokens, at, styles))
            .flatten()
        {
            Some(amount) => {
                at = amount.end;
                found.push(amount);
            }
            None => at += 1,
        }
    }
    found
}

fn amount_at(tokens: &[Token], at: usize, styles: &Styles) -> Option<Amount> {
    let (text, mut end) = joined(tokens, at);
    let has_groups = end > at + 1;
    let scale = scale(tokens, end);
    end += usize::from(scale.is_some());
    let before = currency_before(tokens, at);
    // "No. 17 EUR 120.00": between two numbers, a code belongs to the second one.
    let after = currency_after(tokens, end).filter(|(_, length)| {
        let next = tokens.get(end + length);
        !(before.is_none() && next.is_some_and(|it| it.kind == Kind::Number))
    });
    if before.is_none() && is_negative(tokens, at) {
        let start = at - 1;
        let is_money = after.is_some() || currency_before(tokens, start).is_some();
        return is_money.then(|| unread(start, end, mark::AMOUNT_NEGATIVE));
    }
    let start = at - before.map_or(0, |(_, length)| length);
    let is_money = before.is_some() || after.is_some();
    let is_torn = before.is_none() && is_torn_off(tokens, at);
    if is_money && (is_torn || goes_on(tokens, end, before.is_some())) {
        return Some(unread(start, end, mark::AMOUNT_UNREADABLE));
    }
    // "invoice 12 345.00 EUR": the first number may count something else.
    if has_groups && before.is_none() && after.is_some() && is_numbered(tokens, at) {
        return Some(unread(start, end, mark::AMOUNT_SEPARATOR));
    }
    let end = end + after.map_or(0, |(_, length)| length);
    let currency = match (before, after) {
        // "AUD $120", "$120 AUD": the code says which dollar it is.
        (Some((sign, _)), Some((named, _))) if sign.is_shared && named.is_a_dollar() => named,
        (Some((left, _)), Some((right, _))) if left.code != right.code => {
            return Some(unread(start, end, mark::CURRENCY_UNKNOWN));
        }
        (Some((currency, _)), _) | (None, Some((currency, _))) => currency,
        (None, None) => {
            let is_decimal = tokens[at]
                .text
                .rsplit_once(['.', ','])
                .is_some_and(|(_, it)| it.len() == 2);
            let is_plain = !tokens[at].text.contains(['/', ':', '-', '–'])
                && tokens[at].text.matches(['.', ',']).count() == 1;
            return (is_decimal && is_plain).then(|| unread(start, end, mark::CURRENCY_UNKNOWN));
        }
    };
    let Some(code) = currency.code else {
        return Some(unread(start, end, mark::CURRENCY_UNKNOWN));
    };
    let (decimal, number_mark) = match number::read(&text, styles.of_currency(code)) {
        Reading::Exact(whole, fraction) => (scaled(&whole, &fraction, scale), None),
        Reading::Assumed(whole) if scale.is_none() => {
            (Some(whole), Some(mark::AMOUNT_SEPARATOR_ASSUMED))
        }
        Reading::Assumed(_) | Reading::Ambiguous => {
            return Some(unread(start, end, mark::AMOUNT_SEPARATOR));
        }
        Reading::Unreadable => return Some(unread(start, end, mark::AMOUNT_UNREADABLE)),
    };
    let shared = currency.is_shared.then_some(mark::CURRENCY_SHARED_SIGN);
    Some(Amount {
        start,
        end,
        decimal: decimal.ok_or(mark::AMOUNT_UNREADABLE),
        currency: Some(code),
        confidence: if currency.is_shared { 0.6 } else { 0.85 },
        mark: number_mark.or(shared),
    })
}

/// Whether the digits are the end of something else: "1e3", "10^3", "x500".
fn is_torn_off(tokens: &[Token], at: usize) -> bool {
    const OPENING: &[&str] = &[
        "(", "[", "\"", "'", "“", "‘", "„", "«", ":", "=", "-", "−", "–", "—", "/", ".", ",", "~",
        "+", "|", ";", ">", "*", "_", "#", "≈",
    ];
    let before = at.checked_sub(1).map(|it| &tokens[it]);
    before.is_some_and(|it| {
        let is_opening = it.kind == Kind::Sign && OPENING.contains(&it.text.as_str());
        tokens[at].is_glued && !is_opening
    })
}

/// Whether what stands behind the digits makes another number of them: "1 200:50", "1٫5", "2bn".
fn goes_on(tokens: &[Token], end: usize, is_behind_currency: bool) -> bool {
    const SCALES: &[&str] = &[
        "bn", "b", "tn", "mio", "mrd", "mln", "billion", "trillion", "lakh", "lakhs", "crore",
        "crores", "hundred", "dozen",
    ];
    const PLAIN: &[&str] = &[
        "-", "–", "/", "(", ")", "€", "$", "£", "¥", ",", ".", ";", ":", "!", "?", "\"", "'", "*",
        "+", "]", "%",
    ];
    let Some(next) = tokens.get(end) else {
        return false;
    };
    let is_split = is_behind_currency
        && next.kind == Kind::Number
        && next.text.contains(':')
        && tokens[end - 1].text.len() <= 3;
    // "200-ish"
    let is_about = next.is_sign("-")
        && next.is_glued
        && tokens
            .get(end + 1)
            .is_some_and(|it| it.is_glued && it.is_one_of(&["ish", "odd", "something", "plus"]));
    // "EUR 5 00", "EUR 5 00 by"
    let is_torn = is_behind_currency
        && next.kind == Kind::Number
        && !next.is_glued
        && (2..=3).contains(&next.text.len())
        && (next.text.bytes().all(|it| it == b'0')
            || !tokens.get(end + 1).is_some_and(|it| it.kind == Kind::Word));
    let is_strange = next.kind == Kind::Sign
        && next.is_glued
        && !PLAIN.contains(&next.text.as_str())
        && tokens
            .get(end + 1)
            .is_some_and(|it| it.is_glued && it.kind == Kind::Number || !it.text.is_ascii());
    is_split || is_about || is_torn || is_strange || next.is_one_of(SCALES)
}

/// Whether a noun stands before the number that may be its own: "invoice 12", "item no. 1".
fn is_numbered(tokens: &[Token], at: usize) -> bool {
    const OF_AMOUNTS: &[&str] = &[
        "pay",
        "of",
        "is",
        "are",
        "owe",
        "owes",
        "transfer",
        "remit",
        "wire",
        "settle",
        "total",
        "amount",
        "balance",
        "sum",
        "due",
        "the",
        "payable",
        "outstanding",
        "remaining",
        "be",
        "to",
        "for",
        "and",
        "by",
    ];
    let before = at.checked_sub(1).map(|it| &tokens[it]);
    before.is_some_and(|it| {
        let is_stop = it.is_sign(".") || it.is_sign("#");
        is_stop || (it.kind == Kind::Word && !it.is_one_of(OF_AMOUNTS))
    })
}

fn unread(start: usize, end: usize, mark: &'static str) -> Amount {
    Amount {
        start,
        end,
        decimal: Err(mark),
        currency: None,
        confidence: 0.0,
        mark: None,
    }
}

/// A number with the groups that spaces set apart: "1 234 567,50".
fn joined(tokens: &[Token], at: usize) -> (String, usize) {
    let mut text = tokens[at].text.clone();
    let mut end = at + 1;
    if text.len() > 3 {
        return (text, end);
    }
    while let Some(next) = tokens.get(end) {
        let digits = next.text.split(['.', ',']).next().unwrap_or_default();
        let is_group = next.kind == Kind::Number && !next.is_glued && digits.len() == 3;
        if !is_group || end - at > 4 {
            break;
        }
        text.push('\'');
        text.push_str(&next.text);
        end += 1;
        if next.text.len() > 3 {
            break;
        }
    }
    (text, end)
}

/// Zeros that a word behind the number adds.
fn scale(tokens: &[Token], at: usize) -> Option<usize> {
    let token = tokens.get(at)?;
    match token.text.as_str() {
        "k" if token.is_glued => Some(3),
        "m" | "mn" if token.is_glued => Some(6),
        "thousand" => Some(3),
        "million" => Some(6),
        _ => None,
    }
}

/// Moves the decimal point, and leaves out a fraction of zeros only if there was none.
fn scaled(whole: &str, fraction: &str, scale: Option<usize>) -> Option<String> {
    let zeros = scale.unwrap_or(0);
    if fraction.len() > zeros {
        let (moved, rest) = fraction.split_at(zeros);
        return Some(format!("{}.{rest}", trimmed(&format!("{whole}{moved}"))));
    }
    let digits = format!("{whole}{fraction:0<zeros$}");
    let digits = trimmed(&digits);
    (digits.len() <= 15).then(|| digits.to_owned())
}

fn trimmed(digits: &str) -> &str {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0" } else { digits }
}
