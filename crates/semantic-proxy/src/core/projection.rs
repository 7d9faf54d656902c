//! From granted claims to items that may leave (spec 11.3 to 11.5).

use std::collections::HashMap;

use cl_model::canonical;
use cl_model::grant::{ProjectionStep, VerifiedGrant};
use cl_model::leak::LeakGuard;
use cl_model::object::ClaimStatus;
use cl_model::part::Trust;
use cl_model::scalar::{Confidence, Handle, Predicate};
use cl_model::time::UnixTime;
use cl_model::transform::{Effects, Transform};
use cl_model::vocabulary::{Datatype, Money, PublishedPredicate, Vocabulary};
use serde_json::Value;

use super::claim::{self, GrantedClaim, Resolved, Validity, Violation};
use super::names::Names;
use super::ranges::generalise;
use super::sentence::{Form, Sentence, plain};

/// What a transform that works by rule is sure of.
const BY_RULE: Confidence = Confidence::FULL;

/// An item in the form in which it leaves.
#[derive(Clone, PartialEq)]
pub struct Item {
    /// The predicate.
    pub predicate: Predicate,
    /// The sentence.
    pub claim: String,
    /// The projected value.
    pub value: Value,
    /// How much the claim is believed.
    pub confidence: Confidence,
    /// Its sources.
    pub handles: Vec<Handle>,
    /// Where the claim stands.
    pub status: ClaimStatus,
    /// How far its source is believed.
    pub trust: Trust,
    /// When it holds.
    pub validity: Validity,
    /// What was done to it, and how surely.
    pub transforms: Vec<(&'static str, Confidence)>,
}

/// What may leave.
#[derive(Default)]
pub struct Projected {
    /// The items, in the vault's order.
    pub items: Vec<Item>,
    /// How many claims were held back, here and by the vault.
    pub withheld: u32,
}

/// What one projection works with.
pub struct Projector<'a> {
    grant: &'a VerifiedGrant,
    vocabulary: &'a Vocabulary,
    names: &'a Names,
    effects: Effects,
    now: UnixTime,
}

/// A value on its way out.
struct Shape {
    value: Value,
    /// The value in words.
    words: String,
    form: Form,
    transforms: Vec<(&'static str, Confidence)>,
}

impl<'a> Projector<'a> {
    /// A projection under a grant.
    pub fn new(
        grant: &'a VerifiedGrant,
        vocabulary: &'a Vocabulary,
        names: &'a Names,
        now: UnixTime,
    ) -> Self {
        let decided = &grant.decision().decision().transform_requirements;
        let planned = grant
            .plan()
            .rules
            .iter()
            .flat_map(|rule| rule.transforms.iter());
        let transforms: Vec<Transform> = decided.iter().chain(planned).cloned().collect();
        Self {
            grant,
            vocabulary,
            names,
            effects: Effects::of(&transforms),
            now,
        }
    }

    /// Checks the vault's answer against the plan, and projects it. Nothing leaves if anything in
    /// it is not as it should be, or if a denied value would leave with it.
    pub fn project(&self, resolved: Resolved) -> Result<Projected, Violation> {
        let sent = resolved.claims.len();
        let granted = claim::check(self.grant, resolved.claims, self.now)?;
        let mut items = Vec::with_capacity(granted.len());
        for claim in granted {
            if let Some(item) = self.item(claim)? {
                items.push(item);
            }
        }
        let here = u32::try_from(sent - items.len()).unwrap_or(u32::MAX);
        let items = without_repeats(items);
        if items.iter().any(|item| leaks(&resolved.guard, item)) {
            return Err(Violation::Leak);
        }
        Ok(Projected {
            items,
            withheld: resolved.withheld.saturating_add(here),
        })
    }

    /// The item of a claim; `None` if its rules leave nothing of it.
    fn item(&self, granted: GrantedClaim<'_>) -> Result<Option<Item>, Violation> {
        let GrantedClaim { rule, claim } = granted;
        let published = self
            .vocabulary
            .find(&claim.predicate)
            .ok_or(Violation::PredicateNotRegistered)?;
        let datatype = published.datatype;
        if claim.datatype.as_str() != datatype.as_str() || !datatype.admits(&claim.value) {
            return Err(Violation::ValueNotOfDatatype);
        }
        if self.effects.redacts(&claim.predicate) {
            return Ok(None);
        }
        let Some(shape) = self.shape(&rule.projections, datatype, &claim.value)? else {
            return Ok(None);
        };
        let (text, value, transforms) = self.finish(published, shape);
        if text.is_empty() {
            return Err(Violation::ValueNotOfDatatype);
        }
        Ok(Some(Item {
            predicate: claim.predicate,
            claim: text,
            value,
            confidence: claim.confidence,
            handles: claim.handles,
            status: claim.status,
            trust: claim.trust,
            validity: claim.validity,
            transforms,
        }))
    }

