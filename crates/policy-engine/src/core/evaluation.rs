//! The evaluation of one request: a pure function of what is recorded (spec 9.2).

use std::collections::BTreeMap;

use cl_model::object::{DecisionState, PolicyDecision, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, Limits, Preflight, PresentedApproval, VerifierOutcome,
};
use cl_model::record::Record;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_policy_cedar::CompiledSnapshot;

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
    pub snapshot: &'a CompiledSnapshot,
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

    /// The request, with the reasons to deny it that lie outside the policy.
    fn asked(&self) -> Asked {
        let facts = self.facts;
        let request = &self.request.request;
        let mismatch = (!facts.agree_with(request)).then_some("REQUESTER_FACTS_MISMATCH");
        let (client, principal) = (&facts.client_instance, &facts.principal);
        let denials = self
            .snapshot
            .denials(request, client, principal, facts.assurance, self.now);
        self.request
            .asked
            .clone()
            .denied_for(mismatch.into_iter().chain(denials))
            .with_assurance(facts.assurance)
    }
}
