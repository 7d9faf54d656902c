//! The policy engine, tested from outside: real gRPC over mutual TLS, a receipt store that enforces
//! its contract, and a clock that moves when told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod activations;
mod ages;
mod anomalies;
mod answers;
mod bounds;
mod callers;
mod cedar;
mod crash;
mod delegations;
mod documents;
mod examining;
mod issuer;
mod issuing;
mod kept;
mod malformed;
mod passkeys;
mod people;
mod people_store;
mod privacy;
mod process;
mod rates;
mod requests;
mod revoking;
mod shadow;
mod signed;
mod snapshots;
mod store;
mod support;
mod unfit;
mod watching;
