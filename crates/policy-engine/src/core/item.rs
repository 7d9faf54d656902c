//! What a person is shown before an answer (spec 9.3), as it would be decided now.

use cl_model::digest::Digest;
use cl_model::object::{ContextRequest, DecisionState};
use cl_model::part::Label;
use cl_model::policy::{Limits, Preflight, Snapshot, Treatment};
use cl_model::scalar::{Predicate, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::ApprovalId;
use cl_policy_cedar::CompiledSnapshot;
use serde_json::json;

use super::evaluation::Inputs;
use super::facts::Facts;
use super::request::ReadRequest;
use super::signals::Signals;

/// What the policy does with one part of the requested scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is granted with the rest.
    Ordinary,
    /// A person decides.
    Gated,
    /// It is denied.
    Denied,
}

/// One kind of fact that was asked for.
#[derive(Clone, Debug)]
pub struct AskedFact {
    /// The predicate.
    pub predicate: String,
    /// How private its values may be.
    pub label: Label,
    /// What the policy does with it.
    pub fate: Fate,
}

impl AskedFact {
    /// Whether a surface has to set it apart.
    pub fn is_sensitive(&self) -> bool {
        self.label >= Label::Sensitive
    }
}

/// One thing that the recipient asked to be allowed.
#[derive(Clone, Debug)]
pub struct AskedAction {
    /// The action.
    pub action: String,
    /// Whether it may change something outside.
    pub is_external: bool,
    /// What the policy does with it.
    pub fate: Fate,
}

/// An item, read under one policy.
#[derive(Clone, Debug)]
pub struct Item {
    /// What binds an answer to what was shown.
    pub digest: Digest,
    /// What may be disclosed.
    pub facts: Vec<AskedFact>,
    /// What may be done.
    pub actions: Vec<AskedAction>,
    /// The reasons of the evaluation.
    pub reasons: Vec<String>,
    /// Whether the policy asks for an answer.
    pub needs_answer: bool,
    /// The gated predicates.
    pub gated_selectors: Vec<String>,
    /// The gated actions.
    pub gated_actions: Vec<String>,
    /// When access ends at the latest if the answer is given now.
    pub access_ends_at: UnixTime,
}

/// Actions that only read, compute or prepare, whatever they are prepared for.
const WITHOUT_EFFECT: [&str; 4] = [
    "email.create_draft",
    "model.generate_text",
    "model.summarize",
    "model.classify",
];

impl Item {
    /// Reads an item under a policy.
    pub fn read(
        approval: &ApprovalId,
        request: &ReadRequest,
        facts: &Facts,
        snapshot: &CompiledSnapshot,
        signals: &Signals,
        now: UnixTime,
    ) -> Self {
        let inputs = Inputs {
            request,
            facts,
            snapshot,
            signals,
            preflight: Preflight::Available,
            approved: None,
            now,
        };
        let (needs_answer, reasons) = match inputs.decide() {
            Ok(decided) => {
                let codes = decided.decision.reason_codes.iter();
                let reasons = codes.map(|code| code.as_str().to_owned()).collect();
                (decided.state() == DecisionState::NeedsApproval, reasons)
            }
            Err(refusal) => (false, vec![refusal.code().as_str().to_owned()]),
        };
        let (selectors, actions) = inputs.treatments();
        let policy = snapshot.identity().digest;
        let scope = [&selectors, &actions].map(|it| [&it.ordinary, &it.gated, &it.denied]);
        let digest = json!([
            "context-layer/approval-item/v1",
            approval.as_str(),
            request.digest().to_string(),
            policy.to_string(),
            scope,
        ]);
        Self {
            digest: Digest::of_json(&digest),
            facts: asked_facts(&request.request, &selectors, snapshot),
            actions: asked_actions(&request.request, &actions),
            reasons,
            needs_answer,
            gated_selectors: selectors.gated,
            gated_actions: actions.gated,
            access_ends_at: access_ends_at(&request.request, snapshot, now),
        }
    }

    /// Whether these are the gated predicates and actions, each of them once.
    pub fn is_answered_by(&self, selectors: &[&str], actions: &[&str]) -> bool {
        is_same(&self.gated_selectors, selectors) && is_same(&self.gated_actions, actions)
    }
}

fn is_same(gated: &[String], answered: &[&str]) -> bool {
    gated.len() == answered.len() && gated.iter().all(|name| answered.contains(&name.as_str()))
}

/// What a treatment does with one name.
pub(super) fn fate(treatment: &Treatment, name: &str) -> Fate {
    let is_in = |names: &[String]| names.iter().any(|it| it == name);
    if is_in(&treatment.ordinary) {
        Fate::Ordinary
    } else if is_in(&treatment.gated) {
        Fate::Gated
    } else {
        Fate::Denied
    }
}

fn asked_facts(
    request: &ContextRequest,
    treatment: &Treatment,
    snapshot: &Snapshot,
) -> Vec<AskedFact> {
    let label = |predicate: &Predicate| {
        let rule = snapshot.resolve_rule(predicate, &Limits::default());
        rule.map_or(Label::Restricted, |rule| rule.max_label)
    };
    let selectors = request.selectors.iter();
    selectors
        .map(|selector| AskedFact {
            predicate: selector.predicate.as_str().to_owned(),
            label: label(&selector.predicate),
            fate: fate(treatment, selector.predicate.as_str()),
        })
        .collect()
}

fn asked_actions(request: &ContextRequest, treatment: &Treatment) -> Vec<AskedAction> {
    let actions = request.requested_actions.iter();
    actions
        .map(|action| AskedAction {
            action: action.as_str().to_owned(),
            is_external: !WITHOUT_EFFECT.contains(&action.as_str()),
            fate: fate(treatment, action.as_str()),
        })
        .collect()
}

/// The subjects that a person may approve for, each once, in order.
pub fn subjects_of(snapshot: &Snapshot, principal: &Reference) -> Vec<Reference> {
    let approvers = snapshot.approvers().iter();
    let mut subjects: Vec<Reference> = approvers
        .filter(|approver| approver.principal == *principal)
        .flat_map(|approver| approver.subjects.iter().cloned())
        .collect();
    subjects.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    subjects.dedup();
    subjects
}

/// When what an answer grants now would end: with the request, the policy's longest decision or the
/// policy itself.
pub fn access_ends_at(
    request: &ContextRequest,
    snapshot: &CompiledSnapshot,
    now: UnixTime,
) -> UnixTime {
    let by_policy = now.plus_seconds(snapshot.policy().terms().decision_ttl_seconds);
    let ends = request.expires_at.instant().min(by_policy);
    snapshot
        .expires_at()
        .map_or(ends, |policy| ends.min(policy))
}
