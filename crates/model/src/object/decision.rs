//! `policy_decision` (spec 7.4).

use super::ProtocolObject;
use crate::digest::Digest;
use crate::json::read::{Expected, Mismatch, Nullable, choice, constant, object};
use crate::list::UniqueList;
use crate::part::{
    DecidedRetention, Integrity, Issuer, OnwardDisclosure, PolicySnapshot, ReceiptRequirement,
    Selector, SpecVersion,
};
use crate::refusal::Code;
use crate::scalar::{Action, ReasonCode, Reference, Text};
use crate::time::Timestamp;
use crate::transform::Transform;
use crate::urn::{DecisionId, RequestId};

constant! {
    /// `type` of a policy decision.
    pub struct PolicyDecisionType = "policy_decision";
}

choice! {
    /// The four outcomes of evaluation (spec 7.4).
    pub enum DecisionState {
        /// All that was asked for is granted.
        Allow = "allow",
        /// A part is granted, or granted in a reduced form.
        AllowWithReductions = "allow_with_reductions",
        /// Nothing is granted.
        Deny = "deny",
        /// A person must approve first.
        NeedsApproval = "needs_approval",
    }
}

impl DecisionState {
    /// Whether a bundle may follow.
    pub const fn allows(self) -> bool {
        matches!(self, Self::Allow | Self::AllowWithReductions)
    }
}

choice! {
    /// Whether a receipt store was ready when the request was evaluated.
    pub enum PreflightStatus {
        /// No receipt is required.
        NotRequired = "not_required",
        /// It was ready.
        Available = "available",
        /// It was not.
        Unavailable = "unavailable",
    }
}

object! {
    /// The receipt preflight of an evaluation.
    #[derive(Eq)]
    pub struct ReceiptPreflight {
        /// Whether receipts are required.
        required: bool,
        /// What the preflight found.
        status: PreflightStatus,
    }
}

choice! {
    /// What came of the approval that was presented, if any was needed.
    pub enum ApprovalVerification {
        /// No gated scope was asked for.
        NotRequired = "not_required",
        /// None was presented.
        NotProvided = "not_provided",
        /// It is malformed, or bound to another request or policy.
        BindingInvalid = "binding_invalid",
        /// It has expired.
        Expired = "expired",
        /// It does not cover the gated scope.
        ScopeIncomplete = "scope_incomplete",
        /// Nothing is there to verify it.
        VerifierMissing = "verifier_missing",
        /// Its verifier did not accept it.
        Rejected = "rejected",
        /// It holds.
        Verified = "verified",
    }
}

object! {
    /// The approval that a decision rests on.
    #[derive(Eq)]
    pub struct ApprovalBinding {
        /// The approval's id.
        approval_ref: Reference,
        /// The request that was approved.
        request_digest: Digest,
        /// The policy under which it was approved.
        policy_digest: Digest,
        /// When the approval ends, in the approval's own words.
        expires_at: Option<Timestamp>,
    }
}

object! {
    /// The recorded outcome of evaluating one request against one policy snapshot (spec 7.4).
    pub struct PolicyDecision {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": PolicyDecisionType,
        /// Follows from the contents in this implementation.
        id: DecisionId,
        /// When it was made.
        created_at: Timestamp,
        /// The policy engine.
        issuer: Issuer,
        /// The request.
        request_ref: RequestId,
        /// The request's exact bytes.
        request_digest: Option<Digest>,
        /// The outcome.
        decision: DecisionState,
        /// The policy that was evaluated.
        policy_snapshot: PolicySnapshot,
        /// The facts granted.
        granted_selectors: UniqueList<Selector, 0, 64>,
        /// The facts withheld.
        denied_selectors: UniqueList<Selector, 0, 64>,
        /// The actions granted.
        granted_actions: UniqueList<Action, 0, 64>,
        /// The actions withheld.
        denied_actions: UniqueList<Action, 0, 64>,
        /// What must happen to granted facts before they leave.
        transform_requirements: UniqueList<Transform, 0, 64>,
        /// Instructions for the consumer, to be put into the bundle.
        bundle_instructions: Option<UniqueList<Text<1, 500>, 0, 32>>,
        /// The retention allowed.
        retention: DecidedRetention,
        /// Whether the recipient may pass context on.
        onward_disclosure: OnwardDisclosure,
        /// The receipts demanded.
        receipt_requirement: ReceiptRequirement,
        /// The receipt preflight.
        receipt_preflight: Option<ReceiptPreflight>,
        /// What came of the approval.
        approval_verification: Option<ApprovalVerification>,
        /// The approval that the decision rests on.
        approval_binding: Option<Nullable<ApprovalBinding>>,
        /// When the decision ends.
        expires_at: Timestamp,
        /// Why, 1 to 32 codes.
        reason_codes: UniqueList<ReasonCode, 1, 32>,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
    check = PolicyDecision::grants_agree;
}

impl ProtocolObject for PolicyDecision {
    const REFUSED_AS: Code = Code::InvalidPolicyDecision;
}

impl PolicyDecision {
    fn grants_agree(&self) -> Result<(), Mismatch> {
        let seconds = self.retention.max_seconds.get();
        let agrees = if self.decision.allows() {
            seconds >= 1
        } else {
            seconds == 0 && self.granted_selectors.is_empty() && self.granted_actions.is_empty()
        };
        if agrees {
            return Ok(());
        }
        Err(Expected::Rule("expected grants and retention to agree with the outcome").into())
    }
}
