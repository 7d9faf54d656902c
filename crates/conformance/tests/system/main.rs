//! The whole system: real processes, over real mutual TLS, seen from outside.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod callers;
mod console;
mod crashes;
mod decisions;
mod deployment;
mod exchange;
mod forgery;
mod privacy;
