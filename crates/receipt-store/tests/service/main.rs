//! The receipt store over real gRPC and mutual TLS.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod callers;
mod concurrency;
mod damage;
mod failpoints;
mod faults;
mod full_disk;
mod groups;
mod holds;
mod intents;
mod killed;
mod lists;
mod log;
mod pin_contract;
mod pins;
mod privacy;
mod process;
mod readers;
mod refusals;
mod requests;
mod retention;
mod rotation;
mod rounds;
mod roundtrip;
mod schedules;
mod searches;
#[path = "../../../kv/tests/rocks/small_disk.rs"]
mod small_disk;
mod supersedes;
mod support;
mod witnesses;
