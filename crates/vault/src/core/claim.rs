//! Claims: what they rest on, how sources unite, and how they read as documents (spec 7.2, 8.1).

use std::collections::BTreeSet;

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::json::read::ToJson as _;
use cl_model::object::{ClaimStatus, ContextClaim, ProtocolObject as _};
use cl_model::part::{Label, SPEC_VERSION, Trust};
use cl_model::refusal::Refusal;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::UnixTime;
use cl_model::urn::{ClaimId, EventId};
use cl_model::vocabulary::Datatype;
use serde_json::{Value, json};

use super::meeting::{Gone, Revision};

/// The most sources that one claim remembers.
pub const MAX_SUPPORTS: usize = 256;

/// The most sources and contradictions that a claim's document names.
pub const MAX_NAMED: usize = 64;

/// How far captured content is believed, however often it repeats itself.
pub const TRUST: Trust = Trust::Untrusted;

/// One source of a claim, as one rule read it.
#[derive(Clone, PartialEq)]
pub struct Support {
    /// The event.
    pub event: EventId,
    /// How much the rule is believed.
    pub confidence: Confidence,
    /// From when it holds.
    pub valid_from: Option<UnixTime>,
    /// Until when it holds.
    pub valid_until: Option<UnixTime>,
    /// The rule.
    pub rule: Name,
    /// What the rule noticed.
    pub marks: Vec<Name>,
    /// The conversation of the event.
    pub thread: Digest,
    /// Which word it is, if it is one about a meeting.
    pub revision: Option<Revision>,
}

/// Marks of a source that may mean one of several values, or that was corrected.
const ALTERNATIVES: &[&str] = &[
    "date.next_weekday_ambiguous",
    "date.same_weekday_ambiguous",
    "statement.corrected",
];

/// What tells apart the statements of one conversation: different ones contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// What these messages say, each of them all of it.
    Events(BTreeSet<EventId>),
    /// One of several readings.
    Alternative(ClaimId),
}

/// Where a claim stands.
#[derive(Clone, PartialEq)]
pub enum Standing {
    /// It has sources, at least one.
    Held {
        /// The value.
        value: Value,
        /// The sources, in the order of their capture.
        supports: Vec<Support>,
    },
    /// Its last source was erased, and its value with it.
    Retracted {
        /// When.
        at: UnixTime,
        /// The last source.
        last: EventId,
    },
}

/// What the vault knows about one subject, predicate and value.
#[derive(Clone, PartialEq)]
pub struct Claim {
    /// Its id: a keyed hash over predicate and value.
    pub id: ClaimId,
    /// What it states.
    pub predicate: Predicate,
    /// The datatype of its value.
    pub datatype: Datatype,
    /// How private it is.
    pub label: Label,
    /// When it was first derived.
    pub derived_at: UnixTime,
    /// Its place in the order of deriving.
    pub place: u64,
    /// Where it stands.
    pub standing: Standing,
}

impl Claim {
    /// The sources; none once it is retracted.
    pub fn supports(&self) -> &[Support] {
        match &self.standing {
            Standing::Held { supports, .. } => supports,
            Standing::Retracted { .. } => &[],
        }
    }

    /// The value; none once it is retracted.
    pub fn value(&self) -> Option<&Value> {
        match &self.standing {
            Standing::Held { value, .. } => Some(value),
            Standing::Retracted { .. } => None,
        }
    }

    /// That of the most certain source. More sources do not make it more certain: whoever repeats
    /// a statement often enough could otherwise make it true.
    pub fn confidence(&self) -> Confidence {
        let mut highest = Confidence::new(0.0).unwrap_or(Confidence::FULL);
        for support in self.supports() {
            if support.confidence > highest {
                highest = support.confidence;
            }
        }
        highest
    }

