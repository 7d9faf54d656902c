//! Capture: reads native formats and hands source events to the vault (spec 8.1, 12, 13.6).
//!
//! # Role
//!
//! A process that an operator runs over a path. It parses hostile bytes outside the vault's
//! process: messages and calendar objects become `source_event` documents, raw payloads, the visible
//! text cut by whose words it is, and the times of meetings. It makes no claims; the vault extracts
//! them. The adapters' mappings and losses are declared in `schemas/adapters/` and described in
//! `docs/capture.md`.
//!
//! # Holds
//!
//! A TLS key, and the messages that are being read. Nothing durable: a run that was cut off is
//! repeated, and the vault stores nothing twice.
//!
//! # Trusts
//!
//! The vault, to keep what it confirms. No message: nothing in one stops a run, and what is odd
//! becomes a mark. The operator, for the addresses that are the subject's own.
//!
//! # A compromise yields
//!
//! False events for the tenants whose vault takes this process's certificate, and the messages
//! under the paths that operators point it at. It can neither read from the vault nor assert claims.

pub mod calendar;
pub mod command;
pub mod config;
pub mod error;
pub mod event;
pub mod job;
pub mod mail;
pub mod mbox;
pub mod native;
pub mod pipeline;
mod progress;
mod reading;
pub mod report;
pub mod source;
pub mod vault;
mod watch;

use prost_types::Timestamp;

/// An instant in the contract's form.
pub(crate) fn wire_time(milliseconds: i64) -> Timestamp {
    Timestamp {
        seconds: milliseconds.div_euclid(1000),
        nanos: i32::try_from(milliseconds.rem_euclid(1000)).unwrap_or(0) * 1_000_000,
    }
}
