//! A deployment for tests: its authority and certificates, programs as operators run them, servers in
//! the test's own process, a receipt store among them, their logs, and waiting with a deadline.
//!
//! Only tests depend on it; whatever goes wrong in it is a panic.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "for tests"
)]

mod authority;
mod home;
mod logs;
mod program;
mod receipts;
mod refusal;
mod serving;
mod wait;

pub use self::authority::{Authority, TRUST_DOMAIN, spiffe_id};
pub use self::home::{Home, write_secret};
pub use self::logs::{logs, subscribe, telemetry};
pub use self::program::Program;
pub use self::receipts::{FakeReceipts, Recorded, TURNS};
pub use self::refusal::{refusal, refused};
pub use self::serving::{Serving, channel, timings};
pub use self::wait::{HANG, eventually, until, within};
