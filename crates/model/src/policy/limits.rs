//! What a snapshot limits beside its policy: requests, and the claims of a grant.

use super::registry::Assurance;
use super::{Limits, Snapshot};
use crate::grant::ResolveRule;
use crate::list::UniqueList;
use crate::object::{ClaimStatus, ContextRequest};
use crate::part::{Label, Trust};
use crate::scalar::{Confidence, Predicate, Reference};
use crate::time::UnixTime;

pub(super) const DEFAULT_STATUSES: [ClaimStatus; 3] = [
    ClaimStatus::Asserted,
    ClaimStatus::Derived,
    ClaimStatus::Disputed,
];

impl Snapshot {
    /// The reasons of this snapshot to deny a request that its policy is not asked about: who may
    /// act through which client, its own end, and its limits. Client instance, principal and
    /// assurance are the requester's, as the host authenticated it.
    pub fn denials(
        &self,
        request: &ContextRequest,
        client_instance: &Reference,
        principal: &Reference,
        assurance: Assurance,
        now: UnixTime,
    ) -> Vec<&'static str> {
        let limits = &self.document.limits;
        let is_over = |limit: Option<i64>, count: usize| {
            limit.is_some_and(|limit| i64::try_from(count).map_or(true, |count| count > limit))
        };
        let latest_end = limits
            .max_lifetime_seconds
            .map(|seconds| now.plus_seconds(seconds.get().unsigned_abs()));
        let reasons = [
            (
                !self.is_registered(client_instance, principal),
                "CLIENT_NOT_REGISTERED",
            ),
            (
                limits
                    .min_assurance
                    .is_some_and(|lowest| assurance < lowest),
                "ASSURANCE_TOO_LOW",
            ),
            (self.is_expired(now), "POLICY_SNAPSHOT_EXPIRED"),
            (
                is_over(
                    limits.max_selectors.map(|limit| limit.get()),
                    request.selectors.len(),
                ),
                "SELECTOR_LIMIT_EXCEEDED",
            ),
            (
                is_over(
                    limits.max_actions.map(|limit| limit.get()),
                    request.requested_actions.len(),
                ),
                "ACTION_LIMIT_EXCEEDED",
            ),
            (
                latest_end.is_some_and(|latest| request.expires_at.instant() > latest),
                "REQUEST_LIFETIME_EXCEEDED",
            ),
        ];
        let applying = reasons.into_iter().filter(|(applies, _)| *applies);
        applying.map(|(_, reason)| reason).collect()
    }

    /// How claims of a granted predicate may be resolved: within the snapshot's limits and those of
    /// the decision, whichever are stricter; `None` if it is not registered.
    pub fn resolve_rule(&self, predicate: &Predicate, decided: &Limits) -> Option<ResolveRule> {
        let registered = self.document.predicates.get(predicate)?;
        let own = self.document.resolve.get(predicate);
        let statuses = own.and_then(|own| own.statuses.clone());
        let mut limits = Limits {
            transforms: Vec::new(),
            max_label: own.and_then(|own| own.max_label).or(registered.label),
            min_trust: own.and_then(|own| own.min_trust),
            min_confidence: own.and_then(|own| own.min_confidence),
        };
        limits.restrict(decided);
        Some(ResolveRule {
            predicate: predicate.clone(),
            max_label: limits.max_label.unwrap_or(Label::Restricted),
            min_trust: limits.min_trust.unwrap_or(Trust::Untrusted),
            min_confidence: match limits.min_confidence {
                Some(confidence) => confidence,
                None => Confidence::new(0.0)?,
            },
            statuses: match statuses {
                Some(statuses) => statuses,
                None => UniqueList::new(DEFAULT_STATUSES.to_vec())?,
            },
            transforms: UniqueList::new(limits.transforms)?,
            projections: match own.and_then(|own| own.projections.clone()) {
                Some(projections) => projections,
                None => UniqueList::new(Vec::new())?,
            },
        })
    }
}
