//! The frame of a process, tested from outside over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod callers;
mod drain;
mod peers;
mod pki;
mod process;
mod reload;
mod support;
mod telemetry;
