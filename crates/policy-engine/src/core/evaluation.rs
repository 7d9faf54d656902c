//! The evaluation of one request: a pure function of what is recorded (spec 9.2).

use std::collections::BTreeMap;

use cl_model::object::{DecisionState, PolicyDecision, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, Limits, Preflight, PresentedApproval, Treatment,
    VerifierOutcome,
};
use cl_model::record::Record;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_policy_cedar::{CompiledSnapshot, MatchedItems};

use super::answer::Approved;
use super::facts::Facts;
use super::request::ReadRequest;
use super::signals::Signals;

/// Everything that one decision depends on. Equal inputs give equal bytes.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The request.
    pub request: &'a ReadRequest,
    /// Who sent it.
    pub facts: &'a Facts,
    /// The policy in force.
    pub snapshot: &'a CompiledSnapshot,
    /// The approval that came with it, verified when it was taken.
    pub approved: Option<&'a Approved>,
    /// What was so beside them.
    pub signals: &'a Signals,
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
        self.decide_with(self.presented())
    }

    /// Evaluates the request as if the person's answer had been given under this very snapshot.
    /// What comes out is no decision: it only says what one would have been.
    pub fn try_out(&self) -> Result<Decided, Refusal> {
        let (presented, verifier) = self.presented();
        let presented = match presented {
            PresentedApproval::Approval(mut approval) => {
                approval.policy_digest = self.snapshot.identity().digest;
                PresentedApproval::Approval(approval)
            }
            PresentedApproval::None | PresentedApproval::Malformed => presented,
        };
        self.decide_with((presented, verifier))
    }

    fn decide_with(
        &self,
        (approval, verifier): (PresentedApproval, VerifierOutcome),
    ) -> Result<Decided, Refusal> {
        let asked = self.asked();
        let outcome = self.evaluation(&asked, &approval, verifier).decide()?;
        Ok(Decided {
            decision: PolicyDecision::read(outcome.record.value())?,
            record: outcome.record,
            limits: outcome.limits,
        })
    }

    /// What the policy does with the requested selectors and actions.
    pub fn treatments(&self) -> (Treatment, Treatment) {
        let asked = self.asked();
        let (approval, verifier) = self.presented();
        self.evaluation(&asked, &approval, verifier).treatments()
    }

    /// The rules that match each requested selector and action.
    pub fn matched(&self) -> MatchedItems {
        let asked = self.asked();
        let (approval, verifier) = self.presented();
        let evaluation = self.evaluation(&asked, &approval, verifier);
        self.snapshot.matched(&evaluation.question())
    }

    /// Whether the requester asks too often.
    pub fn is_over_rate(&self) -> bool {
        self.snapshot.is_over_rate(&self.signals.counted)
    }

    fn presented(&self) -> (PresentedApproval, VerifierOutcome) {
        match self.approved {
            None => (PresentedApproval::None, VerifierOutcome::Absent),
            Some(approved) => {
                let approval = Box::new(approved.approval().clone());
                let approval = PresentedApproval::Approval(approval);
                (approval, VerifierOutcome::Authenticated)
            }
        }
    }

    fn evaluation<'e>(
        &'e self,
        asked: &'e Asked,
        approval: &'e PresentedApproval,
        verifier: VerifierOutcome,
    ) -> Evaluation<'e> {
        Evaluation {
            request: asked,
            policy: self.snapshot.policy(),
            approval,
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier,
            preflight: self.preflight,
            now: self.now,
        }
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
        let too_often = self.is_over_rate().then_some("RATE_LIMIT_EXCEEDED");
        // Who declines everything says no to the request, not only to what was gated.
        let declines = |approved: &Approved| approved.document().declines_everything();
        let declined = self.approved.is_some_and(declines);
        let declined = declined.then_some("APPROVAL_DECLINED");
        let reasons = mismatch.into_iter().chain(denials);
        self.request
            .asked
            .clone()
            .denied_for(reasons.chain(too_often).chain(declined))
            .with_assurance(facts.assurance)
            .with_anomaly(self.signals.anomaly.clone())
            .with_delegated(self.signals.delegated.clone())
    }
}
