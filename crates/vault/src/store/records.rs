//! The form of stored values: protobuf, sealed by the layers below.

mod claim;
mod event;
mod exchange;

use std::collections::BTreeMap;

use cl_model::digest::Digest;
use cl_model::scalar::Name;
use prost::Message;

pub use self::claim::ClaimKey;
pub(super) use self::claim::{ClaimKeyRecord, ClaimRecord, ThreadRecord};
pub(super) use self::event::EventRecord;
pub use self::event::{EventContent, StoredEvent};
pub use self::exchange::{Exchange, StoredProposal};
pub(super) use self::exchange::{ExchangeRecord, ProposalRecord};
use super::StoreError;

/// What an operation id was used for.
#[derive(Clone, PartialEq)]
pub struct StoredOperation {
    /// The digest of what went in.
    pub content: Digest,
    /// What the caller was told, or the digest of it.
    pub result: Vec<u8>,
}

/// Counts of a subject, and whether it is closed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ledger {
    #[prost(uint64, tag = "1")]
    pub(super) next: u64,
    #[prost(uint64, tag = "2")]
    pub(super) events: u64,
    #[prost(uint64, tag = "3")]
    pub(super) claims: u64,
    #[prost(btree_map = "string, uint64", tag = "4")]
    pub(super) by_predicate: BTreeMap<String, u64>,
    #[prost(bool, tag = "5")]
    pub(super) is_erased: bool,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct TextRecord {
    #[prost(string, tag = "1")]
    pub(super) text: String,
}

impl TextRecord {
    pub(super) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct OperationRecord {
    #[prost(string, tag = "1")]
    pub(super) content: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) result: Vec<u8>,
}

pub(super) fn decode<R: Message + Default>(value: &[u8]) -> Result<R, StoreError> {
    R::decode(value).map_err(|_| StoreError::Corrupt)
}

fn texts<T: AsRef<str>>(values: &[T]) -> Vec<String> {
    values
        .iter()
        .map(|value| value.as_ref().to_owned())
        .collect()
}

fn names(values: Vec<String>) -> Option<Vec<Name>> {
    values.into_iter().map(Name::new).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn damaged_records_are_refused_without_a_panic(bytes in any::<Vec<u8>>()) {
            let _refused = decode::<EventRecord>(&bytes).and_then(EventRecord::read).is_err();
            let _refused = decode::<ClaimRecord>(&bytes).and_then(ClaimRecord::read).is_err();
            let _refused = decode::<ExchangeRecord>(&bytes).and_then(ExchangeRecord::read).is_err();
            let _refused = decode::<ProposalRecord>(&bytes).and_then(ProposalRecord::read).is_err();
            let _refused = decode::<ClaimKeyRecord>(&bytes).and_then(ClaimKeyRecord::read).is_err();
        }
    }
}
