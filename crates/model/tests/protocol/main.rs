//! The protocol core through its public interface: what is accepted, what is refused, with which
//! code, and in which order.

#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod aliases;
mod anchor;
mod delivery;
mod envelope;
mod exchange;
mod fixture;
mod grant;
mod hostile;
mod log;
mod notes;
mod opening;
mod policy;
mod projection;
mod proposals;
mod session;
