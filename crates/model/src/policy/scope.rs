//! How requested scope divides under a policy.

use std::collections::HashSet;

use super::approval::ApprovalRule;
use super::ruling::{Access, ItemRuling};
use crate::object::DecisionState;

/// One kind of requested scope (selectors or actions), in request order within each group.
#[derive(Debug, Default)]
pub(super) struct Division<'a> {
    /// Allowed at once.
    pub(super) ordinary: Vec<&'a str>,
    /// Allowed after an approval.
    pub(super) gated: Vec<&'a str>,
    /// Not allowed at all.
    pub(super) outside: Vec<&'a str>,
}

impl<'a> Division<'a> {
    /// Divides requested scope by the answers about it; what has no answer is denied.
    pub(super) fn of(requested: &'a [String], rulings: &[ItemRuling]) -> Self {
        let mut division = Self::default();
        for (index, name) in requested.iter().enumerate() {
            let group = match rulings.get(index).map(|ruling| ruling.access) {
                Some(Access::Granted) => &mut division.ordinary,
                Some(Access::Gated) => &mut division.gated,
                Some(Access::Denied) | None => &mut division.outside,
            };
            group.push(name);
        }
        division
    }

    /// Whether the answers of an approval cover all gated scope under `rule`.
    pub(super) fn is_covered(
        &self,
        granted: &HashSet<String>,
        declined: &HashSet<String>,
        rule: ApprovalRule,
    ) -> bool {
        self.gated.iter().all(|name| match rule {
            ApprovalRule::AllOrNothing => granted.contains(*name),
            ApprovalRule::GrantOrDecline => granted.contains(*name) != declined.contains(*name),
        })
    }

    /// What is granted and what is denied, given the gated scope that a valid approval grants, and
    /// all scope that an authentic one declines. What a person declined is never granted, whatever
    /// the policy says about it by now.
    pub(super) fn settle(
        self,
        approved: Option<&HashSet<String>>,
        declined: Option<&HashSet<String>>,
    ) -> Settled<'a> {
        let is_declined = |name: &&str| declined.is_some_and(|declined| declined.contains(*name));
        let is_approved = |name: &&str| {
            approved.is_some_and(|approved| approved.contains(*name)) && !is_declined(name)
        };
        let (refused, ordinary): (Vec<_>, Vec<_>) =
            self.ordinary.into_iter().partition(is_declined);
        let (granted, ungranted): (Vec<_>, Vec<_>) = self.gated.into_iter().partition(is_approved);
        let is_ungranted = approved.is_some() && !ungranted.is_empty();
        Settled {
            is_withheld: !self.outside.is_empty() || !refused.is_empty() || is_ungranted,
            granted: ordinary.into_iter().chain(granted).collect(),
            denied: self
                .outside
                .into_iter()
                .chain(refused)
                .chain(ungranted)
                .collect(),
        }
    }
}

/// Requested scope after approvals.
#[derive(Debug)]
pub(super) struct Settled<'a> {
    pub(super) granted: Vec<&'a str>,
    pub(super) denied: Vec<&'a str>,
    /// Whether something is denied for good, rather than for want of an approval.
    pub(super) is_withheld: bool,
}

impl<'a> Settled<'a> {
    /// What the decision grants: nothing, unless its state allows.
    pub(super) fn granted_in(&self, state: DecisionState) -> Vec<&'a str> {
        if state.allows() {
            self.granted.clone()
        } else {
            Vec::new()
        }
    }

    /// What the decision denies: all that was asked for, if its state denies.
    pub(super) fn denied_in(&self, state: DecisionState, asked: &'a [String]) -> Vec<&'a str> {
        if state == DecisionState::Deny {
            asked.iter().map(String::as_str).collect()
        } else {
            self.denied.clone()
        }
    }
}
