//! Policies in Cedar, from outside: what they grant, what is refused, and what never happens.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod approvals;
mod corpus;
mod delegation;
mod demands;
mod foreign;
mod inputs;
mod monotone;
mod refused;
mod replays;
mod slices;
mod support;
mod translation;
