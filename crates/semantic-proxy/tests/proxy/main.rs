//! The semantic proxy, tested from outside: real gRPC over mutual TLS, a vault and a receipt store
//! that enforce their contracts, and a clock that moves when told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod callers;
#[path = "../../../bundle-issuer/tests/issuer/exchange.rs"]
mod exchange;
mod fakes;
mod privacy;
mod process;
mod projections;
mod refusals;
mod support;
mod vault_lies;
