//! Capture from outside: fixtures, runs against a vault that enforces its contract over mutual TLS,
//! the process, messages of hostile sizes, bounded memory, and the committed fuzz corpus.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod cases;
mod corpus;
mod fixtures;
mod hostile;
mod memory;
mod mutated;
mod process;
mod runs;
mod support;
mod vault;
mod watched;
