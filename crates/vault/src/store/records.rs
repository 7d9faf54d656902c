//! The form of stored values: protobuf, sealed by the layers below.

use std::collections::BTreeMap;

use cl_model::digest::Digest;
use cl_model::part::Label;
use cl_model::scalar::{Action, Confidence, Name, Predicate, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::{ClaimId, DecisionId, EventId, RequestId};
use cl_model::vocabulary::Datatype;
use prost::Message;

use super::StoreError;
use crate::core::claim::{Claim, Standing, Support};

/// Names a claim of a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimKey {
    /// Its predicate.
    pub predicate: Predicate,
    /// Its id.
    pub id: ClaimId,
}

/// An event as it is stored.
#[derive(Clone, PartialEq)]
pub struct StoredEvent {
    /// Its id.
    pub id: EventId,
    /// Its content; none once it is erased.
    pub content: Option<EventContent>,
}

/// What is stored of an event until it is erased.
#[derive(Clone, PartialEq)]
pub struct EventContent {
    /// The document.
    pub document: Vec<u8>,
    /// Further ways by which it arrived, each as canonical JSON.
    pub ways: Vec<Vec<u8>>,
    /// What capture and extraction noticed.
    pub marks: Vec<Name>,
    /// The claims that rest on it.
    pub claims: Vec<ClaimKey>,
    /// The digest of its payload.
    pub payload: Digest,
    /// How private it is.
    pub label: Label,
    /// Its place in the list.
    pub place: u64,
}

/// What an exchange under a grant needs to find its way back.
#[derive(Clone, PartialEq)]
pub struct Exchange {
    /// Who received the bundle.
    pub recipient: Reference,
    /// The request.
    pub request: RequestId,
    /// The decision.
    pub decision: DecisionId,
    /// What the recipient may do.
    pub actions: Vec<Action>,
    /// When the grant ends.
    pub expires_at: UnixTime,
    /// The subject's tag in receipts.
    pub subject_tag: String,
    /// The events behind the handles.
    pub events: Vec<EventId>,
}

/// A proposal as it is stored.
#[derive(Clone, PartialEq)]
pub struct StoredProposal {
    /// The document with its state.
    pub document: Vec<u8>,
    /// The digest of what was submitted.
    pub submitted: Digest,
    /// When it expires.
    pub expires_at: UnixTime,
    /// The operation that stored it.
    pub operation_id: String,
}

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
pub(super) struct ThreadRecord {
    #[prost(string, repeated, tag = "1")]
    pub(super) claims: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ClaimKeyRecord {
    #[prost(string, tag = "1")]
    predicate: String,
    #[prost(string, tag = "2")]
    id: String,
}

impl ClaimKeyRecord {
    pub(super) fn of(key: &ClaimKey) -> Self {
        Self {
            predicate: key.predicate.as_str().to_owned(),
            id: key.id.as_str().to_owned(),
        }
    }

    pub(super) fn read(self) -> Result<ClaimKey, StoreError> {
        let read = || {
            Some(ClaimKey {
                predicate: Predicate::new(self.predicate)?,
                id: ClaimId::parse(&self.id)?,
            })
        };
        read().ok_or(StoreError::Corrupt)
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct EventRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "2")]
    content: Option<EventContentRecord>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct EventContentRecord {
    #[prost(bytes = "vec", tag = "1")]
    document: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    ways: Vec<Vec<u8>>,
    #[prost(string, repeated, tag = "3")]
    marks: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    claims: Vec<ClaimKeyRecord>,
    #[prost(string, tag = "5")]
    payload: String,
    #[prost(string, tag = "6")]
    label: String,
    #[prost(uint64, tag = "7")]
    place: u64,
}

impl EventRecord {
    pub(super) fn of(event: &StoredEvent) -> Self {
        Self {
            id: event.id.as_str().to_owned(),
            content: event.content.as_ref().map(EventContentRecord::of),
        }
    }

