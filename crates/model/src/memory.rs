//! Proposals: the only way back into memory for a consumer (spec 7.7, 8.4, 9.4).

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::forbidden::contains_forbidden_material;
use crate::json::read::{FromJson, ToJson};
use crate::object::{
    MemoryOperation, MemoryUpdateProposal, Outcome, ProposalStatus, ProtocolObject,
};
use crate::opaque::opaque_debug;
use crate::part::SPEC_VERSION;
use crate::record::{self, Record};
use crate::refusal::{Code, Refusal};
use crate::session::{Circumstances, Session, draft};
use crate::time::UnixTime;
use crate::urn::ProposalId;

/// The capability that proposing needs.
pub const MEMORY_PROPOSE: &str = "memory.propose";

const DRAFT_MEMBERS: [&str; 4] = [
    "operation",
    "proposed_claims",
    "provenance_handles",
    "rationale",
];

/// What a consumer proposes.
pub struct ProposalDraft<'a> {
    /// `add`, `add_or_contradict` or `retract`; nobody outside may name a claim to supersede.
    pub operation: MemoryOperation,
    /// The claims: predicate, object with value and datatype, confidence.
    pub proposed_claims: &'a [Value],
    /// Handles of the bundle that support them, in the order to be kept.
    pub provenance_handles: &'a [String],
    /// Why, 1 to 1000 characters.
    pub rationale: &'a str,
}

