//! The console from outside: real HTTPS, a real browser where one is installed, and services behind it
//! that keep their contracts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod answers;
mod browser;
mod client;
mod engine;
mod evidence;
mod headers;
mod items;
mod people;
mod posts;
mod privacy;
mod process;
mod receipt_store;
mod stale;
mod world;
