//! The evaluation itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::approval::{self, ApprovalRule, ApprovedScope, PresentedApproval, VerifierOutcome};
use super::asked::Asked;
use super::question::Question;
use super::reasons::hard_reasons;
use super::ruling::{ItemRuling, Limits, Policy, Ruling, Terms};
use super::scope::{Division, Settled};
use super::{Approval, Preflight};
use crate::canonical::sort_unique;
use crate::json::read::ToJson;
use crate::object::{ApprovalVerification, DecisionState, PreflightStatus};
use crate::part::{OnwardDisclosure, ReceiptLevel, ReceiptRequirement, SPEC_VERSION};
use crate::record::{self, Record};
use crate::refusal::{Code, Refusal};
use crate::time::{Timestamp, UnixTime};
use crate::transform::MAX_TRANSFORMS;
use crate::urn::DecisionId;

/// The most reasons that one decision can carry; those of the policy itself come last.
const MAX_REASONS: usize = 32;

/// Everything that one evaluation depends on. Equal inputs give equal bytes (spec 9.2).
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The request.
    pub request: &'a Asked,
    /// The policy.
    pub policy: &'a dyn Policy,
    /// The approval that came with it.
    pub approval: &'a PresentedApproval,
    /// How an approval must answer.
    pub approval_rule: ApprovalRule,
    /// What the approval's verifier said.
    pub verifier: VerifierOutcome,
    /// What the receipt preflight found.
    pub preflight: Preflight,
    /// The time of evaluation.
    pub now: UnixTime,
}

/// A decision, and what binds those who carry it out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The decision's record.
    pub record: Record,
    /// Limits on the claims of each granted predicate, by its name.
    pub limits: BTreeMap<String, Limits>,
}

