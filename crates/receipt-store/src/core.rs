//! What the store decides, without any input or output of its own: values and `now` in, entries,
//! records and refusals out.

pub mod command;
pub mod finished;
pub mod holds;
pub mod intents;
pub mod kept;
pub mod ledger;
pub mod members;
pub mod readers;
pub mod records;
pub mod retention;
pub mod routing;
pub mod trees;
pub mod writers;
