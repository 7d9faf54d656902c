//! The evaluation of one request: a pure function of what is recorded (spec 9.2).

use std::collections::BTreeMap;

use cl_model::object::{DecisionState, PolicyDecision, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, Limits, Preflight, PresentedApproval, Snapshot,
    VerifierOutcome,
};
use cl_model::record::Record;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;

use super::facts::Facts;
use super::request::ReadRequest;

/// Everything that one decision depends on. Equal inputs give equal bytes.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The request.
    pub request: &'a ReadRequest,
    /// Who sent it.
    pub facts: &'a Facts,
    /// The policy in force.
    pub snapshot: &'a Snapshot,
    /// What the receipt preflight found.
    pub preflight: Preflight,
    /// The time of evaluation.
    pub now: UnixTime,
}

/// A decision: its record, and what it says.
#[derive(Clone)]
pub struct Decided {
    /// The record, with its exact bytes.
    pub record: Record,
    /// What it says.
    pub decision: PolicyDecision,
    /// Limits on the claims of each granted predicate.
    pub limits: BTreeMap<String, Limits>,
}

impl Decided {
    /// Its outcome.
    pub const fn state(&self) -> DecisionState {
        self.decision.decision
    }
}

impl Inputs<'_> {
    /// Evaluates the request.
    pub fn decide(&self) -> Result<Decided, Refusal> {
        let asked = self.asked();
        let outcome = Evaluation {
            request: &asked,
            policy: self.snapshot.policy(),
            approval: &PresentedApproval::None,
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier: VerifierOutcome::Absent,
            preflight: self.preflight,
            now: self.now,
        }
        .decide()?;
        Ok(Decided {
            decision: PolicyDecision::read(outcome.record.value())?,
            record: outcome.record,
            limits: outcome.limits,
        })
    }

    /// The request, with the reasons to deny it that lie outside the list-style policy.
    fn asked(&self) -> Asked {
        let (facts, snapshot) = (self.facts, self.snapshot);
        let request = &self.request.request;
        let limits = snapshot.limits();
        let is_over = |limit: Option<i64>, count: usize| {
            limit.is_some_and(|limit| i64::try_from(count).map_or(true, |count| count > limit))
        };
        let latest_end = limits
            .max_lifetime_seconds
            .map(|seconds| self.now.plus_seconds(seconds.get().unsigned_abs()));
        let reasons = [
            (!facts.agree_with(request), "REQUESTER_FACTS_MISMATCH"),
            (
                !snapshot.is_registered(&facts.client_instance, &facts.principal),
                "CLIENT_NOT_REGISTERED",
            ),
            (
                limits
                    .min_assurance
                    .is_some_and(|lowest| facts.assurance < lowest),
                "ASSURANCE_TOO_LOW",
            ),
            (snapshot.is_expired(self.now), "POLICY_SNAPSHOT_EXPIRED"),
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
        self.request
            .asked
            .clone()
            .denied_for(applying.map(|(_, reason)| reason))
            .with_assurance(facts.assurance)
    }
}
