//! Claims, and what names them.

use cl_model::digest::Digest;
use cl_model::part::Label;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::UnixTime;
use cl_model::urn::{ClaimId, EventId};
use cl_model::vocabulary::Datatype;
use prost::Message;

use super::{StoreError, names, texts};
use crate::core::claim::{Claim, Standing, Support};
use crate::core::meeting::{Rank, Revision};

/// Names a claim of a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimKey {
    /// Its predicate.
    pub predicate: Predicate,
    /// Its id.
    pub id: ClaimId,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(in crate::store) struct ThreadRecord {
    #[prost(string, repeated, tag = "1")]
    pub(in crate::store) claims: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(in crate::store) struct ClaimKeyRecord {
    #[prost(string, tag = "1")]
    predicate: String,
    #[prost(string, tag = "2")]
    id: String,
}

impl ClaimKeyRecord {
    pub(in crate::store) fn of(key: &ClaimKey) -> Self {
        Self {
            predicate: key.predicate.as_str().to_owned(),
            id: key.id.as_str().to_owned(),
        }
    }

    pub(in crate::store) fn read(self) -> Result<ClaimKey, StoreError> {
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
pub(in crate::store) struct ClaimRecord {
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
    #[prost(message, optional, tag = "8")]
    revision: Option<RevisionRecord>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct RevisionRecord {
    #[prost(bytes = "vec", optional, tag = "1")]
    authority: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    series: Vec<u8>,
    #[prost(string, tag = "3")]
    occurrence: String,
    #[prost(bool, tag = "4")]
    is_one_of_series: bool,
    #[prost(uint32, tag = "5")]
    sequence: u32,
    #[prost(int64, optional, tag = "6")]
    stamped_at_ms: Option<i64>,
    #[prost(bool, tag = "7")]
    is_cancelled: bool,
    #[prost(bool, tag = "8")]
    is_and_later: bool,
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
    pub(in crate::store) fn of(claim: &Claim) -> Self {
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

    pub(in crate::store) fn read(self) -> Result<Claim, StoreError> {
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
            revision: support.revision.as_ref().map(RevisionRecord::of),
        }
    }

    fn read(self) -> Option<Support> {
        Some(Support {
            event: EventId::parse(&self.event)?,
            confidence: Confidence::new(self.confidence)?,
            valid_from: self.valid_from_ms.map(UnixTime::from_milliseconds),
            valid_until: self.valid_until_ms.map(UnixTime::from_milliseconds),
            rule: Name::new(self.rule)?,
            marks: names(self.marks)?,
            thread: digest(self.thread)?,
            revision: match self.revision {
                None => None,
                Some(record) => Some(record.read()?),
            },
        })
    }
}

impl RevisionRecord {
    fn of(revision: &Revision) -> Self {
        let bytes = |digest: Digest| digest.as_bytes().to_vec();
        Self {
            authority: revision.authority.map(bytes),
            series: bytes(revision.series),
            occurrence: revision.occurrence.clone(),
            is_one_of_series: revision.is_one_of_series,
            sequence: revision.rank.sequence,
            stamped_at_ms: revision.rank.stamped_at.map(UnixTime::milliseconds),
            is_cancelled: revision.rank.is_cancelled,
            is_and_later: revision.is_and_later,
        }
    }

    fn read(self) -> Option<Revision> {
        Some(Revision {
            authority: match self.authority {
                None => None,
                Some(bytes) => Some(digest(bytes)?),
            },
            series: digest(self.series)?,
            occurrence: self.occurrence,
            is_one_of_series: self.is_one_of_series,
            is_and_later: self.is_and_later,
            rank: Rank {
                sequence: self.sequence,
                stamped_at: self.stamped_at_ms.map(UnixTime::from_milliseconds),
                is_cancelled: self.is_cancelled,
            },
        })
    }
}

fn digest(bytes: Vec<u8>) -> Option<Digest> {
    let bytes: [u8; 32] = bytes.try_into().ok()?;
    Some(Digest::from(bytes))
}
