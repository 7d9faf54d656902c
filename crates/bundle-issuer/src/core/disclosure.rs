//! What the semantic proxy sent, compared with the plan.

use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::json::read::Nullable;
use cl_model::json::{self, Limits};
use cl_model::list::List;
use cl_model::notes::TransformReport;
use cl_model::object::{ClaimStatus, Validity};
use cl_model::part::Trust;
use cl_model::scalar::{Confidence, Handle, Name, Predicate};
use cl_model::time::Timestamp;
use cl_wire::semantic::v1::ProjectedItem;
use cl_wire::time;
use serde_json::Value;

/// The most items of one bundle.
pub const MAX_ITEMS: usize = 64;

const MAX_CLAIM_CHARS: usize = 2000;
const MAX_VALUE_BYTES: usize = 16 * 1024;
const MAX_HANDLES: usize = 32;

/// An item that the plan allows.
#[derive(Clone, PartialEq)]
pub struct Disclosed {
    /// The predicate.
    pub predicate: Predicate,
    /// The sentence.
    pub claim: String,
    /// The value.
    pub value: Value,
    /// How much it is believed.
    pub confidence: Confidence,
    /// The minted names of its sources, in order.
    pub handles: Vec<Handle>,
    /// Where its claim stands.
    pub status: ClaimStatus,
    /// How far its source is believed.
    pub trust: Trust,
    /// When its claim holds.
    pub validity: Validity,
    /// What was done to it.
    pub transforms: List<TransformReport, 0, 16>,
}

/// The proxy sent something that the plan does not allow, or that is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy's answer is not what the plan allows")]
pub struct OutsidePlan;

/// The items of an answer. One that departs from the plan refuses all of them.
pub fn read(
    items: Vec<ProjectedItem>,
    grant: &VerifiedGrant,
) -> Result<Vec<Disclosed>, OutsidePlan> {
    if items.len() > MAX_ITEMS {
        return Err(OutsidePlan);
    }
    let read = items.into_iter().map(|item| read_item(item, grant));
    read.collect::<Option<_>>().ok_or(OutsidePlan)
}

fn read_item(item: ProjectedItem, grant: &VerifiedGrant) -> Option<Disclosed> {
    let predicate = Predicate::new(item.predicate)?;
    let mut rules = grant.plan().rules.iter();
    let rule = rules.find(|rule| rule.predicate == predicate)?;
    let confidence = Confidence::new(item.confidence)?;
    let status = ClaimStatus::parse(&item.status)?;
    let trust = Trust::parse(&item.trust)?;
    let is_allowed = confidence >= rule.min_confidence
        && trust >= rule.min_trust
        && rule.statuses.contains(&status)
        && (1..=MAX_CLAIM_CHARS).contains(&item.claim.chars().count())
        && !item.claim.chars().any(char::is_control);
    is_allowed.then_some(())?;
    let value = json::parse(&item.value, Limits::network(MAX_VALUE_BYTES)).ok()?;
    let is_canonical = canonical::to_text(&value).as_bytes() == item.value;
    is_canonical.then_some(())?;
    let reports = item.transforms.into_iter().map(|transform| {
        Some(TransformReport {
            transform: Name::new(transform.name)?,
            confidence: Confidence::new(transform.confidence)?,
        })
    });
    Some(Disclosed {
        predicate,
        claim: item.claim,
        value,
        confidence,
        handles: read_handles(item.provenance_handles, grant)?,
        status,
        trust,
        validity: Validity {
            from: read_time(item.valid_from)?,
            expires_at: read_time(item.valid_until)?,
        },
        transforms: List::new(reports.collect::<Option<_>>()?)?,
    })
}

fn read_handles(texts: Vec<String>, grant: &VerifiedGrant) -> Option<Vec<Handle>> {
    let names = AliasScheme::Minted(grant.plan().subject_alias.clone());
    let request = &grant.decision().decision().request_ref;
    let mut handles = Vec::with_capacity(texts.len());
    for text in texts {
        names.provenance(&text, request)?;
        handles.push(Handle::new(text)?);
    }
    handles.sort_unstable();
    let is_distinct = handles.windows(2).all(|pair| pair.first() != pair.last());
    ((1..=MAX_HANDLES).contains(&handles.len()) && is_distinct).then_some(handles)
}

fn read_time(time: Option<prost_types::Timestamp>) -> Option<Nullable<Timestamp>> {
    let Some(time) = time else {
        return Some(Nullable(None));
    };
    time::read(&time).map(|time| Nullable(Some(time.into())))
}
