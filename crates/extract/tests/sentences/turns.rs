//! Turns of phrase around days, duties and sums that say more, or less, than they seem to.

use cl_extract::mark;

use crate::{Row, ValueRow, check, check_values};

const DAY: &[&str] = &["2026-11-06"];

const TURNS: &[Row] = &[
    (
        "Please send the form by Friday close of business.",
        &["2026-10-30"],
        &[],
        true,
        "",
    ),
    (
        "Please send the form by Thursday, EOD.",
        &["2026-10-29"],
        &[],
        true,
        "",
    ),
    (
        "Please send the form by Friday, i.e. 6 November.",
        DAY,
        &[],
        true,
        "",
    ),
    (
        "Please send the plan by the end of 2026.",
        &["2026-12-31"],
        &[],
        true,
        "",
    ),
    (
        "Please pay 300 EUR without delay by 6 November 2026.",
        DAY,
        &["300 EUR"],
        true,
        "",
    ),
    (
        "You will have to send the keys by 6 November 2026.",
        DAY,
        &[],
        true,
        "",
    ),
    (
        "You'll have to send the keys by 6 November 2026.",
        DAY,
        &[],
        true,
        "",
    ),
    (
        "I won't forget to send it by 6 November 2026.",
        &[],
        &[],
        false,
        "",
    ),
    (
        "Please send it by 6 November 2026 or later.",
        &[],
        &[],
        true,
        mark::DATE_VAGUE,
    ),
    (
        "Please send it by 6 November 2026 plus two days.",
        &[],
        &[],
        true,
        mark::DATE_VAGUE,
    ),
    (
        "Please send it tomorrow week.",
        &[],
        &[],
        true,
        mark::DATE_VAGUE,
    ),
    ("You owed 300 EUR last year.", &[], &[], false, ""),
    (
        "The deposit is due before you move in on 6 November 2026.",
        &[],
        &[],
        false,
        "",
    ),
];

const PROMISES: &[ValueRow] = &[
    ("I will, of course, send it by 6 November 2026.", DAY, ""),
    ("I will get the report to you by 6 November 2026.", DAY, ""),
    (
        "I will ask Tom to send it by 6 November 2026.",
        &[],
        mark::NOT_EXTRACTED,
    ),
    ("I will be travelling by 6 November 2026.", &[], ""),
];

#[test]
fn turns_of_phrase() {
    check(TURNS);
}

#[test]
fn promises_of_deeds_and_of_no_deeds() {
    check_values(&["promised_delivery_date"], PROMISES);
}
