//! Deadlines that nobody asks for in so many words.

use cl_extract::mark;

use crate::{Row, check};

const DEADLINES: &[Row] = &[
    (
        "The deadline is 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The deadline for the report is 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "Deadline: 14 November 2026",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "Due date: 14 November 2026",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "Delivery date: 14 November 2026",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The report is due on 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The report is due 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The goods must be delivered by 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The slides need to be ready by 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The slides are needed by 14 November 2026.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "You have until 14 November 2026 to submit the form.",
        &["2026-11-14"],
        &[],
        false,
        "",
    ),
    (
        "The report was due on 14 November 2026.",
        &[],
        &[],
        false,
        mark::NOT_EXTRACTED,
    ),
    (
        "Is the report due on 14 November 2026?",
        &[],
        &[],
        false,
        mark::QUESTIONED,
    ),
    (
        "The report is not due on 14 November 2026.",
        &[],
        &[],
        false,
        mark::NEGATED,
    ),
    (
        "The delay is due to 14 November being a holiday.",
        &[],
        &[],
        false,
        "",
    ),
];

#[test]
fn deadlines() {
    check(DEADLINES);
}
