//! The gateway from outside: real HTTP and gRPC over TLS, and a policy engine that keeps its
//! contract.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod authentication;
mod binding;
mod client;
mod corpus;
mod documents;
mod engine;
mod exchange;
mod idempotency;
mod limits;
mod outages;
mod pki;
mod privacy;
mod process;
mod reload;
mod store;
mod support;
mod token_cases;
mod tokens;