    /// The plan's projections. A name has no detail left that could be generalised.
    fn shape(
        &self,
        steps: &[ProjectionStep],
        datatype: Datatype,
        value: &Value,
    ) -> Result<Option<Shape>, Violation> {
        let made = |text: String, transform| {
            Some(Shape {
                value: Value::from(text.as_str()),
                words: text,
                form: Form::Bare,
                transforms: vec![(transform, BY_RULE)],
            })
        };
        if steps.contains(&ProjectionStep::Alias) {
            let decision = &self.grant.scope().decision_id;
            let tenant = self.grant.plan().tenant.as_str();
            let name = self.names.of(tenant, decision, datatype, value);
            return Ok(made(name, ProjectionStep::Alias.as_str()));
        }
        if steps.contains(&ProjectionStep::Generalise) {
            let coarser = generalise(datatype, value);
            return Ok(coarser.and_then(|text| made(text, ProjectionStep::Generalise.as_str())));
        }
        whole(datatype, value).map(Some)
    }

    /// The decision's transforms on sentence and value.
    fn finish(
        &self,
        published: &PublishedPredicate,
        shape: Shape,
    ) -> (String, Value, Vec<(&'static str, Confidence)>) {
        let predicate = &published.predicate;
        let Shape {
            value,
            words,
            form,
            mut transforms,
        } = shape;
        let sentence = Sentence::new(published.template.as_str(), form);
        let whole = sentence.fit(&words, str::to_owned);
        let text = sentence.fit(&words, |text| self.effects.apply_to_text(predicate, text));
        let cut = self.effects.apply_to_value(predicate, value.clone());
        if text != whole || cut != value || sentence.shortens(&words) {
            transforms.push(("truncate", BY_RULE));
        }
        (text, cut, transforms)
    }
}

/// A value without a projection, in words.
fn whole(datatype: Datatype, value: &Value) -> Result<Shape, Violation> {
    let (value, words, form, is_changed) = match datatype {
        Datatype::Text | Datatype::Person => {
            let text = value.as_str().ok_or(Violation::ValueNotOfDatatype)?;
            let plain = plain(text);
            if plain.is_empty() {
                return Err(Violation::ValueNotOfDatatype);
            }
            let is_changed = plain != text;
            (Value::from(plain.as_str()), plain, Form::Quoted, is_changed)
        }
        Datatype::Money => {
            let money = Money::read(value).ok_or(Violation::ValueNotOfDatatype)?;
            let amount = value
                .get("amount")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let words = format!("{} {amount}", money.currency);
            (value.clone(), words, Form::Bare, false)
        }
        Datatype::Date | Datatype::Instant => {
            let text = value.as_str().ok_or(Violation::ValueNotOfDatatype)?;
            (value.clone(), text.to_owned(), Form::Bare, false)
        }
        Datatype::Number | Datatype::Boolean => {
            (value.clone(), canonical::to_text(value), Form::Bare, false)
        }
    };
    let cleaned = is_changed.then_some(("clean", BY_RULE));
    Ok(Shape {
        value,
        words,
        form,
        transforms: cleaned.into_iter().collect(),
    })
}

/// Items that a reader cannot tell apart are one: the least that is known about any of them holds
/// for it.
fn without_repeats(items: Vec<Item>) -> Vec<Item> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut distinct: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let handles: Vec<_> = item.handles.iter().map(Handle::as_str).collect();
        let shown = serde_json::json!([
            item.predicate.as_str(),
            item.claim,
            item.value,
            item.confidence.get(),
            handles,
        ]);
        match places.get(&canonical::to_text(&shown)) {
            Some(place) => {
                if let Some(kept) = distinct.get_mut(*place) {
                    kept.trust = kept.trust.min(item.trust);
                    kept.status = kept.status.max(item.status);
                    if kept.validity != item.validity {
                        kept.validity = Validity::default();
                    }
                }
            }
            None => {
                places.insert(canonical::to_text(&shown), distinct.len());
                distinct.push(item);
            }
        }
    }
    distinct
}

fn leaks(guard: &LeakGuard, item: &Item) -> bool {
    guard.finds(&item.claim) || guard.finds(&canonical::to_text(&item.value))
}
