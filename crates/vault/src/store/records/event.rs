//! Events.

use cl_model::digest::Digest;
use cl_model::part::Label;
use cl_model::scalar::Name;
use cl_model::urn::EventId;
use prost::Message;

use super::claim::{ClaimKey, ClaimKeyRecord};
use super::{StoreError, names, texts};

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
    /// The author's words that each of these claims came from, in the same order; empty for an event
    /// of a time when they were not kept.
    pub words: Vec<String>,
    /// The digest of its payload.
    pub payload: Digest,
    /// How private it is.
    pub label: Label,
    /// Its place in the list.
    pub place: u64,
}

impl EventContent {
    /// The words that a claim came from; empty where they were not kept.
    pub fn words_of(&self, claim: &ClaimKey) -> &str {
        let place = self.claims.iter().position(|key| key == claim);
        let words = place.and_then(|place| self.words.get(place));
        words.map_or("", String::as_str)
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(in crate::store) struct EventRecord {
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
    #[prost(string, repeated, tag = "8")]
    words: Vec<String>,
}

impl EventRecord {
    pub(in crate::store) fn of(event: &StoredEvent) -> Self {
        Self {
            id: event.id.as_str().to_owned(),
            content: event.content.as_ref().map(EventContentRecord::of),
        }
    }

    pub(in crate::store) fn read(self) -> Result<StoredEvent, StoreError> {
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
            words: content.words.clone(),
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
            words: self.words,
        })
    }
}
