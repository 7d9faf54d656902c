//! Days by which the author commits to something.

use cl_extract::mark;

use crate::{ValueRow, check_values};

const COMMITMENTS: &[ValueRow] = &[
    ("I will send you the plan by Friday.", &["2026-10-30"], ""),
    (
        "I will send the pending invoices by Friday.",
        &["2026-10-30"],
        "",
    ),
    (
        "I can tell you that we'll ship by Friday.",
        &["2026-10-30"],
        "",
    ),
    (
        "Tell me your size and I will send it by Friday.",
        &["2026-10-30"],
        "",
    ),
    ("You will hear from us by Friday.", &["2026-10-30"], ""),
    (
        "You will hear from Tom by Friday.",
        &[],
        mark::NOT_EXTRACTED,
    ),
    (
        "The supplier will deliver the parts to us by Friday.",
        &[],
        mark::NOT_EXTRACTED,
    ),
    (
        "I told Anna that I will send it by Friday.",
        &[],
        mark::REPORTED,
    ),
    (
        "Please tell Tom that I will deliver by Friday.",
        &[],
        mark::REPORTED,
    ),
    (
        "According to Tom, we will ship by Friday.",
        &[],
        mark::REPORTED,
    ),
    (
        "Subject to approval, we will ship by Friday.",
        &[],
        mark::CONDITIONAL,
    ),
    (
        "Pending approval, we will ship by Friday.",
        &[],
        mark::CONDITIONAL,
    ),
    (
        "We will ship by Friday, weather permitting.",
        &[],
        mark::CONDITIONAL,
    ),
    (
        "We'll ship by Friday depending on the weather.",
        &[],
        mark::CONDITIONAL,
    ),
    ("With luck I will finish by Friday.", &[], mark::HEDGED),
    ("Fingers crossed, I'll finish by Friday.", &[], mark::HEDGED),
    ("I doubt that I will finish by Friday.", &[], mark::HEDGED),
    ("I think I will finish by Friday.", &[], mark::HEDGED),
    ("I'll do my best to finish by Friday.", &[], mark::HEDGED),
    ("Pretend that I will finish by Friday.", &[], mark::HEDGED),
    ("As if I will finish by Friday.", &[], mark::HEDGED),
    ("I will hardly finish by Friday.", &[], mark::HEDGED),
    (
        "I'll have it done by 0:00 on 6 November 2026.",
        &[],
        mark::TIME_MIDNIGHT,
    ),
];

#[test]
fn commitments() {
    check_values(&["promised_delivery_date"], COMMITMENTS);
}
