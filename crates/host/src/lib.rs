//! What every process of the Context Layer needs and no process is about.
//!
//! # Role
//!
//! The frame around a service: [`life`] takes a process from its command line to its exit code,
//! [`tls`] and [`accept`] serve mutual TLS with certificates that reload, [`identity`] and
//! [`callers`] say who is calling and whether they may, [`client`] calls named peers, [`deadline`]
//! bounds calls, [`telemetry`] and [`admin`] tell operators what happens, [`clock`] and [`ids`]
//! inject time and identifiers, [`private`], [`files`] and [`secrets`] keep secrets out of sight,
//! [`trust`] reads the deployment's public keys. It has no domain: nothing here knows a vault, a
//! grant or a bundle.
//!
//! # Holds
//!
//! The process's TLS private key, in memory and never printed. No data of any person, and no
//! signing or sealing key.
//!
//! # Trusts
//!
//! The authorities in the trust file: whoever can issue under them can be any peer. The clock, for
//! the validity of certificates. Peers are trusted for their SPIFFE id only; what they send is
//! bounded in size and time, counted, and never logged. The OTLP collector and whoever reaches the
//! admin port see method names, codes, durations and SPIFFE ids.
//!
//! # A compromise yields
//!
//! This code runs inside every process, so a fault here is a fault of the process around it: a
//! broken caller table opens the RPCs of that service to any certificate of the trust domain, and a
//! stolen TLS key lets its holder act as that one process until the certificate ends or its
//! authority is replaced. It does not yield signing keys, which live elsewhere, nor another
//! process's identity.

#![deny(missing_docs)]

pub mod accept;
pub mod admin;
pub mod callers;
pub mod client;
pub mod clock;
pub mod deadline;
pub mod files;
pub mod identity;
pub mod ids;
pub mod life;
pub mod private;
pub mod secrets;
pub mod status;
pub mod telemetry;
pub mod tls;
pub mod trust;

/// Every process allocates with this one.
#[cfg(not(fuzzing))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub use self::life::{App, BoxError, Callers, Host, HostArgs, Process, run};
