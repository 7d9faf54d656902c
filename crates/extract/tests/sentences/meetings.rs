//! Days and times at which to meet.

use cl_extract::mark;

use crate::{ValueRow, check_values};

const MEETINGS: &[ValueRow] = &[
    (
        "Let's meet on Thursday at 17h30.",
        &["2026-10-29", "2026-10-29T17:30:00Z"],
        "",
    ),
    (
        "Let's meet on Thursday evening at 8.",
        &["2026-10-29", "2026-10-29T20:00:00Z"],
        "",
    ),
    (
        "Let's meet tonight at 9.",
        &["2026-10-28", "2026-10-28T21:00:00Z"],
        "",
    ),
    (
        "Let's meet on Thursday at 9 at night.",
        &["2026-10-29", "2026-10-29T21:00:00Z"],
        "",
    ),
    (
        "Let's meet on Thursday at 15:00 (CET).",
        &["2026-10-29", "2026-10-29T14:00:00Z"],
        "",
    ),
    (
        "Let's meet on Thursday at 15:00 (London).",
        &["2026-10-29"],
        mark::TIME_ZONE_UNCLEAR,
    ),
    (
        "Let's meet on Thursday at 3 pm New York time.",
        &["2026-10-29"],
        mark::TIME_ZONE_UNCLEAR,
    ),
    (
        "Let's meet on Thursday at 12 a.m.",
        &["2026-10-29"],
        mark::TIME_MIDNIGHT,
    ),
    (
        "Let's meet on Thursday at 0:00.",
        &["2026-10-29"],
        mark::TIME_MIDNIGHT,
    ),
    (
        "Let's meet on Thursday at 24:00.",
        &["2026-10-29"],
        mark::NOT_EXTRACTED,
    ),
    (
        "Let's meet on Thursday at half past five.",
        &["2026-10-29"],
        mark::NOT_EXTRACTED,
    ),
    (
        "Let's meet on Thursday no later than 15:00.",
        &["2026-10-29"],
        mark::NOT_EXTRACTED,
    ),
    (
        "Let's meet on Thursday at 10:00 or 11:00.",
        &["2026-10-29"],
        mark::TIME_INEXACT,
    ),
    ("Let's meet after Thursday.", &[], mark::DATE_VAGUE),
    (
        "Let's meet the week of 9 November 2026.",
        &[],
        mark::DATE_VAGUE,
    ),
    ("The meeting on Friday went well.", &[], mark::DATE_PAST),
    ("Thanks for the meeting on Friday.", &[], ""),
    ("Please cancel the meeting on Friday.", &[], mark::NEGATED),
    ("I'm meeting Tom on Friday.", &[], ""),
    ("Tom's meeting is on Friday.", &[], ""),
];

#[test]
fn meetings() {
    check_values(&["meeting_date", "meeting_starts_at"], MEETINGS);
}
