//! Disclosure notes: what the closed bundle has no room for, signed beside it.
//!
//! Notes mark each context item with status, trust, validity and the transforms that ran. A
//! consumer that does not know them still has a complete bundle; items without a note are
//! untrusted.

use std::collections::HashSet;

use crate::digest::Digest;
use crate::document::{Document, Verified};
use crate::envelope::VerifiedBundle;
use crate::json::read::{Expected, Mismatch, ToJson, constant, object};
use crate::list::List;
use crate::object::{ClaimStatus, ContextItem, Validity};
use crate::part::Trust;
use crate::refusal::{Code, Refusal};
use crate::scalar::{Confidence, KeyId, Name};

constant! {
    /// The version of disclosure notes.
    pub struct NotesVersion = 1;
}

object! {
    /// A transform that ran on an item, and how sure it is of its work (spec 11.5).
    pub struct TransformReport {
        /// The transform.
        transform: Name,
        /// Its confidence.
        confidence: Confidence,
    }
}

object! {
    /// What is known about one context item.
    pub struct ItemNote {
        /// The digest of the item's canonical bytes.
        item: Digest,
        /// Where its claim stands.
        status: ClaimStatus,
        /// How far its source is believed.
        trust: Trust,
        /// When its claim holds.
        validity: Validity,
        /// The transforms that ran, up to 16.
        transforms: List<TransformReport, 0, 16>,
    }
}

object! {
    /// The notes of one bundle.
    pub struct DisclosureNotes {
        /// The version of this document.
        notes_version: NotesVersion,
        /// The bundle's integrity digest.
        bundle_digest: Digest,
        /// Notes by item, up to 64.
        items: List<ItemNote, 0, 64>,
        /// The notes key.
        kid: KeyId,
    }
    check = DisclosureNotes::one_note_per_item;
}

impl DisclosureNotes {
    fn one_note_per_item(&self) -> Result<(), Mismatch> {
        let items: HashSet<_> = self.items.iter().map(|note| note.item).collect();
        if items.len() < self.items.len() {
            return Err(Expected::Distinct.into());
        }
        Ok(())
    }
}

impl Document for DisclosureNotes {
    const NAME: &'static str = "disclosure-notes";

    fn kid(&self) -> &KeyId {
        &self.kid
    }
}

/// The digest by which notes name a context item.
pub fn item_digest(item: &ContextItem) -> Digest {
    Digest::of_json(&item.to_json())
}

impl Verified<DisclosureNotes> {
    /// Checks that these notes are about this bundle and about nothing else.
    ///
    /// # Errors
    ///
    /// [`Code::NotesMismatch`] if they name another bundle or an item that it does not have.
    pub fn check_bundle(&self, bundle: &VerifiedBundle) -> Result<(), Refusal> {
        let items: Vec<_> = bundle.bundle().context.iter().map(item_digest).collect();
        let is_of_bundle = self.get().bundle_digest == bundle.digest()
            && self
                .get()
                .items
                .iter()
                .all(|note| items.contains(&note.item));
        if is_of_bundle {
            return Ok(());
        }
        Err(Code::NotesMismatch.into())
    }

    /// The note on an item; an item without one is untrusted.
    pub fn note(&self, item: &ContextItem) -> Option<&ItemNote> {
        let digest = item_digest(item);
        self.get().items.iter().find(|note| note.item == digest)
    }
}
