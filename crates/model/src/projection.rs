//! From candidate claims to what a bundle may disclose of them (spec 8.2 steps 5 and 6).

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::alias::{AliasScheme, Provenance};
use crate::canonical::{self, cmp_utf16};
use crate::forbidden::contains_forbidden_material;
use crate::json::read::{FromJson, ToJson};
use crate::json::{self, MAX_DEPTH};
use crate::list::{List, UniqueList};
use crate::object::{ContextItem, OpaqueReference, OpaqueReferenceKind, ProvenanceMap};
use crate::policy::VerifiedDecision;
use crate::refusal::{Code, Place, Refusal};
use crate::scalar::{AnyJson, Confidence, Predicate, Text};
use crate::transform::Effects;

/// The deepest item that still opens: an envelope puts it under itself, the bundle and its context.
const MAX_ITEM_DEPTH: usize = MAX_DEPTH - 3;

/// The context and provenance of a bundle: granted, transformed, sorted, and nothing else.
#[derive(Debug)]
pub struct Projection {
    pub(crate) context: List<ContextItem, 1, 64>,
    /// The context in canonical text.
    pub(crate) context_text: String,
    pub(crate) provenance: ProvenanceMap,
}

impl Projection {
    /// Projects the candidates that a decision grants; others are passed over in silence, so that
    /// nothing tells a withheld claim from one that does not exist.
    ///
    /// A candidate has `claim`, `predicate`, `value`, `confidence`, and its sources as
    /// `provenance_refs` or else `provenance_handles`.
    ///
    /// # Errors
    ///
    /// For a granted candidate: [`Code::InvalidObject`], [`Code::ClaimProvenanceRequired`],
    /// [`Code::InvalidStringList`], [`Code::TooManyProvenanceHandles`], [`Code::InvalidString`] (no
    /// text), [`Code::InvalidClaimText`], [`Code::NonJsonValue`] (no value),
    /// [`Code::InvalidClaimConfidence`], [`Code::BundleContainsForbiddenMaterial`],
    /// [`Code::JsonTooDeep`]. For all of them: [`Code::NoContextGranted`], [`Code::TooManyClaims`].
    pub fn of(
        candidates: &[Value],
        decision: &VerifiedDecision,
        aliases: &AliasScheme,
    ) -> Result<Self, Refusal> {
        let mut projector = Projector::new(decision, aliases);
        let mut items = Vec::new();
        let mut provenance = BTreeMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let at = |code| Refusal::at(code, Place::root().under_index(index));
            let members = candidate
                .as_object()
                .ok_or_else(|| at(Code::InvalidObject))?;
            let Some(predicate) = projector.granted(members) else {
                continue;
            };
            let sources = projector.sources(members).map_err(at)?;
            let item = projector.item(members, predicate, &sources).map_err(at)?;
            let value = item.to_json();
            if contains_forbidden_material(&value) {
                return Err(at(Code::BundleContainsForbiddenMaterial));
            }
            if json::depth(&value) > MAX_ITEM_DEPTH {
                return Err(at(Code::JsonTooDeep));
            }
            items.push((canonical::to_text(&value), item));
            provenance.extend(sources.into_iter().map(|source| {
                let reference = OpaqueReference {
                    kind: OpaqueReferenceKind,
                    reference: source.reference(),
                };
                (source.handle().as_str().to_owned(), reference)
            }));
        }
        items.sort_by(|(left, _), (right, _)| cmp_utf16(left, right));
        let (texts, items): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        if items.is_empty() {
            return Err(Code::NoContextGranted.into());
        }
        Ok(Self {
            context: List::new(items).ok_or(Code::TooManyClaims)?,
            context_text: format!("[{}]", texts.join(",")),
            provenance: ProvenanceMap::new(provenance).ok_or(Code::ClaimProvenanceRequired)?,
        })
    }
}

struct Projector<'a> {
    decision: &'a VerifiedDecision,
    aliases: &'a AliasScheme,
    granted: HashSet<&'a Predicate>,
    effects: Effects,
    /// Sources seen so far: claims of one event share it.
    known: HashMap<String, Provenance>,
}

impl<'a> Projector<'a> {
    fn new(decision: &'a VerifiedDecision, aliases: &'a AliasScheme) -> Self {
        let selectors = decision.decision().granted_selectors.iter();
        Self {
            decision,
            aliases,
            granted: selectors.map(|selector| &selector.predicate).collect(),
            effects: Effects::of(&decision.decision().transform_requirements),
            known: HashMap::new(),
        }
    }

    /// The candidate's predicate, if it may be disclosed.
    fn granted(&self, members: &Map<String, Value>) -> Option<Predicate> {
        let predicate = Predicate::new(members.get("predicate")?.as_str()?)?;
        let is_disclosed = self.granted.contains(&predicate) && !self.effects.redacts(&predicate);
        is_disclosed.then_some(predicate)
    }

    fn sources(&mut self, members: &Map<String, Value>) -> Result<Vec<Provenance>, Code> {
        let present = |name: &str| members.get(name).filter(|value| !value.is_null());
        let sources = present("provenance_refs").or_else(|| present("provenance_handles"));
        let Some(sources) = sources else {
            return Err(Code::ClaimProvenanceRequired);
        };
        let sources = sources.as_array().ok_or(Code::InvalidStringList)?;
        let mut derived = Vec::with_capacity(sources.len());
        for source in sources {
            let source = source.as_str().filter(|source| !source.is_empty());
            let source = source.and_then(|source| self.provenance(source));
            derived.push(source.ok_or(Code::InvalidStringList)?);
        }
        derived.sort_unstable();
        derived.dedup();
        match derived.len() {
            0 => Err(Code::ClaimProvenanceRequired),
            1..=32 => Ok(derived),
            _ => Err(Code::TooManyProvenanceHandles),
        }
    }

    fn provenance(&mut self, source: &str) -> Option<Provenance> {
        if let Some(known) = self.known.get(source) {
            return Some(*known);
        }
        let request = &self.decision.decision().request_ref;
        let provenance = self.aliases.provenance(source, request)?;
        self.known.insert(source.to_owned(), provenance);
        Some(provenance)
    }

    fn item(
        &self,
        members: &Map<String, Value>,
        predicate: Predicate,
        sources: &[Provenance],
    ) -> Result<ContextItem, Code> {
        let handles = sources.iter().map(Provenance::handle).collect();
        let claim = members.get("claim").and_then(Value::as_str);
        let claim = claim
            .filter(|claim| !claim.is_empty())
            .ok_or(Code::InvalidString)?;
        let value = members.get("value").ok_or(Code::NonJsonValue)?.clone();
        let confidence = members.get("confidence").unwrap_or(&Value::Null);
        Ok(ContextItem {
            claim: Text::new(self.effects.apply_to_text(&predicate, claim))
                .ok_or(Code::InvalidClaimText)?,
            value: AnyJson(self.effects.apply_to_value(&predicate, value)),
            confidence: Confidence::from_json(confidence)
                .map_err(|_| Code::InvalidClaimConfidence)?,
            provenance_handles: UniqueList::new(handles).ok_or(Code::ClaimProvenanceRequired)?,
            predicate,
        })
    }
}
