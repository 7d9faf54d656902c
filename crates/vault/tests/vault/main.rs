//! The vault, tested from outside: real gRPC over mutual TLS, a receipt store and a bundle issuer
//! that enforce their contracts, and a clock that moves when told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod callers;
mod capture;
mod contradictions;
mod crash;
mod documents;
mod erase;
mod explain;
mod grants;
mod issuer;
mod malformed;
mod meetings;
mod memory;
mod owner;
mod payloads;
mod privacy;
mod process;
mod resolve;
mod support;
mod threads;
