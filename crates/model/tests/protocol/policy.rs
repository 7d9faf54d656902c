//! Policy evaluation.

mod approvals;
mod inputs;
mod properties;
mod reasons;
mod states;
mod verified;
