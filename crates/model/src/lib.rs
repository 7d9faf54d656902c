//! The Context Layer protocol (`context-layer/0.2-draft`) as a pure library.
//!
//! **Role.** Everything that has one right answer: which bytes are a valid object, what they hash
//! to, what a policy decides, what goes into a bundle, whether a bundle may be opened. The
//! services, the SDK and the conformance tools share these answers.
//!
//! **Holds.** Nothing. There is no IO, no clock, no environment and no state: time, keys, receipts
//! and revocation come in as arguments.
//!
//! **Trusts.** Nobody. Bytes become types in one place, and a type that only a check can make
//! ([`policy::VerifiedDecision`], [`envelope::VerifiedBundle`], [`grant::VerifiedGrant`],
//! [`document::Verified`]) is what later steps ask for.
//!
//! **A compromise yields** whatever its process may do: the library is in the trusted base of
//! each.
//!
//! # Where to start
//!
//! | to | see |
//! | --- | --- |
//! | read foreign JSON | [`json`], then [`object`] |
//! | hash or sign | [`canonical`], [`digest`], [`record`], [`document`] |
//! | decide a request | [`policy`] |
//! | issue a bundle | [`projection`], [`issue`] |
//! | open and use one | [`delivery`], [`envelope`], [`session`], [`memory`] |
//! | write and verify receipts | [`receipt`], [`log`], [`anchor`], [`leaf`] |
//! | grant across services | [`grant`], [`notes`], [`trust`] |
//! | verify what a person approved | [`artefact`], [`passkey`] |
//! | know predicates, keep denied values back | [`vocabulary`], [`leak`] |
//!
//! Every refusal is a [`refusal::Refusal`] with a stable code and never a part of the input.

#![deny(missing_docs)]

mod opaque;

pub mod alias;
pub mod anchor;
pub mod artefact;
pub mod canonical;
pub mod delivery;
pub mod digest;
pub mod document;
pub mod envelope;
pub mod explanation;
pub mod forbidden;
pub mod grant;
pub mod issue;
pub mod json;
pub mod key;
pub mod leaf;
pub mod leak;
pub mod list;
pub mod log;
pub mod memory;
pub mod notes;
pub mod object;
pub mod operation;
pub mod part;
pub mod passkey;
pub mod policy;
pub mod projection;
pub mod purpose;
pub mod receipt;
pub mod record;
pub mod refusal;
pub mod scalar;
pub mod session;
pub mod time;
pub mod transform;
pub mod trust;
pub mod urn;
pub mod vocabulary;
