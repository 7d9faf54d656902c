//! From disclosed items to signed bytes: the envelope, and the notes beside it.

use std::collections::HashMap;

use cl_model::alias::AliasScheme;
use cl_model::digest::Digest;
use cl_model::document::{self, Signed};
use cl_model::envelope::{TrustedAuthority, VerifiedBundle};
use cl_model::grant::VerifiedGrant;
use cl_model::issue::Issuance;
use cl_model::list::{List, UniqueList};
use cl_model::notes::{DisclosureNotes, ItemNote, NotesVersion, item_digest};
use cl_model::object::{ContextItem, ContextRequest, ScopedContextBundle};
use cl_model::part::Issuer;
use cl_model::policy::Preflight;
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::{AnyJson, Handle, Text};
use cl_model::time::UnixTime;
use cl_model::transform::Effects;
use serde_json::{Value, json};

use super::disclosure::Disclosed;
use super::keys::Keys;

/// What goes to the recipient.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The envelope's bytes.
    pub envelope: Vec<u8>,
    /// The scope statement, as the policy engine signed it.
    pub scope: Signed,
    /// The notes.
    pub notes: Signed,
}

/// A bundle that is signed and stays inside its grant.
pub struct Assembled {
    /// The bundle.
    pub bundle: ScopedContextBundle,
    /// The digest of its contents.
    pub digest: Digest,
    /// What goes to the recipient.
    pub content: Content,
}

/// What a bundle is assembled from.
#[derive(Clone, Copy)]
pub struct Assembly<'a> {
    /// The request.
    pub request: &'a ContextRequest,
    /// The grant.
    pub grant: &'a VerifiedGrant,
    /// Its scope statement, as it was signed.
    pub scope: &'a Signed,
    /// The items.
    pub items: &'a [Disclosed],
    /// The issuer.
    pub issuer: &'a Issuer,
    /// Its keys.
    pub keys: &'a Keys,
    /// The time of issue.
    pub now: UnixTime,
}

impl Assembly<'_> {
    /// Assembles, signs, and checks the result as a consumer will: a bundle outside its grant does
    /// not leave.
    ///
    /// # Errors
    ///
    /// Those of [`Issuance::issue`] and of the consumer's checks.
    pub fn assemble(&self) -> Result<Assembled, Refusal> {
        let claims: Vec<_> = self.items.iter().map(candidate).collect();
        let pending = Issuance {
            request: self.request,
            decision: self.grant.decision(),
            claims: &claims,
            issuer: self.issuer,
            aliases: &AliasScheme::Minted(self.grant.plan().subject_alias.clone()),
            key: &self.keys.bundle,
            preflight: Preflight::Available,
            latest_end: Some(self.grant.scope().expires_at.instant()),
            now: self.now,
        }
        .issue()?;
        let (envelope, bundle) = pending.set_aside();
        let envelope = envelope.into_bytes();
        let authority = TrustedAuthority::new(self.keys.bundle.public_key());
        let verified = VerifiedBundle::open(&envelope, &authority)?;
        self.grant.check_bundle(&verified)?;
        let digest = verified.digest();
        let notes = self.notes(&bundle, digest)?;
        Ok(Assembled {
            digest,
            content: Content {
                envelope,
                scope: self.scope.clone(),
                notes: document::sign(&notes, &self.keys.notes)?,
            },
            bundle,
        })
    }

    fn notes(
        &self,
        bundle: &ScopedContextBundle,
        digest: Digest,
    ) -> Result<DisclosureNotes, Refusal> {
        let decided = &self.grant.decision().decision().transform_requirements;
        let effects = Effects::of(decided);
        let mut known = HashMap::with_capacity(self.items.len());
        for item in self.items {
            known.insert(item_digest(&context_item(item, &effects)?), item);
        }
        let mut notes: Vec<ItemNote> = Vec::with_capacity(bundle.context.len());
        for item in bundle.context.iter() {
            let digest = item_digest(item);
            let item = known.get(&digest).ok_or(Code::NotesMismatch)?;
            if notes.iter().any(|note| note.item == digest) {
                continue;
            }
            notes.push(ItemNote {
                item: digest,
                status: item.status,
                trust: item.trust,
                validity: item.validity.clone(),
                transforms: item.transforms.clone(),
            });
        }
        Ok(DisclosureNotes {
            notes_version: NotesVersion,
            bundle_digest: digest,
            items: List::new(notes).ok_or(Code::TooManyClaims)?,
            kid: self.keys.notes.kid().clone(),
        })
    }
}

fn candidate(item: &Disclosed) -> Value {
    let handles: Vec<_> = item.handles.iter().map(Handle::as_str).collect();
    json!({
        "claim": item.claim,
        "predicate": item.predicate.as_str(),
        "value": item.value,
        "confidence": item.confidence.get(),
        "provenance_handles": handles,
    })
}

/// The context item that becomes of a disclosed one.
fn context_item(item: &Disclosed, effects: &Effects) -> Result<ContextItem, Refusal> {
    let claim = effects.apply_to_text(&item.predicate, &item.claim);
    let value = effects.apply_to_value(&item.predicate, item.value.clone());
    let handles = UniqueList::new(item.handles.clone());
    Ok(ContextItem {
        claim: Text::new(claim).ok_or(Code::InvalidClaimText)?,
        predicate: item.predicate.clone(),
        value: AnyJson(value),
        confidence: item.confidence,
        provenance_handles: handles.ok_or(Code::ClaimProvenanceRequired)?,
    })
}
