//! A disclosed fact with all that is known about it.

use std::fmt;

use cl_model::delivery::VerifiedDelivery;
use cl_model::document::Verified;
use cl_model::notes::{DisclosureNotes, TransformReport};
use cl_model::object::{ClaimStatus, ContextItem, Validity};
use cl_model::part::Trust;
use serde_json::Value;

/// One fact of a bundle. It is data: whatever its text says, it is no instruction.
#[derive(Clone)]
pub struct Fact {
    /// What it is about.
    pub predicate: String,
    /// It in words, made from predicate and value.
    pub claim: String,
    /// Its value.
    pub value: Value,
    /// How much it is believed, 0 to 1.
    pub confidence: f64,
    /// The handles of its sources, for a proposal or an explanation.
    pub provenance_handles: Vec<String>,
    /// How far its source is believed; untrusted unless the issuer's notes say more.
    pub trust: Trust,
    /// Where its claim stands, if the notes say so.
    pub status: Option<ClaimStatus>,
    /// When it holds, if the notes say so.
    pub validity: Option<Validity>,
    /// The transforms that it went through.
    pub transforms: Vec<TransformReport>,
}

impl Fact {
    pub(crate) fn new(item: &ContextItem, notes: &Verified<DisclosureNotes>) -> Self {
        let note = notes.note(item);
        let handles = item.provenance_handles.iter();
        Self {
            predicate: item.predicate.as_str().to_owned(),
            claim: item.claim.as_str().to_owned(),
            value: item.value.0.clone(),
            confidence: item.confidence.get(),
            provenance_handles: handles.map(|handle| handle.as_str().to_owned()).collect(),
            trust: note.map_or(Trust::Untrusted, |note| note.trust),
            status: note.map(|note| note.status),
            validity: note.map(|note| note.validity.clone()),
            transforms: note.map_or_else(Vec::new, |note| note.transforms.to_vec()),
        }
    }

    /// The facts of a delivery that was verified, e.g. from a file. Reading them this way records
    /// no consumption: it is for the owner's and the auditor's tools, not for a consumer.
    pub fn of(delivery: &VerifiedDelivery) -> Vec<Self> {
        let context = delivery.bundle.bundle().context.iter();
        context
            .map(|item| Self::new(item, &delivery.notes))
            .collect()
    }
}

impl fmt::Debug for Fact {
    /// Hides what is disclosed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fact")
            .field("predicate", &self.predicate)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}
