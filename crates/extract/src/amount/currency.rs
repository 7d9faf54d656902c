//! Signs, codes and names of currencies beside a number.

use crate::token::{Kind, Token};

#[derive(Clone, Copy, Debug)]
pub(super) struct Currency {
    /// Absent: not one of those that are read.
    pub(super) code: Option<&'static str>,
    pub(super) is_shared: bool,
}

impl Currency {
    pub(super) fn is_a_dollar(self) -> bool {
        let is_named = self
            .code
            .is_some_and(|it| ["USD", "AUD", "CAD", "NZD", "HKD", "SGD"].contains(&it));
        is_named && !self.is_shared
    }
}

const fn sure(code: &'static str) -> Currency {
    Currency {
        code: Some(code),
        is_shared: false,
    }
}

const fn shared(code: &'static str) -> Currency {
    Currency {
        code: Some(code),
        is_shared: true,
    }
}

const UNKNOWN: Currency = Currency {
    code: None,
    is_shared: false,
};

/// The codes that are read (ISO 4217).
const CODES: &[&str] = &[
    "EUR", "USD", "GBP", "CHF", "JPY", "AUD", "CAD", "CNY", "CZK", "DKK", "HKD", "HUF", "INR",
    "NOK", "NZD", "PLN", "SEK", "SGD", "ZAR",
];

/// The currency before a number, and how many tokens it takes.
pub(super) fn currency_before(tokens: &[Token], at: usize) -> Option<(Currency, usize)> {
    let token = at.checked_sub(1).map(|it| &tokens[it])?;
    if token.is_sign("$")
        && let Some(country) = at.checked_sub(2).map(|it| &tokens[it])
        && country.kind == Kind::Word
        && token.is_glued
    {
        let code = match country.text.as_str() {
            "us" => "USD",
            "a" | "au" => "AUD",
            "c" | "ca" => "CAD",
            "nz" => "NZD",
            "hk" => "HKD",
            "s" | "sg" => "SGD",
            _ => return Some((UNKNOWN, 2)),
        };
        return Some((sure(code), 2));
    }
    let found = currency(token)?;
    let coded = at.checked_sub(2).and_then(|it| currency(&tokens[it]));
    match coded.filter(|it| found.is_shared && token.is_sign("$") && it.is_a_dollar()) {
        // "AUD $120"
        Some(coded) => Some((coded, 2)),
        None => Some((found, 1)),
    }
}

/// The currency behind a number, and how many tokens it takes.
pub(super) fn currency_after(tokens: &[Token], at: usize) -> Option<(Currency, usize)> {
    let token = tokens.get(at)?;
    let is_usual = |first: &str, second: &str| {
        token.is_word(first)
            && tokens
                .get(at + 1)
                .is_some_and(|it| it.is_word(second) || it.is_word(&second[..second.len() - 1]))
    };
    if is_usual("us", "dollars") {
        return Some((sure("USD"), 2));
    }
    if is_usual("swiss", "francs") {
        return Some((sure("CHF"), 2));
    }
    if token.is_word("pounds") && tokens.get(at + 1).is_some_and(|it| it.is_word("sterling")) {
        return Some((sure("GBP"), 2));
    }
    let next = tokens.get(at + 1);
    // A weight.
    if token.is_word("pounds") && next.is_some_and(|it| it.is_word("of")) {
        return None;
    }
    if token.is_word("dollars")
        && next.is_some_and(|it| it.is_one_of(&["canadian", "australian", "singapore"]))
    {
        return Some((UNKNOWN, 2));
    }
    currency(token).map(|it| (it, 1))
}

fn currency(token: &Token) -> Option<Currency> {
    let found = match (token.kind, token.text.as_str()) {
        (Kind::Sign, "€") => sure("EUR"),
        (Kind::Sign, "£") => sure("GBP"),
        (Kind::Sign, "$") => shared("USD"),
        (Kind::Sign, "¥") => shared("JPY"),
        (Kind::Sign, "\u{fffd}" | "¤" | "₹" | "₽" | "₩" | "₺" | "₪") => UNKNOWN,
        (Kind::Word, "euro" | "euros") => sure("EUR"),
        (Kind::Word, "dollars" | "dollar") => shared("USD"),
        (Kind::Word, "pounds" | "pound") => shared("GBP"),
        (Kind::Word, "yen") => sure("JPY"),
        (Kind::Word, "sfr" | "fr") => UNKNOWN,
        (Kind::Word, "francs" | "kr" | "crowns" | "rupees") => UNKNOWN,
        (Kind::Word, text) => {
            let is_common = ["eur", "usd", "gbp", "chf"].contains(&text);
            let code = CODES.iter().find(|code| code.eq_ignore_ascii_case(text))?;
            return (token.is_upper || is_common).then(|| sure(code));
        }
        (Kind::Number | Kind::Sign, _) => return None,
    };
    Some(found)
}
