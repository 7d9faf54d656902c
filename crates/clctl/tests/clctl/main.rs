//! The program as its users meet it: homes, processes, and answers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod exchange;
mod impostors;
mod init;
mod policies;
mod requests;
mod running;
mod support;
mod tokens;
