//! What another snapshot would make of a recorded decision.

use cl_model::object::{DecisionState, PolicyDecision};
use cl_model::policy::{Limits, Snapshot};
use cl_model::scalar::Predicate;

use super::evaluation::Decided;

/// A decision, and the snapshot that it was made under.
#[derive(Clone, Copy)]
pub struct Made<'a> {
    /// The decision.
    pub decided: &'a Decided,
    /// The snapshot.
    pub snapshot: &'a Snapshot,
}

/// How two decisions about one request differ, but for ids, times and the snapshot's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The outcome of the first.
    pub recorded: DecisionState,
    /// The outcome of the second; none if the request could not be decided at all.
    pub other: Option<DecisionState>,
    /// Predicates that only the second grants.
    pub gained_selectors: Vec<String>,
    /// Predicates that only the first grants.
    pub lost_selectors: Vec<String>,
    /// Actions that only the second grants.
    pub gained_actions: Vec<String>,
    /// Actions that only the first grants.
    pub lost_actions: Vec<String>,
    /// What else differs.
    pub changed_members: Vec<&'static str>,
}

impl Difference {
    /// How they differ; `None` if they do not.
    pub fn between(recorded: Made<'_>, other: Option<Made<'_>>) -> Option<Self> {
        let state = recorded.decided.state();
        let (selectors, actions) = granted(&recorded.decided.decision);
        let Some(other) = other else {
            return Some(Self {
                recorded: state,
                other: None,
                gained_selectors: Vec::new(),
                lost_selectors: owned(&selectors),
                gained_actions: Vec::new(),
                lost_actions: owned(&actions),
                changed_members: Vec::new(),
            });
        };
        let (other_selectors, other_actions) = granted(&other.decided.decision);
        let difference = Self {
            recorded: state,
            other: Some(other.decided.state()),
            gained_selectors: without(&other_selectors, &selectors),
            lost_selectors: without(&selectors, &other_selectors),
            gained_actions: without(&other_actions, &actions),
            lost_actions: without(&actions, &other_actions),
            changed_members: changed_members(recorded, other),
        };
        difference.is_one().then_some(difference)
    }

    fn is_one(&self) -> bool {
        let scopes = [
            &self.gained_selectors,
            &self.lost_selectors,
            &self.gained_actions,
            &self.lost_actions,
        ];
        Some(self.recorded) != self.other
            || scopes.iter().any(|names| !names.is_empty())
            || !self.changed_members.is_empty()
    }
}

fn changed_members(recorded: Made<'_>, other: Made<'_>) -> Vec<&'static str> {
    let (one, two) = (&recorded.decided.decision, &other.decided.decision);
    let members = [
        (
            one.transform_requirements != two.transform_requirements,
            "transforms",
        ),
        (one.retention != two.retention, "retention"),
        (
            one.onward_disclosure != two.onward_disclosure,
            "onward_disclosure",
        ),
        (
            one.receipt_requirement != two.receipt_requirement,
            "receipts",
        ),
        (
            one.bundle_instructions != two.bundle_instructions,
            "instructions",
        ),
        (has_other_limits(recorded, other), "claim_limits"),
        (one.expires_at != two.expires_at, "expires_at"),
        (one.reason_codes != two.reason_codes, "reason_codes"),
    ];
    let changed = members.into_iter().filter(|(is_changed, _)| *is_changed);
    changed.map(|(_, name)| name).collect()
}

/// Whether claims of a predicate that both grant may be resolved by another rule.
fn has_other_limits(recorded: Made<'_>, other: Made<'_>) -> bool {
    let none = Limits::default();
    let rule = |made: Made<'_>, predicate: &Predicate| {
        let limits = made.decided.limits.get(predicate.as_str());
        made.snapshot
            .resolve_rule(predicate, limits.unwrap_or(&none))
    };
    let of_other = &other.decided.decision.granted_selectors;
    let granted = recorded.decided.decision.granted_selectors.iter();
    granted
        .map(|selector| &selector.predicate)
        .filter(|predicate| of_other.iter().any(|it| it.predicate == **predicate))
        .any(|predicate| rule(recorded, predicate) != rule(other, predicate))
}

/// The granted predicates and actions.
fn granted(decision: &PolicyDecision) -> (Vec<&str>, Vec<&str>) {
    let selectors = decision.granted_selectors.iter();
    let actions = decision.granted_actions.iter();
    (
        selectors.map(|it| it.predicate.as_str()).collect(),
        actions.map(|it| it.as_str()).collect(),
    )
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn without(names: &[&str], others: &[&str]) -> Vec<String> {
    let left = names.iter().filter(|name| !others.contains(name));
    left.map(|name| (*name).to_owned()).collect()
}