impl Evaluation<'_> {
    /// Evaluates the request and records the decision, see [`Self::decide`].
    ///
    /// # Errors
    ///
    /// As [`Self::decide`].
    pub fn evaluate(&self) -> Result<Record, Refusal> {
        self.decide().map(|outcome| outcome.record)
    }

    /// Evaluates the request, records the decision, and says within which limits it is carried out.
    ///
    /// Precedence: any hard reason denies; else gated scope without a valid approval needs one;
    /// else an empty grant denies; else anything withheld, cut or transformed reduces. The approval
    /// is looked at even when a hard reason denies, as the profile does, so that the record says
    /// what came of it.
    ///
    /// In a denial the denied members repeat the request as it asked, wildcards included; such a
    /// record is evidence and never becomes a [`VerifiedDecision`](super::VerifiedDecision).
    ///
    /// # Errors
    ///
    /// [`Code::InvalidRequest`] if nothing else denies a request that departs from its schema,
    /// [`Code::UnsupportedTransform`] if the granted scope needs more transforms than a decision
    /// can carry.
    pub fn decide(&self) -> Result<Outcome, Refusal> {
        let ruling = self.ruling();
        let selectors = Division::of(&self.request.selectors, &ruling.selectors);
        let actions = Division::of(&self.request.actions, &ruling.actions);
        let verification = self.verify_approval(&selectors, &actions);
        let approval = self
            .presented()
            .filter(|_| verification == ApprovalVerification::Verified);
        let approved = approval.and_then(|approval| approval.scope.as_ref());
        let answered = self.authentic_scope();
        let scope = Scope {
            selectors: selectors.settle(
                approved.map(|approved| &approved.granted_selectors),
                answered.map(|answered| &answered.declined_selectors),
            ),
            actions: actions.settle(
                approved.map(|approved| &approved.granted_actions),
                answered.map(|answered| &answered.declined_actions),
            ),
            verification,
            approval,
        };
        let granted = self.granted(&scope, &ruling);
        let verdict = self.judge(&scope, &ruling, &granted)?;
        let unsigned = self.unsigned(&scope, &ruling, &verdict);
        let limits = granted
            .into_iter()
            .filter(|_| verdict.state.allows())
            .map(|(name, ruling)| (name.to_owned(), ruling.limits.clone()));
        Ok(Outcome {
            record: record::finalize(unsigned, DecisionId::PREFIX)?,
            limits: limits.collect(),
        })
    }

    /// What the policy is asked.
    pub fn question(&self) -> Question<'_> {
        Question {
            asked: self.request,
            approved: self.authentic_scope(),
            preflight: self.preflight,
            now: self.now,
        }
    }

    /// What the policy says.
    pub(super) fn ruling(&self) -> Ruling {
        self.policy.rule(&self.question())
    }

    /// The scope of an approval of this request under this policy that has not ended and was
    /// authenticated, whatever it covers.
    fn authentic_scope(&self) -> Option<&ApprovedScope> {
        let approval = self.presented()?;
        let holds =
            self.check_binding(approval).is_ok() && self.verifier == VerifierOutcome::Authenticated;
        approval.scope.as_ref().filter(|_| holds)
    }

    fn check_binding(&self, approval: &Approval) -> Result<(), ApprovalVerification> {
        if approval.request_digest != self.request.digest
            || approval.policy_digest != self.terms().snapshot.digest
        {
            return Err(ApprovalVerification::BindingInvalid);
        }
        let ends = approval.expires_at.as_ref().map(Timestamp::instant);
        if ends.is_none_or(|ends| ends <= self.now) {
            return Err(ApprovalVerification::Expired);
        }
        Ok(())
    }

    pub(super) fn terms(&self) -> &Terms {
        self.policy.terms()
    }

    /// The answers about the granted predicates.
    fn granted<'r>(&'r self, scope: &Scope<'_>, ruling: &'r Ruling) -> Granted<'r> {
        let answered = self.request.selectors.iter().zip(&ruling.selectors);
        answered
            .filter(|(name, _)| scope.selectors.granted.contains(&name.as_str()))
            .map(|(name, ruling)| (name.as_str(), ruling))
            .collect()
    }

    fn presented(&self) -> Option<&Approval> {
        match self.approval {
            PresentedApproval::Approval(approval) => Some(approval),
            PresentedApproval::Malformed | PresentedApproval::None => None,
        }
    }

    /// Checks the approval in the order of the profile; the first failure is the outcome.
    fn verify_approval(
        &self,
        selectors: &Division<'_>,
        actions: &Division<'_>,
    ) -> ApprovalVerification {
        if selectors.gated.is_empty() && actions.gated.is_empty() {
            return ApprovalVerification::NotRequired;
        }
        let approval = match self.approval {
            PresentedApproval::None => return ApprovalVerification::NotProvided,
            PresentedApproval::Malformed => return ApprovalVerification::BindingInvalid,
            PresentedApproval::Approval(approval) => approval,
        };
        if let Err(failure) = self.check_binding(approval) {
            return failure;
        }
        let is_covered = approval.scope.as_ref().is_some_and(|scope| {
            let (granted, declined) = (&scope.granted_selectors, &scope.declined_selectors);
            selectors.is_covered(granted, declined, self.approval_rule)
                && actions.is_covered(
                    &scope.granted_actions,
                    &scope.declined_actions,
                    self.approval_rule,
                )
        });
        if !is_covered {
            return ApprovalVerification::ScopeIncomplete;
        }
        match self.verifier {
            VerifierOutcome::Absent => ApprovalVerification::VerifierMissing,
            VerifierOutcome::Rejected => ApprovalVerification::Rejected,
            VerifierOutcome::Authenticated => ApprovalVerification::Verified,
        }
    }

    /// Applies the precedence of states.
    fn judge(
        &self,
        scope: &Scope<'_>,
        ruling: &Ruling,
        granted: &Granted<'_>,
    ) -> Result<Verdict, Refusal> {
        let mut hard = hard_reasons(self, ruling);
        let retention_is_cut = self.request.retention_seconds > self.max_retention(ruling);
        let mut transforms = Vec::new();
        let state = if !hard.is_empty() {
            DecisionState::Deny
        } else {
            self.request.fits_schema.clone()?;
            if approval::reason(scope.verification).is_some() {
                DecisionState::NeedsApproval
            } else if scope.selectors.granted.is_empty() || scope.actions.granted.is_empty() {
                let empty = [
                    (scope.selectors.granted.is_empty(), "NO_SELECTOR_GRANTED"),
                    (scope.actions.granted.is_empty(), "NO_ACTION_GRANTED"),
                ];
                hard.extend(
                    empty
                        .iter()
                        .filter(|(is_empty, _)| *is_empty)
                        .map(|(_, reason)| reason),
                );
                DecisionState::Deny
            } else {
                transforms = transforms_of(granted)?;
                let is_reduced = !transforms.is_empty()
                    || granted.values().any(|ruling| ruling.is_reduced)
                    || self.onward_is_cut(ruling);
                if scope.is_withheld() || retention_is_cut || is_reduced {
                    DecisionState::AllowWithReductions
                } else {
                    DecisionState::Allow
                }
            }
        };
        let leading = match state {
            DecisionState::Allow => Some("REQUEST_ALLOWED"),
            DecisionState::AllowWithReductions => Some("SCOPE_REDUCED"),
            DecisionState::NeedsApproval => approval::reason(scope.verification),
            DecisionState::Deny => None,
        };
        let mut reasons: Vec<String> = leading
            .into_iter()
            .chain(scope.selectors.is_withheld.then_some("SELECTORS_WITHHELD"))
            .chain(scope.actions.is_withheld.then_some("ACTIONS_WITHHELD"))
            .chain(retention_is_cut.then_some("RETENTION_REDUCED"))
            .chain(hard)
            .map(str::to_owned)
            .collect();
        for reason in &ruling.reasons {
            if reasons.len() < MAX_REASONS && !reasons.iter().any(|it| it == reason.as_str()) {
                reasons.push(reason.as_str().to_owned());
            }
        }
        Ok(Verdict {
            state,
            reasons,
            transforms,
        })
    }

    /// The longest retention that the policy allows, in seconds.
    fn max_retention(&self, ruling: &Ruling) -> u64 {
        let longest = self.terms().max_retention_seconds;
        let limit = ruling.max_retention_seconds;
        limit.map_or(longest, |limit| limit.min(longest))
    }

    fn onward_is_cut(&self, ruling: &Ruling) -> bool {
        let recipient = self.request.recipient.as_ref();
        let asked = recipient.and_then(|recipient| recipient.onward_disclosure.as_deref());
        ruling.forbids_onward_disclosure
            && asked.is_some_and(|asked| asked != OnwardDisclosure::Forbidden.as_str())
    }

    fn unsigned(&self, scope: &Scope<'_>, ruling: &Ruling, verdict: &Verdict) -> Value {
        let terms = self.terms();
        let allows = verdict.state.allows();
        let seconds = self
            .request
            .retention_seconds
            .min(self.max_retention(ruling));
        json!({
            "spec_version": SPEC_VERSION,
            "type": "policy_decision",
            "created_at": self.now.to_string(),
            "issuer": terms.issuer.to_json(),
            "request_ref": self.request.request_ref(),
            "request_digest": self.request.digest.to_json(),
            "decision": verdict.state.as_str(),
            "policy_snapshot": terms.snapshot.to_json(),
            "granted_selectors": as_selectors(scope.selectors.granted_in(verdict.state)),
            "denied_selectors":
                as_selectors(scope.selectors.denied_in(verdict.state, &self.request.selectors)),
            "granted_actions": scope.actions.granted_in(verdict.state),
            "denied_actions": scope.actions.denied_in(verdict.state, &self.request.actions),
            "transform_requirements": verdict.transforms,
            "bundle_instructions":
                terms.instructions.iter().map(ToJson::to_json).collect::<Value>(),
            "retention": {
                "mode": terms.retention_mode.as_str(),
                "max_seconds": if allows { seconds } else { 0 },
            },
            "onward_disclosure": self.onward_disclosure(allows, ruling),
            "receipt_requirement": self.receipt_requirement().to_json(),
            "receipt_preflight": {
                "required": self.receipt_requirement().required,
                "status": self.preflight_status().as_str(),
            },
            "approval_verification": scope.verification.as_str(),
            "approval_binding": scope.approval.map_or(Value::Null, Approval::binding),
            "expires_at": self.expires_at(scope.approval, ruling).to_string(),
            "reason_codes": verdict.reasons,
        })
    }

    fn onward_disclosure(&self, allows: bool, ruling: &Ruling) -> &str {
        self.request
            .recipient
            .as_ref()
            .filter(|_| allows && !ruling.forbids_onward_disclosure)
            .and_then(|recipient| recipient.onward_disclosure.as_deref())
            .unwrap_or(OnwardDisclosure::Forbidden.as_str())
    }

    fn receipt_requirement(&self) -> ReceiptRequirement {
        let asked = self.request.receipts.level;
        if asked == ReceiptLevel::None && self.terms().requires_receipts {
            return ReceiptRequirement::new(ReceiptLevel::Operation);
        }
        ReceiptRequirement::new(asked)
    }

    pub(super) fn preflight_status(&self) -> PreflightStatus {
        match (self.receipt_requirement().required, self.preflight) {
            (false, _) => PreflightStatus::NotRequired,
            (true, Preflight::Available) => PreflightStatus::Available,
            (true, Preflight::Absent | Preflight::Unavailable) => PreflightStatus::Unavailable,
        }
    }

    /// The earliest of the request's, the policy's and the approval's end, and of that of what the
    /// policy's answer depends on.
    fn expires_at(&self, approval: Option<&Approval>, ruling: &Ruling) -> UnixTime {
        let Some(request_ends) = self.request.expires_at else {
            return self.now;
        };
        let policy_ends = self.now.plus_seconds(self.terms().decision_ttl_seconds);
        let approval_ends = approval
            .and_then(|approval| approval.expires_at.as_ref())
            .map_or(request_ends, Timestamp::instant);
        let answer_ends = ruling.ends_at.unwrap_or(request_ends);
        request_ends
            .min(policy_ends)
            .min(approval_ends)
            .min(answer_ends)
    }
}

