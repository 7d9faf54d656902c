//! `context_claim` (spec 7.2).

use super::{Evidence, ProtocolObject};
use crate::json::read::{Expected, Mismatch, Nullable, choice, constant, object};
use crate::list::UniqueList;
use crate::part::{Integrity, Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{AnyJson, Confidence, Name, Predicate, Reference, Text};
use crate::time::Timestamp;
use crate::urn::ClaimId;

constant! {
    /// `type` of a context claim.
    pub struct ContextClaimType = "context_claim";
}

choice! {
    /// Where a claim stands.
    pub enum ClaimStatus {
        /// Somebody stated it.
        Asserted = "asserted",
        /// It was derived from sources.
        Derived = "derived",
        /// Another claim contradicts it.
        Disputed = "disputed",
        /// Another claim replaces it.
        Superseded = "superseded",
        /// It was withdrawn.
        Retracted = "retracted",
    }
}

object! {
    /// A value with the name of its type.
    pub struct TypedValue {
        /// The value.
        value: AnyJson,
        /// Its datatype.
        datatype: Name,
    }
}

object! {
    /// When a claim holds.
    pub struct Validity {
        /// From when, if known.
        from: Nullable<Timestamp>,
        /// Until when, if it ends.
        expires_at: Nullable<Timestamp>,
    }
}

object! {
    /// The source of a claim was edited.
    pub struct ClaimEdit {
        /// When, if the source says so.
        edited_at: Nullable<Timestamp>,
        /// The claim of the version before, if there is one.
        replaces_ref: Nullable<ClaimId>,
    }
}

object! {
    /// Which claim replaces this one, and why (spec 7.2).
    pub struct ClaimSupersession {
        /// The later claim.
        reference as "ref": ClaimId,
        /// Why.
        reason: Name,
        /// Words for people, 1 to 500 characters.
        note: Option<Text<1, 500>>,
    }
}

object! {
    /// A typed statement with provenance, confidence, validity and status (spec 7.2).
    pub struct ContextClaim {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": ContextClaimType,
        /// The claim's id.
        id: ClaimId,
        /// When it was made.
        created_at: Timestamp,
        /// The extractor or person that made it.
        issuer: Issuer,
        /// What it is about.
        subject_ref: Reference,
        /// What it states.
        predicate: Predicate,
        /// The value.
        object: TypedValue,
        /// Where it stands.
        status: ClaimStatus,
        /// How much it is believed.
        confidence: Confidence,
        /// When it holds.
        validity: Validity,
        /// What supports it, 1 to 64.
        provenance_refs: UniqueList<Reference, 1, 64>,
        /// The claims that it contradicts, 1 to 64; both stay.
        contradicts: Option<UniqueList<ClaimId, 1, 64>>,
        /// Present if its source was edited.
        edit: Option<ClaimEdit>,
        /// Present if another claim replaces it.
        superseded_by: Option<ClaimSupersession>,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
    flatten
    /// What the adapter preserved of the source.
    evidence: Evidence;
    check = ContextClaim::names_its_successor;
}

impl ProtocolObject for ContextClaim {
    const REFUSED_AS: Code = Code::InvalidContextClaim;
}

impl ContextClaim {
    fn names_its_successor(&self) -> Result<(), Mismatch> {
        if self.status == ClaimStatus::Superseded && self.superseded_by.is_none() {
            return Err(Expected::Rule("expected a superseded claim to name its successor").into());
        }
        Ok(())
    }
}
