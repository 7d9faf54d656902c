//! The records at rest, before they are sealed. Protobuf, so that members can be added.

use std::collections::BTreeMap;

use prost::Message;

use super::finished::Facets;
use super::routing::{OperationId, Routing, SubjectTag, Tenant};
use crate::error::Error;

/// What every commit writes.
#[derive(Clone, PartialEq, Message)]
pub struct HeadRecord {
    /// How many entries all logs have.
    #[prost(uint64, tag = "1")]
    pub entries: u64,
    /// The latest time that the store has written down, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "2")]
    pub latest_ms: u64,
    /// Random, another one for each commit: tells whether a commit took effect.
    #[prost(bytes = "vec", tag = "3")]
    pub commit_id: Vec<u8>,
}

/// Where the log of a tenant ends.
#[derive(Clone, PartialEq, Message)]
pub struct LogRecord {
    /// The signed checkpoint over all of its entries.
    #[prost(string, tag = "1")]
    pub checkpoint: String,
    /// Whether an earlier tree was pinned before this one was stored: then there is a pin.
    #[prost(bool, tag = "2")]
    pub was_pinned: bool,
}

/// That a tenant has a log.
#[derive(Clone, PartialEq, Message)]
pub struct TenantRecord {
    /// Its name.
    #[prost(string, tag = "1")]
    pub tenant: String,
}

/// An entry of a log, with all that the store knows about its receipt.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct EntryRecord {
    /// The bytes of the entry in the log.
    #[prost(bytes = "vec", tag = "1")]
    pub leaf: Vec<u8>,
    /// What hides the receipt in them.
    #[prost(bytes = "vec", tag = "2")]
    pub salt: Vec<u8>,
    /// The canonical text of the receipt.
    #[prost(string, tag = "3")]
    pub receipt: String,
    /// The receipt's URN.
    #[prost(string, tag = "4")]
    pub receipt_ref: String,
    /// The receipt that it supersedes.
    #[prost(string, optional, tag = "5")]
    pub supersedes_ref: Option<String>,
    /// Where it belongs.
    #[prost(message, optional, tag = "6")]
    pub routing: Option<RoutingRecord>,
    /// The SPIFFE id of its writer.
    #[prost(string, tag = "7")]
    pub writer: String,
    /// Whether a consumer attests it.
    #[prost(bool, tag = "8")]
    pub by_consumer: bool,
    /// When it was recorded, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "9")]
    pub recorded_at_ms: u64,
    /// The receipt's operation.
    #[prost(string, tag = "10")]
    pub operation: String,
    /// The receipt's outcome.
    #[prost(string, tag = "11")]
    pub outcome: String,
    /// The bundle that the receipt is about.
    #[prost(string, optional, tag = "12")]
    pub bundle_ref: Option<String>,
    /// The decision that the receipt is about.
    #[prost(string, optional, tag = "13")]
    pub decision_ref: Option<String>,
    /// That the receipt was erased: then only this, the leaf and the time of recording are there.
    #[prost(message, optional, tag = "14")]
    pub tombstone: Option<TombstoneRecord>,
    /// The writer of the operation that a receipt of the store's own is about.
    #[prost(string, optional, tag = "15")]
    pub about_writer: Option<String>,
}

/// That a receipt was erased.
#[derive(Clone, PartialEq, Message)]
pub struct TombstoneRecord {
    /// When, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub erased_at_ms: u64,
    /// The retention class that it had.
    #[prost(string, tag = "2")]
    pub class: String,
}

/// How far the receipts of a tenant were looked through for those whose retention has ended.
#[derive(Clone, PartialEq, Message)]
pub struct SweptRecord {
    /// The digest of the table that counted.
    #[prost(bytes = "vec", tag = "1")]
    pub table: Vec<u8>,
    /// For each class the first entry that was not looked at yet.
    #[prost(btree_map = "string, uint64", tag = "2")]
    pub next: BTreeMap<String, u64>,
}

impl EntryRecord {
    /// What is left of it once its receipt is erased.
    pub fn erased(self, class: &str, now_ms: u64) -> Self {
        Self {
            leaf: self.leaf,
            recorded_at_ms: self.recorded_at_ms,
            tombstone: Some(TombstoneRecord {
                erased_at_ms: now_ms,
                class: class.to_owned(),
            }),
            ..Self::default()
        }
    }

