//! Midnight beside a day, which may be either end of it.

use super::{Half, NEAR, digits, half_of_day, joins_a_time};
use crate::token::{Kind, Token};

/// What midnight beside a day, at which something is wanted, leaves of that day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Midnight {
    /// "midnight on Friday": mostly the end of it.
    Named,
    /// "0:00 on Friday", "12 am": its beginning, if the author means what they write.
    InDigits,
}

/// The midnight that stands right beside the day from `start` to `end`.
pub(crate) fn midnight_beside(tokens: &[Token], start: usize, end: usize) -> Option<Midnight> {
    let mut first = start;
    while first > 0 && start - first < NEAR + 3 && is_of_a_time(tokens, first - 1) {
        first -= 1;
    }
    let mut last = end;
    while last < end + NEAR && last < tokens.len() && is_of_a_time(tokens, last) {
        last += 1;
    }
    let beside = (first..start).chain(end..last);
    beside.clone().find_map(|at| midnight_at(tokens, at))
}

fn is_of_a_time(tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    joins_a_time(token)
        || token.kind == Kind::Number
        || token.is_one_of(&["am", "a", "m", "midnight"])
        || token.is_sign(".")
}

fn midnight_at(tokens: &[Token], at: usize) -> Option<Midnight> {
    let token = &tokens[at];
    if token.is_word("midnight") {
        return Some(Midnight::Named);
    }
    let (hour, minute, _) = digits(token)?;
    let half = half_of_day(tokens, at + 1).0;
    (minute == 0 && is_midnight(token, hour, half)).then_some(Midnight::InDigits)
}

/// "12 am", "0:00": at one end of the day or at the other, as people use it.
pub(super) fn is_midnight(token: &Token, hour: i64, half: Option<Half>) -> bool {
    let is_zero = hour == 0 && token.text.contains(':');
    is_zero || (hour == 12 && half == Some(Half::Morning))
}
