//! The bundle issuer, tested from outside: real gRPC over mutual TLS, a semantic proxy and a receipt
//! store that enforce their contracts, and a clock that moves when told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod callers;
mod consume;
mod crash;
mod exchange;
mod fakes;
mod issue;
mod kept;
mod privacy;
mod process;
mod redeem;
mod revoke;
mod support;
mod time;
mod withheld;
