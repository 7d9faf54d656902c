//! `scoped_context_bundle` (spec 7.5).

use zeroize::Zeroize as _;

use super::ProtocolObject;
use crate::digest::Digest;
use crate::json::read::{constant, object};
use crate::list::{Dictionary, List, UNBOUNDED, UniqueList};
use crate::part::{
    AlwaysTrue, Integrity, Issuer, OnwardDisclosure, PolicySnapshot, Retention, RetentionSeconds,
    SpecVersion, Task,
};
use crate::purpose::PurposeCode;
use crate::refusal::Code;
use crate::scalar::{Action, AnyJson, Confidence, Handle, Predicate, Reference, Text};
use crate::time::Timestamp;
use crate::urn::{Alias, BundleId, DecisionId, ProvenanceRef, RequestId};

constant! {
    /// `type` of a scoped context bundle.
    pub struct ScopedContextBundleType = "scoped_context_bundle";
    /// New knowledge comes back only as a proposal (spec 9.4).
    pub struct MemoryWrite = "proposal_only";
    /// A consumer never resolves raw vault references (spec 7.5).
    pub struct RawVaultResolution = "forbidden";
    /// What a provenance entry is.
    pub struct OpaqueReferenceKind = "opaque_vault_reference";
}

object! {
    /// One disclosed fact.
    pub struct ContextItem {
        /// The fact in words, 1 to 2000 characters.
        claim: Text<1, 2000>,
        /// Its predicate.
        predicate: Predicate,
        /// Its value.
        value: AnyJson,
        /// How much it is believed.
        confidence: Confidence,
        /// Where it comes from: 1 to 32 keys of the bundle's provenance.
        provenance_handles: UniqueList<Handle, 1, 32>,
    }
}

object! {
    /// A source that only the vault can resolve.
    #[derive(Eq)]
    pub struct OpaqueReference {
        /// Always `opaque_vault_reference`.
        kind: OpaqueReferenceKind,
        /// The reference.
        reference as "ref": ProvenanceRef,
    }
}

/// The sources of a bundle by handle; the schema leaves the handles' form open here.
pub type ProvenanceMap = Dictionary<String, OpaqueReference, 1, UNBOUNDED>;

object! {
    /// What the consumer must not do.
    #[derive(Eq)]
    pub struct Restrictions {
        /// Whether it may pass context on.
        onward_disclosure: OnwardDisclosure,
        /// Always `proposal_only`.
        memory_write: MemoryWrite,
        /// Always `forbidden`.
        raw_vault_resolution: RawVaultResolution,
        /// How long it may keep context, in seconds.
        retention_seconds: RetentionSeconds,
    }
}

object! {
    /// The receipts that the consumer owes.
    #[derive(Eq)]
    pub struct ReceiptContract {
        /// Whether receipts are required.
        required: bool,
        /// The operations that are receipted.
        required_operations: UniqueList<Action, 0, UNBOUNDED>,
    }
}

object! {
    /// An immutable, expiring, single-use packet of approved context (spec 7.5).
    pub struct ScopedContextBundle {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": ScopedContextBundleType,
        /// Follows from the contents.
        id: BundleId,
        /// When it was made.
        created_at: Timestamp,
        /// The bundle issuer.
        issuer: Issuer,
        /// What the subject is called outside the vault, in this exchange only.
        subject_alias: Alias,
        /// The request.
        request_ref: RequestId,
        /// The request's exact contents.
        request_digest: Option<Digest>,
        /// The decision.
        decision_ref: DecisionId,
        /// The decision's exact contents.
        decision_digest: Option<Digest>,
        /// The policy that the decision rests on.
        policy_snapshot: Option<PolicySnapshot>,
        /// The one principal that may open it.
        recipient: Reference,
        /// What the context is for.
        purpose_code: PurposeCode,
        /// Words for people, 3 to 240 characters.
        purpose: Option<Text<3, 240>>,
        /// The task.
        task: Option<Task>,
        /// When it was issued.
        issued_at: Timestamp,
        /// When it ends.
        expires_at: Timestamp,
        /// Always true.
        single_use: AlwaysTrue,
        /// The disclosed facts, 1 to 64.
        context: List<ContextItem, 1, 64>,
        /// Their sources.
        provenance: ProvenanceMap,
        /// Instructions of the policy; source content never becomes one (spec 11.4).
        instructions: UniqueList<Text<1, 500>, 1, UNBOUNDED>,
        /// What the consumer may do. What is absent is denied.
        capabilities: UniqueList<Action, 0, UNBOUNDED>,
        /// What it must not do.
        restrictions: Restrictions,
        /// The retention allowed.
        retention: Option<Retention>,
        /// The receipts that it owes.
        receipt_contract: ReceiptContract,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
}

impl ProtocolObject for ScopedContextBundle {
    const REFUSED_AS: Code = Code::InvalidBundle;
}

impl ScopedContextBundle {
    /// Overwrites what the context discloses.
    pub(crate) fn wipe(&mut self) {
        for item in self.context.iter_mut() {
            item.claim.zeroize();
            item.value.zeroize();
        }
    }
}