/// Requested scope after the approval was looked at.
struct Scope<'a> {
    selectors: Settled<'a>,
    actions: Settled<'a>,
    verification: ApprovalVerification,
    /// The approval, if it holds and gated scope needed it.
    approval: Option<&'a Approval>,
}

impl Scope<'_> {
    const fn is_withheld(&self) -> bool {
        self.selectors.is_withheld || self.actions.is_withheld
    }
}

/// The answers about the granted predicates, by their names.
type Granted<'a> = BTreeMap<&'a str, &'a ItemRuling>;

struct Verdict {
    state: DecisionState,
    reasons: Vec<String>,
    transforms: Vec<String>,
}

/// The transforms of the granted predicates, sorted.
fn transforms_of(granted: &Granted<'_>) -> Result<Vec<String>, Refusal> {
    let all = granted
        .values()
        .flat_map(|ruling| &ruling.limits.transforms);
    let transforms = sort_unique(all.map(|transform| transform.as_str().to_owned()));
    if transforms.len() > MAX_TRANSFORMS {
        return Err(Code::UnsupportedTransform.into());
    }
    Ok(transforms)
}

fn as_selectors(names: Vec<&str>) -> Value {
    names
        .into_iter()
        .map(|name| json!({"predicate": name}))
        .collect()
}
