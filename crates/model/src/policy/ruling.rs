//! What a policy answers: how requested scope divides, and which limits apply.

use std::fmt;

use super::question::Question;
use crate::part::{Issuer, Label, PolicySnapshot, RetentionMode, Trust};
use crate::scalar::{Confidence, ReasonCode, Text};
use crate::time::UnixTime;
use crate::transform::Transform;

/// A policy, as the one evaluation asks it.
///
/// The evaluation owns everything that is the same for every policy: what no policy may allow, the
/// precedence of states, approvals, retention, reasons, and the record. A policy only says who may
/// have what, and within which limits. Its answer is a pure function of the question, and what it
/// does not name is denied.
pub trait Policy: fmt::Debug + Send + Sync {
    /// What holds for every decision under this policy.
    fn terms(&self) -> &Terms;

    /// The answer for one request.
    fn rule(&self, question: &Question<'_>) -> Ruling;
}

/// What holds for every decision under a policy.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The version and digest that decisions name.
    pub snapshot: PolicySnapshot,
    /// Who issues decisions.
    pub issuer: Issuer,
    /// How context may be held.
    pub retention_mode: RetentionMode,
    /// The longest retention, in seconds.
    pub max_retention_seconds: u64,
    /// How long a decision holds, in seconds.
    pub decision_ttl_seconds: u64,
    /// Whether receipts are required whatever a request says.
    pub requires_receipts: bool,
    /// Instructions that every bundle carries.
    pub instructions: Vec<Text<1, 500>>,
}

/// How one requested selector or action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is granted at once.
    Granted,
    /// It is granted after an approval.
    Gated,
    /// It is denied.
    Denied,
}

/// A part of a request that a policy can refuse as a whole, with a reason of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The subject.
    Subject,
    /// The requester.
    Requester,
    /// The client instance.
    Client,
    /// How the requester authenticated.
    AuthenticationMethod,
    /// The recipient.
    Recipient,
    /// What the request says about passing context on.
    OnwardDisclosure,
    /// The purpose code.
    Purpose,
    /// The kind of task.
    Task,
    /// The requester's rate.
    Rate,
    /// The anomaly state.
    Anomaly,
}

/// Limits on the claims of one predicate. What is missing does not limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Changes to make before claims leave, each once.
    pub transforms: Vec<Transform>,
    /// The highest sensitivity.
    pub max_label: Option<Label>,
    /// The lowest trust in a source.
    pub min_trust: Option<Trust>,
    /// The lowest confidence.
    pub min_confidence: Option<Confidence>,
}

impl Limits {
    /// Adds other limits: the transforms of both, and the stricter of each limit.
    pub fn restrict(&mut self, other: &Self) {
        for transform in &other.transforms {
            if !self.transforms.contains(transform) {
                self.transforms.push(transform.clone());
            }
        }
        self.max_label = stricter(self.max_label, other.max_label, Label::min);
        self.min_trust = stricter(self.min_trust, other.min_trust, Trust::max);
        self.min_confidence = stricter(self.min_confidence, other.min_confidence, |one, other| {
            if one < other { other } else { one }
        });
    }
}

fn stricter<T>(one: Option<T>, other: Option<T>, choose: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(choose(one, other)),
        (one, other) => one.or(other),
    }
}

/// The answer about one requested selector or action.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRuling {
    /// How it stands.
    pub access: Access,
    /// Whether its claims leave in a reduced form that its transforms do not state.
    pub is_reduced: bool,
    /// Limits on its claims; an action has none of its own.
    pub limits: Limits,
}

impl ItemRuling {
    /// A denial.
    pub const fn denied() -> Self {
        Self {
            access: Access::Denied,
            is_reduced: false,
            limits: Limits {
                transforms: Vec::new(),
                max_label: None,
                min_trust: None,
                min_confidence: None,
            },
        }
    }
}

/// The answer about one request. The default denies all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ruling {
    /// Whether the policy could not be evaluated, which denies.
    pub has_failed: bool,
    /// Parts of the request that deny whatever is asked for.
    pub refused: Vec<Part>,
    /// One answer for each requested selector, in their order.
    pub selectors: Vec<ItemRuling>,
    /// One answer for each requested action, in their order.
    pub actions: Vec<ItemRuling>,
    /// The longest retention, in seconds, if it is shorter than the policy's own.
    pub max_retention_seconds: Option<u64>,
    /// Whether the recipient may not pass context on, whatever the request says.
    pub forbids_onward_disclosure: bool,
    /// When what the answer depends on ends, if it does.
    pub ends_at: Option<UnixTime>,
    /// Reasons of the policy's own, recorded after those of the evaluation.
    pub reasons: Vec<ReasonCode>,
}

impl Ruling {
    pub(super) fn refuses(&self, part: Part) -> bool {
        self.refused.contains(&part)
    }
}