    /// The tag of the subject that it is about.
    pub fn subject_tag(&self) -> Option<&str> {
        self.routing.as_ref()?.subject_tag.as_deref()
    }

    /// The receipt's actor.
    pub fn actor(&self) -> Option<String> {
        let receipt: serde_json::Value = serde_json::from_str(&self.receipt).ok()?;
        Some(receipt.get("actor")?.as_str()?.to_owned())
    }

    /// The members by which it is found.
    pub fn facets(&self) -> Facets {
        Facets {
            operation: self.operation.clone(),
            outcome: self.outcome.clone(),
            bundle_ref: self.bundle_ref.clone(),
            decision_ref: self.decision_ref.clone(),
        }
    }
}

/// Where a receipt belongs.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct RoutingRecord {
    /// The tenant.
    #[prost(string, tag = "1")]
    pub tenant: String,
    /// The operation.
    #[prost(string, tag = "2")]
    pub operation_id: String,
    /// The subject's tag.
    #[prost(string, optional, tag = "3")]
    pub subject_tag: Option<String>,
}

/// What an operation id was used for.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct OperationRecord {
    /// Where the operation's receipt belongs.
    #[prost(message, optional, tag = "1")]
    pub routing: Option<RoutingRecord>,
    /// The SPIFFE id of the writer.
    #[prost(string, tag = "2")]
    pub writer: String,
    /// The digest of what `Append` or `Begin` carried.
    #[prost(bytes = "vec", tag = "3")]
    pub content: Vec<u8>,
    /// The newest entry of the operation; 0 while there is none.
    #[prost(uint64, tag = "4")]
    pub sequence: u64,
    /// The intent, if the operation was begun.
    #[prost(message, optional, tag = "5")]
    pub intent: Option<IntentRecord>,
    /// Whether its receipt was erased: then nothing else is there.
    #[prost(bool, tag = "6")]
    pub is_erased: bool,
}

/// A begun operation.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct IntentRecord {
    /// When it is over, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub deadline_ms: u64,
    /// When it was recorded, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "2")]
    pub begun_at_ms: u64,
    /// The members that `Begin` carried, until the intent is settled.
    #[prost(bytes = "vec", tag = "3")]
    pub members: Vec<u8>,
    /// The entry of the store's own receipt; 0 while there is none.
    #[prost(uint64, tag = "4")]
    pub overdue_sequence: u64,
    /// The digest of what `Complete` carried. Empty: not settled.
    #[prost(bytes = "vec", tag = "5")]
    pub settled: Vec<u8>,
}

/// A number on its own.
#[derive(Clone, PartialEq, Message)]
pub struct NumberRecord {
    /// The number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// Names an operation from an index.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct OperationKeyRecord {
    /// The tenant.
    #[prost(string, tag = "1")]
    pub tenant: String,
    /// The writer's SPIFFE id.
    #[prost(string, tag = "2")]
    pub writer: String,
    /// The operation's id.
    #[prost(string, tag = "3")]
    pub operation_id: String,
    /// The intent's deadline, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "4")]
    pub deadline_ms: u64,
}

/// Reads a record that was sealed by this store.
pub fn decode<R: Message + Default>(bytes: &[u8]) -> Result<R, Error> {
    R::decode(bytes).map_err(|_| Error::Corrupt("a record does not decode"))
}

impl From<&Routing> for RoutingRecord {
    fn from(routing: &Routing) -> Self {
        Self {
            tenant: routing.tenant.as_str().to_owned(),
            operation_id: routing.operation_id.as_str().to_owned(),
            subject_tag: routing
                .subject_tag
                .as_ref()
                .map(|tag| tag.as_str().to_owned()),
        }
    }
}

/// Reads the routing that every record with one must have.
pub fn routing(record: Option<&RoutingRecord>) -> Result<Routing, Error> {
    record
        .and_then(parse_routing)
        .ok_or(Error::Corrupt("a record's routing does not parse"))
}

fn parse_routing(record: &RoutingRecord) -> Option<Routing> {
    let subject_tag = match &record.subject_tag {
        None => None,
        Some(tag) => Some(SubjectTag::parse(tag)?),
    };
    Some(Routing {
        tenant: Tenant::parse(&record.tenant)?,
        operation_id: OperationId::parse(&record.operation_id)?,
        subject_tag,
    })
}