    pub(super) fn read(self) -> Result<StoredEvent, StoreError> {
        Ok(StoredEvent {
            id: EventId::parse(&self.id).ok_or(StoreError::Corrupt)?,
            content: self.content.map(EventContentRecord::read).transpose()?,
        })
    }
}

impl EventContentRecord {
    fn of(content: &EventContent) -> Self {
        Self {
            document: content.document.clone(),
            ways: content.ways.clone(),
            marks: texts(&content.marks),
            claims: content.claims.iter().map(ClaimKeyRecord::of).collect(),
            payload: content.payload.to_string(),
            label: content.label.as_str().to_owned(),
            place: content.place,
        }
    }

    fn read(self) -> Result<EventContent, StoreError> {
        let claims = self.claims.into_iter().map(ClaimKeyRecord::read);
        Ok(EventContent {
            document: self.document,
            ways: self.ways,
            marks: names(self.marks).ok_or(StoreError::Corrupt)?,
            claims: claims.collect::<Result<_, _>>()?,
            payload: Digest::parse(&self.payload).ok_or(StoreError::Corrupt)?,
            label: Label::parse(&self.label).ok_or(StoreError::Corrupt)?,
            place: self.place,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ClaimRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    predicate: String,
    #[prost(string, tag = "3")]
    datatype: String,
    #[prost(string, tag = "4")]
    label: String,
    #[prost(int64, tag = "5")]
    derived_at_ms: i64,
    #[prost(uint64, tag = "6")]
    place: u64,
    #[prost(string, tag = "7")]
    value: String,
    #[prost(message, repeated, tag = "8")]
    supports: Vec<SupportRecord>,
    #[prost(message, optional, tag = "9")]
    retraction: Option<RetractionRecord>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct SupportRecord {
    #[prost(string, tag = "1")]
    event: String,
    #[prost(double, tag = "2")]
    confidence: f64,
    #[prost(int64, optional, tag = "3")]
    valid_from_ms: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    valid_until_ms: Option<i64>,
    #[prost(string, tag = "5")]
    rule: String,
    #[prost(string, repeated, tag = "6")]
    marks: Vec<String>,
    #[prost(bytes = "vec", tag = "7")]
    thread: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct RetractionRecord {
    #[prost(int64, tag = "1")]
    at_ms: i64,
    #[prost(string, tag = "2")]
    last: String,
}

impl ClaimRecord {
    pub(super) fn of(claim: &Claim) -> Self {
        let (value, supports, retraction) = match &claim.standing {
            Standing::Held { value, supports } => (
                cl_model::canonical::to_text(value),
                supports.iter().map(SupportRecord::of).collect(),
                None,
            ),
            Standing::Retracted { at, last } => {
                let retraction = RetractionRecord {
                    at_ms: at.milliseconds(),
                    last: last.as_str().to_owned(),
                };
                (String::new(), Vec::new(), Some(retraction))
            }
        };
        Self {
            id: claim.id.as_str().to_owned(),
            predicate: claim.predicate.as_str().to_owned(),
            datatype: claim.datatype.as_str().to_owned(),
            label: claim.label.as_str().to_owned(),
            derived_at_ms: claim.derived_at.milliseconds(),
            place: claim.place,
            value,
            supports,
            retraction,
        }
    }

    pub(super) fn read(self) -> Result<Claim, StoreError> {
        self.try_read().ok_or(StoreError::Corrupt)
    }

    fn try_read(self) -> Option<Claim> {
        let standing = match self.retraction {
            Some(retraction) => Standing::Retracted {
                at: UnixTime::from_milliseconds(retraction.at_ms),
                last: EventId::parse(&retraction.last)?,
            },
            None => Standing::Held {
                value: serde_json::from_str(&self.value).ok()?,
                supports: self
                    .supports
                    .into_iter()
                    .map(SupportRecord::read)
                    .collect::<Option<_>>()?,
            },
        };
        Some(Claim {
            id: ClaimId::parse(&self.id)?,
            predicate: Predicate::new(self.predicate)?,
            datatype: Datatype::parse(&self.datatype)?,
            label: Label::parse(&self.label)?,
            derived_at: UnixTime::from_milliseconds(self.derived_at_ms),
            place: self.place,
            standing,
        })
    }
}

impl SupportRecord {
    fn of(support: &Support) -> Self {
        Self {
            event: support.event.as_str().to_owned(),
            confidence: support.confidence.get(),
            valid_from_ms: support.valid_from.map(UnixTime::milliseconds),
            valid_until_ms: support.valid_until.map(UnixTime::milliseconds),
            rule: support.rule.as_str().to_owned(),
            marks: texts(&support.marks),
            thread: support.thread.as_bytes().to_vec(),
        }
    }

    fn read(self) -> Option<Support> {
        let thread: [u8; 32] = self.thread.try_into().ok()?;
        Some(Support {
            event: EventId::parse(&self.event)?,
            confidence: Confidence::new(self.confidence)?,
            valid_from: self.valid_from_ms.map(UnixTime::from_milliseconds),
            valid_until: self.valid_until_ms.map(UnixTime::from_milliseconds),
            rule: Name::new(self.rule)?,
            marks: names(self.marks)?,
            thread: Digest::from(thread),
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ExchangeRecord {
    #[prost(string, tag = "1")]
    recipient: String,
    #[prost(string, tag = "2")]
    request: String,
    #[prost(string, tag = "3")]
    decision: String,
    #[prost(string, repeated, tag = "4")]
    actions: Vec<String>,
    #[prost(int64, tag = "5")]
    expires_at_ms: i64,
    #[prost(string, repeated, tag = "6")]
    events: Vec<String>,
    #[prost(string, tag = "7")]
    subject_tag: String,
}

impl ExchangeRecord {
    pub(super) fn of(exchange: &Exchange) -> Self {
        Self {
            recipient: exchange.recipient.as_str().to_owned(),
            request: exchange.request.as_str().to_owned(),
            decision: exchange.decision.as_str().to_owned(),
            actions: texts(&exchange.actions),
            expires_at_ms: exchange.expires_at.milliseconds(),
            subject_tag: exchange.subject_tag.clone(),
            events: exchange
                .events
                .iter()
                .map(|event| event.as_str().to_owned())
                .collect(),
        }
    }

    pub(super) fn read(self) -> Result<Exchange, StoreError> {
        self.try_read().ok_or(StoreError::Corrupt)
    }

    fn try_read(self) -> Option<Exchange> {
        let events = self.events.iter().map(|event| EventId::parse(event));
        Some(Exchange {
            recipient: Reference::new(self.recipient)?,
            request: RequestId::parse(&self.request)?,
            decision: DecisionId::parse(&self.decision)?,
            actions: self
                .actions
                .into_iter()
                .map(Action::new)
                .collect::<Option<_>>()?,
            expires_at: UnixTime::from_milliseconds(self.expires_at_ms),
            subject_tag: self.subject_tag,
            events: events.collect::<Option<_>>()?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ProposalRecord {
    #[prost(bytes = "vec", tag = "1")]
    document: Vec<u8>,
    #[prost(string, tag = "2")]
    submitted: String,
    #[prost(int64, tag = "3")]
    expires_at_ms: i64,
    #[prost(string, tag = "4")]
    operation_id: String,
}

impl ProposalRecord {
    pub(super) fn of(proposal: &StoredProposal) -> Self {
        Self {
            document: proposal.document.clone(),
            submitted: proposal.submitted.to_string(),
            expires_at_ms: proposal.expires_at.milliseconds(),
            operation_id: proposal.operation_id.clone(),
        }
    }

    pub(super) fn read(self) -> Result<StoredProposal, StoreError> {
        Ok(StoredProposal {
            document: self.document,
            submitted: Digest::parse(&self.submitted).ok_or(StoreError::Corrupt)?,
            expires_at: UnixTime::from_milliseconds(self.expires_at_ms),
            operation_id: self.operation_id,
        })
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
