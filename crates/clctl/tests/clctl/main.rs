//! The program as its users meet it: homes, processes, and answers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod approvers;
mod captured;
mod erased;
mod examined;
mod exchange;
mod explained;
mod exported;
mod forged;
mod impostors;
mod init;
mod logs;
mod policies;
mod requests;
mod running;
mod signed;
mod support;
mod tokens;
mod writer;