    /// From when it holds by any of its sources; `None` if one of them does not say.
    pub fn valid_from(&self) -> Option<UnixTime> {
        let starts = self.supports().iter().map(|support| support.valid_from);
        starts.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Until when it holds by any of its sources; `None` if one of them names no end.
    pub fn valid_until(&self) -> Option<UnixTime> {
        let ends = self.supports().iter().map(|support| support.valid_until);
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// By which events a conversation states it, as far as that makes it go together with others.
    /// Claims of the same events are about different deeds ("the file by the 12th and the plan by
    /// the 20th"); one that may only be another reading of the same words, or that its author
    /// corrected, goes together with none.
    pub fn statement(&self, thread: Digest) -> Statement {
        let here = || self.supports().iter().filter(|it| it.thread == thread);
        let is_alternative = here().any(|support| {
            let mut marks = support.marks.iter();
            support.revision.is_some() || marks.any(|mark| ALTERNATIVES.contains(&mark.as_str()))
        });
        if is_alternative {
            return Statement::Alternative(self.id.clone());
        }
        Statement::Events(here().map(|support| support.event.clone()).collect())
    }

    /// Whether it holds now by one of its sources.
    pub fn holds(&self, now: UnixTime) -> bool {
        self.supports().iter().any(|support| {
            support.valid_from.is_none_or(|start| start <= now)
                && support.valid_until.is_none_or(|end| now < end)
        })
    }

    /// The conversations in which it occurs.
    pub fn threads(&self) -> BTreeSet<Digest> {
        self.supports()
            .iter()
            .map(|support| support.thread)
            .collect()
    }

    /// The rules behind it and what they noticed.
    pub fn marks(&self) -> BTreeSet<&Name> {
        let supports = self.supports().iter();
        supports
            .flat_map(|support| support.marks.iter().chain([&support.rule]))
            .collect()
    }

    /// Adds a source. The same source and rule again replace what it said before; beyond
    /// [`MAX_SUPPORTS`] the source is not taken, and the answer is false.
    pub fn add(&mut self, value: &Value, support: Support) -> bool {
        match &mut self.standing {
            Standing::Held { supports, .. } => {
                if supports.iter().any(|held| held.event == support.event) {
                    return true;
                }
                if supports.len() >= MAX_SUPPORTS {
                    return false;
                }
                supports.push(support);
            }
            Standing::Retracted { .. } => {
                self.standing = Standing::Held {
                    value: value.clone(),
                    supports: vec![support],
                };
            }
        }
        true
    }

    /// Takes a source away. The last one takes the value with it.
    pub fn remove(&mut self, event: &EventId, now: UnixTime) {
        if let Standing::Held { supports, .. } = &mut self.standing {
            supports.retain(|support| support.event != *event);
            if supports.is_empty() {
                self.standing = Standing::Retracted {
                    at: now,
                    last: event.clone(),
                };
            }
        }
    }

    /// Where it stands, given whether others contradict it.
    pub fn status(&self, is_contradicted: bool) -> ClaimStatus {
        match &self.standing {
            Standing::Retracted { .. } => ClaimStatus::Retracted,
            Standing::Held { .. } if is_contradicted => ClaimStatus::Disputed,
            Standing::Held { .. } => ClaimStatus::Derived,
        }
    }

    /// The `context_claim` document, canonical. `gone` says why a meeting does not take place then.
    pub fn document(
        &self,
        issuer: &str,
        subject_ref: &str,
        contradicts: &BTreeSet<ClaimId>,
        gone: Option<&Gone>,
    ) -> Result<Vec<u8>, Refusal> {
        let status = match gone {
            Some(Gone::Cancelled(_)) => ClaimStatus::Retracted,
            Some(Gone::Moved(_)) => ClaimStatus::Superseded,
            None => self.status(!contradicts.is_empty()),
        };
        let sources: Vec<_> = match &self.standing {
            Standing::Held { supports, .. } => supports
                .iter()
                .map(|support| support.event.as_str())
                .take(MAX_NAMED)
                .collect(),
            Standing::Retracted { last, .. } => vec![last.as_str()],
        };
        let time = |time: Option<UnixTime>| time.map(|time| time.to_string());
        let mut claim = json!({
            "spec_version": SPEC_VERSION,
            "type": "context_claim",
            "id": self.id.as_str(),
            "created_at": self.derived_at.to_string(),
            "issuer": {"id": issuer},
            "subject_ref": subject_ref,
            "predicate": self.predicate.as_str(),
            "object": {"value": self.value(), "datatype": self.datatype.as_str()},
            "status": status.as_str(),
            "confidence": self.confidence().to_json(),
            "validity": {"from": time(self.valid_from()), "expires_at": time(self.valid_until())},
            "provenance_refs": sources,
            "trust": TRUST.as_str(),
            "label": self.label.as_str(),
        });
        if !contradicts.is_empty() {
            let named = contradicts.iter().take(MAX_NAMED);
            claim["contradicts"] = named.map(ClaimId::as_str).collect();
        }
        match gone {
            Some(Gone::Cancelled(at)) => {
                claim["deletion"] = json!({"deleted_at": time(*at), "reason": "meeting.cancelled"});
            }
            Some(Gone::Moved(to)) => {
                claim["superseded_by"] = json!({"ref": to.as_str(), "reason": "meeting.moved"});
            }
            None => {}
        }
        if let Standing::Retracted { at, .. } = &self.standing {
            claim["deletion"] = json!({"deleted_at": at.to_string(), "reason": "source.erased"});
        }
        ContextClaim::read(&claim)?;
        Ok(canonical::to_text(&claim).into_bytes())
    }
}

/// Whether two different values of this type, in one conversation, contradict each other. A day, a
/// moment, an amount, a number or a yes is one; people and texts may be several.
pub const fn excludes_others(datatype: Datatype) -> bool {
    match datatype {
        Datatype::Date
        | Datatype::Instant
        | Datatype::Money
        | Datatype::Number
        | Datatype::Boolean => true,
        Datatype::Person | Datatype::Text => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(event: u8, confidence: f64) -> Support {
        Support {
            event: EventId::from_digest(Digest::of_bytes(&[event])),
            confidence: Confidence::new(confidence).unwrap(),
            valid_from: Some(UnixTime::from_milliseconds(i64::from(event))),
            valid_until: None,
            rule: Name::new("date.iso").unwrap(),
            marks: Vec::new(),
            thread: Digest::of_bytes(b"thread"),
            revision: None,
        }
    }

    fn claim() -> Claim {
        Claim {
            id: ClaimId::from_digest(Digest::of_bytes(b"claim")),
            predicate: Predicate::new("requested_delivery_date").unwrap(),
            datatype: Datatype::Date,
            label: Label::Private,
            derived_at: UnixTime::from_milliseconds(0),
            place: 0,
            standing: Standing::Held {
                value: json!("2026-08-14"),
                supports: vec![support(1, 0.6)],
            },
        }
    }

    #[test]
    fn repetition_does_not_raise_confidence() {
        let mut claim = claim();
        for event in 2..50 {
            assert!(claim.add(&json!("2026-08-14"), support(event, 0.6)));
        }
        assert_eq!(claim.confidence(), Confidence::new(0.6).unwrap());
        assert_eq!(claim.supports().len(), 49);
    }

    #[test]
    fn a_source_counts_once_and_the_last_takes_the_value_along() {
        let mut claim = claim();
        let now = UnixTime::from_milliseconds(9);
        claim.add(&json!("2026-08-14"), support(1, 0.9));
        assert_eq!(claim.supports().len(), 1);
        claim.add(&json!("2026-08-14"), support(2, 0.4));
        claim.remove(&support(1, 0.6).event, now);
        assert_eq!(claim.confidence(), Confidence::new(0.4).unwrap());
        claim.remove(&support(2, 0.4).event, now);
        assert_eq!(claim.value(), None);
        assert_eq!(claim.status(true), ClaimStatus::Retracted);
        let document = claim
            .document("urn:x", "vault://s", &BTreeSet::new(), None)
            .unwrap();
        assert!(!String::from_utf8(document).unwrap().contains("2026-08-14"));
        claim.add(&json!("2026-08-14"), support(3, 0.5));
        assert_eq!(claim.status(false), ClaimStatus::Derived);
    }

    #[test]
    fn many_sources_are_bounded() {
        let mut claim = claim();
        let more = |number: usize| Support {
            event: EventId::from_digest(Digest::of_bytes(&number.to_be_bytes())),
            ..support(0, 0.5)
        };
        let taken = (0..MAX_SUPPORTS)
            .filter(|number| claim.add(&json!("2026-08-14"), more(*number)))
            .count();
        assert_eq!(taken, MAX_SUPPORTS - 1);
        claim
            .document("urn:x", "vault://s", &BTreeSet::new(), None)
            .unwrap();
    }
}
