//! The gateway from outside: real HTTP and gRPC over TLS, and services behind it that keep their
//! contracts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod authentication;
mod binding;
mod bundle_issuer;
mod client;
mod corpus;
mod documents;
mod engine;
mod exchange;
mod faults;
mod flood;
mod idempotency;
mod limits;
mod outages;
mod privacy;
mod process;
mod receipt_store;
mod recipients;
mod recipients_agree;
mod redemptions;
mod reload;
mod reports;
mod scopes;
mod store;
mod support;
mod token_cases;
mod tokens;
mod vault;
mod waiting;
