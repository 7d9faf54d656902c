//! Policies in Cedar, behind the evaluation trait of the model.
//!
//! A snapshot may state its policy in Cedar. This crate reads such texts strictly, once, and then
//! says of each requested selector and action whether it is granted, gated or denied, and within
//! which limits. Everything else of an evaluation is the model's own and the same for every policy.
//!
//! Permits only permit. A plain `forbid` denies. A `forbid` with annotations is a *demand*: it
//! denies nothing, and its demands apply where it matches, whoever permits. So fewer permits, more
//! forbids and more demands can only grant less.
//!
//! A policy that fails while it is evaluated denies the whole request, whatever the others say.

#![deny(missing_docs)]

mod cases;
mod compile;
mod data;
mod demand;
mod entity;
mod explain;
mod extent;
mod fault;
mod inquiry;
mod policy;
mod schema;
mod slices;
mod snapshot;
mod tokens;
mod translate;

pub use self::cases::{CaseFile, CaseResult, InvalidCases, Report};
pub use self::explain::{Effect, Matched, MatchedItems};
pub use self::fault::{Fault, Finding, InvalidPolicies, Place};
pub use self::policy::CedarPolicy;
pub use self::schema::SCHEMA;
pub use self::snapshot::{CompiledSnapshot, InvalidSnapshot};
pub use self::translate::{Untranslatable, translate};