opaque_debug!(ProposalDraft<'_>);

impl<'a> ProposalDraft<'a> {
    /// Reads a proposal's parts from JSON; `operation` and `provenance_handles` have defaults.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidObject`], [`Code::MemoryProposalContainsForbiddenMaterial`],
    /// [`Code::InvalidMemoryProposal`] (other members), [`Code::InvalidMemoryOperation`],
    /// [`Code::ProposedClaimsRequired`], [`Code::InvalidString`] for the rationale.
    pub fn read(value: &'a Value, handles: &'a [String]) -> Result<Self, Refusal> {
        let members = value.as_object().ok_or(Code::InvalidObject)?;
        let is_known = |name: &String| DRAFT_MEMBERS.contains(&name.as_str());
        if !members.keys().all(is_known) {
            return Err(match contains_forbidden_material(value) {
                true => Code::MemoryProposalContainsForbiddenMaterial.into(),
                false => Code::InvalidMemoryProposal.into(),
            });
        }
        let operation = match value.get("operation") {
            None => MemoryOperation::AddOrContradict,
            Some(operation) => MemoryOperation::from_json(operation)
                .ok()
                .filter(|operation| *operation != MemoryOperation::Supersede)
                .ok_or(Code::InvalidMemoryOperation)?,
        };
        let claims = value.get("proposed_claims").and_then(Value::as_array);
        let rationale = value.get("rationale").and_then(Value::as_str);
        Ok(Self {
            operation,
            proposed_claims: claims
                .filter(|claims| !claims.is_empty())
                .ok_or(Code::ProposedClaimsRequired)?,
            provenance_handles: handles,
            rationale: rationale
                .filter(|rationale| !rationale.is_empty())
                .ok_or(Code::InvalidString)?,
        })
    }
}

/// A proposal whose receipt is to be stored.
#[derive(Debug)]
pub struct PendingProposal {
    proposal: Record,
    receipt: Record,
}

impl PendingProposal {
    /// The receipt of proposing.
    pub const fn receipt(&self) -> &Record {
        &self.receipt
    }

    /// The proposal, once its receipt is durable.
    ///
    /// # Errors
    ///
    /// [`Code::MemoryProposalReceiptFailed`].
    pub fn settle(self, is_durable: bool) -> Result<Record, Refusal> {
        if is_durable {
            return Ok(self.proposal);
        }
        Err(Code::MemoryProposalReceiptFailed.into())
    }
}

impl Session {
    /// Checks that the bundle allows proposing now.
    ///
    /// # Errors
    ///
    /// In this order: [`Code::CapabilityNotGranted`], [`Code::OutcomePending`],
    /// [`Code::BundleExpired`], [`Code::BundleRevoked`] or [`Code::RevocationCheckFailed`],
    /// [`Code::ReceiptPreflightFailed`].
    pub fn check_may_propose(&self, at: Circumstances) -> Result<(), Refusal> {
        self.check_capability(MEMORY_PROPOSE)?;
        self.check_ready(at)
    }

    /// Makes a pending proposal about the bundle's subject.
    ///
    /// # Errors
    ///
    /// Those of [`Session::check_may_propose`], then [`Code::UnknownProvenanceHandle`], then those
    /// of [`check`].
    pub fn propose(
        &self,
        proposal: &ProposalDraft<'_>,
        at: Circumstances,
    ) -> Result<PendingProposal, Refusal> {
        self.check_may_propose(at)?;
        let bundle = self.verified().bundle();
        let references = proposal
            .provenance_handles
            .iter()
            .map(|handle| {
                let source = bundle.provenance.get(handle);
                source.map(|source| source.reference.to_json())
            })
            .collect::<Option<Vec<_>>>()
            .ok_or(Code::UnknownProvenanceHandle)?;
        let record = record::finalize(
            self.unsigned_proposal(proposal, references, at.now),
            ProposalId::PREFIX,
        )?;
        check(record.value())?;
        let input = json!({
            "operation": proposal.operation.as_str(),
            "proposed_claim_count": proposal.proposed_claims.len(),
        });
        let id = ProposalId::from_digest(record.digest());
        let receipt = draft(
            bundle,
            MEMORY_PROPOSE,
            Outcome::Success,
            "The recipient proposed a memory update for review.",
            at.now,
        )
        .with_digests(Digest::of_json(&input), record.digest())
        .with_metadata("proposal_ref", id.as_str())
        .with_metadata("status", ProposalStatus::PendingValidation.as_str())
        .finish()?;
        Ok(PendingProposal {
            proposal: record,
            receipt,
        })
    }

    fn unsigned_proposal(
        &self,
        proposal: &ProposalDraft<'_>,
        references: Vec<Value>,
        now: UnixTime,
    ) -> Value {
        let bundle = self.verified().bundle();
        let requirement: &[&str] = if references.is_empty() {
            &["source_required", "user_confirm"]
        } else {
            &["user_confirm"]
        };
        json!({
            "spec_version": SPEC_VERSION,
            "type": "memory_update_proposal",
            "created_at": now.to_string(),
            "issuer": {"id": bundle.recipient.as_str()},
            "subject_ref": bundle.subject_alias.as_str(),
            "bundle_ref": bundle.id.as_str(),
            "operation": proposal.operation.as_str(),
            "proposed_claims": proposal.proposed_claims,
            "provenance_refs": references,
            "rationale": proposal.rationale,
            "submitted_by": bundle.recipient.as_str(),
            "status": ProposalStatus::PendingValidation.as_str(),
            "approval_requirement": requirement,
            "expires_at": bundle.expires_at.as_str(),
        })
    }
}

/// Checks a proposal as the authority receives it: content-addressed, pending, and harmless.
///
/// # Errors
///
/// In this order: [`Code::InvalidObject`], [`Code::InvalidRecordIntegrity`] or
/// [`Code::RecordIntegrityMismatch`], [`Code::InvalidMemoryProposal`] (type, version or status),
/// [`Code::MemoryProposalContainsForbiddenMaterial`], [`Code::MemoryProposalApprovalRequired`],
/// [`Code::InvalidMemoryProposal`] (closed schema).
pub fn check(value: &Value) -> Result<MemoryUpdateProposal, Refusal> {
    record::verify(value, ProposalId::PREFIX)?;
    let is_pending = value["spec_version"] == SPEC_VERSION
        && value["type"] == "memory_update_proposal"
        && value["status"] == ProposalStatus::PendingValidation.as_str();
    if !is_pending {
        return Err(Code::InvalidMemoryProposal.into());
    }
    if contains_forbidden_material(value) {
        return Err(Code::MemoryProposalContainsForbiddenMaterial.into());
    }
    let requirement = value["approval_requirement"].as_array();
    if !requirement.is_some_and(|names| names.contains(&json!("user_confirm"))) {
        return Err(Code::MemoryProposalApprovalRequired.into());
    }
    MemoryUpdateProposal::read(value)
}
