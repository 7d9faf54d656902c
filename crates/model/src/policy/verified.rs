//! Decisions that were verified.

use serde_json::Value;

use super::ruling::Policy;
use crate::digest::Digest;
use crate::json::read::ToJson;
use crate::object::{ContextRequest, PolicyDecision, ProtocolObject};
use crate::record;
use crate::refusal::{Code, Refusal};
use crate::urn::DecisionId;

/// A decision whose record holds and that belongs to one exact request.
///
/// Only [`VerifiedDecision::verify`] makes one, and issuing accepts nothing else.
#[derive(Clone, Debug)]
pub struct VerifiedDecision {
    decision: PolicyDecision,
    digest: Digest,
}

impl VerifiedDecision {
    /// Verifies a decision's record and its binding to `request`.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidRecordIntegrity`] or [`Code::RecordIntegrityMismatch`] for the record,
    /// [`Code::InvalidPolicyDecision`] if it departs from its closed schema,
    /// [`Code::DecisionRequestMismatch`] if it is bound to another request, or to none.
    pub fn verify(decision: &Value, request: &ContextRequest) -> Result<Self, Refusal> {
        let digest = record::verify(decision, DecisionId::PREFIX)?;
        let decision = PolicyDecision::read(decision)?;
        let request_digest = Digest::of_json(&request.to_json());
        if decision.request_digest != Some(request_digest) || decision.request_ref != request.id {
            return Err(Code::DecisionRequestMismatch.into());
        }
        Ok(Self { decision, digest })
    }

    /// Checks that the decision was made under this policy (spec 7.4).
    ///
    /// # Errors
    ///
    /// [`Code::DecisionPolicyMismatch`] otherwise.
    pub fn check_policy(&self, policy: &dyn Policy) -> Result<(), Refusal> {
        if self.decision.policy_snapshot == policy.terms().snapshot {
            return Ok(());
        }
        Err(Code::DecisionPolicyMismatch.into())
    }

    /// The decision.
    pub const fn decision(&self) -> &PolicyDecision {
        &self.decision
    }

    /// The digest of its contents, which bundles and receipts refer to.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}
