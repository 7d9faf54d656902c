//! `memory_update_proposal` (spec 7.7).

use super::{ProtocolObject, TypedValue};
use crate::json::read::{Expected, Mismatch, choice, constant, object};
use crate::list::{List, UniqueList};
use crate::part::{Integrity, Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{Confidence, Name, Predicate, Reference, Text};
use crate::time::Timestamp;
use crate::urn::{BundleId, ProposalId};

constant! {
    /// `type` of a memory update proposal.
    pub struct MemoryUpdateProposalType = "memory_update_proposal";
}

choice! {
    /// What a proposal would do to memory.
    pub enum MemoryOperation {
        /// Add claims.
        Add = "add",
        /// Add claims that may contradict others, which stay.
        AddOrContradict = "add_or_contradict",
        /// Replace claims by reference.
        Supersede = "supersede",
        /// Withdraw claims.
        Retract = "retract",
    }
}

choice! {
    /// How far a proposal has come.
    pub enum ProposalStatus {
        /// Nothing was checked yet.
        PendingValidation = "pending_validation",
        /// A person must approve.
        PendingApproval = "pending_approval",
        /// A person approved.
        Approved = "approved",
        /// It was turned down.
        Rejected = "rejected",
        /// It became durable context.
        Committed = "committed",
        /// Its time ran out.
        Expired = "expired",
    }
}

object! {
    /// A claim that is proposed.
    pub struct ProposedClaim {
        /// Its predicate.
        predicate: Predicate,
        /// Its value.
        object: TypedValue,
        /// How much the submitter believes it.
        confidence: Confidence,
    }
}

object! {
    /// A candidate change to memory that commits nothing by itself (spec 7.7).
    pub struct MemoryUpdateProposal {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": MemoryUpdateProposalType,
        /// Follows from the contents in this implementation.
        id: ProposalId,
        /// When it was made.
        created_at: Timestamp,
        /// The component that made it.
        issuer: Issuer,
        /// Whose memory, by alias outside the vault.
        subject_ref: Reference,
        /// The bundle that led to it.
        bundle_ref: Option<BundleId>,
        /// What it would do.
        operation: MemoryOperation,
        /// The claims, 1 to 64.
        proposed_claims: List<ProposedClaim, 1, 64>,
        /// The sources that support them, up to 64.
        provenance_refs: UniqueList<Reference, 0, 64>,
        /// Why, 1 to 1000 characters.
        rationale: Text<1, 1000>,
        /// Who submits it.
        submitted_by: Reference,
        /// How far it has come.
        status: ProposalStatus,
        /// What is needed before it may be committed.
        approval_requirement: UniqueList<Name, 0, 32>,
        /// When it ends.
        expires_at: Timestamp,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
    check = MemoryUpdateProposal::accepted_has_provenance;
}

impl ProtocolObject for MemoryUpdateProposal {
    const REFUSED_AS: Code = Code::InvalidMemoryProposal;
}

impl MemoryUpdateProposal {
    fn accepted_has_provenance(&self) -> Result<(), Mismatch> {
        let is_accepted = matches!(
            self.status,
            ProposalStatus::Approved | ProposalStatus::Committed
        );
        if is_accepted && self.provenance_refs.is_empty() {
            return Err(Expected::Rule("expected provenance of an accepted proposal").into());
        }
        Ok(())
    }
}
