//! `source_event` (spec 7.1).

use super::{Evidence, ProtocolObject};
use crate::digest::Digest;
use crate::json::MAX_SAFE_INTEGER;
use crate::json::read::{Expected, Mismatch, Nullable, constant, object};
use crate::list::{List, UniqueList};
use crate::part::{AlwaysTrue, Integrity, Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{Bounded, Confidence, MediaType, Name, Reference, Text};
use crate::time::Timestamp;
use crate::urn::EventId;

constant! {
    /// `type` of a source event.
    pub struct SourceEventType = "source_event";
}

object! {
    /// Where an event was observed.
    pub struct EventSource {
        /// The adapter's name.
        adapter: Name,
        /// The account it was read through.
        account_ref: Option<Reference>,
        /// The item's native identifier.
        native_id_ref: Option<Reference>,
        /// A digest of the item's native identifier.
        native_id_digest: Option<Digest>,
    }
    check = EventSource::has_native_id;
}

impl EventSource {
    fn has_native_id(&self) -> Result<(), Mismatch> {
        if self.native_id_ref.is_none() && self.native_id_digest.is_none() {
            return Err(Expected::Rule("expected a native identifier or its digest").into());
        }
        Ok(())
    }
}

object! {
    /// The raw payload, which stays in the vault.
    pub struct PayloadRef {
        /// Its reference.
        reference as "ref": Reference,
        /// Its media type.
        media_type: MediaType,
        /// The digest of its bytes.
        digest: Option<Digest>,
        /// Its length in bytes.
        byte_length: Option<Bounded<0, { MAX_SAFE_INTEGER as i64 }>>,
    }
}

object! {
    /// One way in which an event reached the vault.
    pub struct SourceProvenance {
        /// The way.
        kind: Name,
        /// How much it is believed.
        confidence: Confidence,
        /// What it rests on.
        reference as "ref": Option<Reference>,
    }
}

object! {
    /// The native item was edited.
    pub struct EventEdit {
        /// When, if the source says so.
        edited_at: Nullable<Timestamp>,
        /// The event of the version before, if it was captured.
        replaces_ref: Nullable<EventId>,
    }
}

object! {
    /// Which event replaces this one, and why.
    pub struct EventSupersession {
        /// The later event.
        reference as "ref": EventId,
        /// Why.
        reason: Name,
        /// Words for people, 1 to 500 characters.
        note: Option<Text<1, 500>>,
    }
}

object! {
    /// Evidence captured from a native source; not by itself a fact (spec 7.1).
    pub struct SourceEvent {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": SourceEventType,
        /// The event's id.
        id: EventId,
        /// When the record was made.
        created_at: Timestamp,
        /// The adapter instance that made it.
        issuer: Issuer,
        /// Whose context it is.
        subject_ref: Reference,
        /// When it happened.
        occurred_at: Option<Timestamp>,
        /// Present and true if nobody knows when it happened.
        occurred_at_unknown: Option<AlwaysTrue>,
        /// When it was captured.
        captured_at: Timestamp,
        /// Where it was observed.
        source: EventSource,
        /// Its raw payload.
        payload_ref: PayloadRef,
        /// What it is about, 1 to 32 categories.
        classification: UniqueList<Name, 1, 32>,
        /// How it reached the vault, 1 to 32 ways.
        provenance: List<SourceProvenance, 1, 32>,
        /// Present if the native item is an edited version.
        edit: Option<EventEdit>,
        /// Present if another event replaces this one.
        superseded_by: Option<EventSupersession>,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
    flatten
    /// What the adapter preserved of the source.
    evidence: Evidence;
    check = SourceEvent::states_its_time;
}

impl ProtocolObject for SourceEvent {
    const REFUSED_AS: Code = Code::InvalidSourceEvent;
}

impl SourceEvent {
    fn states_its_time(&self) -> Result<(), Mismatch> {
        if self.occurred_at.is_some() == self.occurred_at_unknown.is_some() {
            return Err(Expected::Rule("expected either a time or that it is unknown").into());
        }
        Ok(())
    }
}
