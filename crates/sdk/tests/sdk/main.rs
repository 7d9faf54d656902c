//! The library against a gateway over TLS.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod deployment;
mod gateway;
mod opening;
mod using;
