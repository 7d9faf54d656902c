//! `receipt` (spec 7.8).

use super::ProtocolObject;
use crate::digest::Digest;
use crate::json::read::{Nullable, choice, constant, object};
use crate::list::Dictionary;
use crate::part::{AlwaysFalse, Integrity, Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{Action, Name, Reference, Text};
use crate::time::Timestamp;
use crate::urn::{Alias, BundleId, DecisionId, ReceiptId, RequestId};

constant! {
    /// `type` of a receipt.
    pub struct ReceiptType = "receipt";
}

choice! {
    /// How an operation ended.
    pub enum Outcome {
        /// It was done.
        Success = "success",
        /// It was not done.
        Failure = "failure",
        /// It may have been done.
        Indeterminate = "indeterminate",
    }
}

/// Up to 16 short facts about an operation; never content (spec 11.8).
pub type ReceiptMetadata = Dictionary<Name, Text<1, 512>, 0, 16>;

object! {
    /// Evidence of one security-relevant operation, without its content (spec 7.8).
    pub struct Receipt {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": ReceiptType,
        /// Follows from the contents.
        id: ReceiptId,
        /// When it was written.
        created_at: Timestamp,
        /// The receipt's writer.
        issuer: Issuer,
        /// What was done.
        operation: Action,
        /// Who did it.
        actor: Reference,
        /// Whose context, by alias.
        subject_ref: Alias,
        /// The request, if there is one.
        request_ref: Nullable<RequestId>,
        /// The decision, if there is one.
        decision_ref: Nullable<DecisionId>,
        /// The bundle, if there is one.
        bundle_ref: Nullable<BundleId>,
        /// The receipt that this one corrects.
        supersedes_ref: Option<Nullable<ReceiptId>>,
        /// When the operation started.
        started_at: Timestamp,
        /// When it ended.
        completed_at: Timestamp,
        /// How it ended.
        outcome: Outcome,
        /// The digest of the policy in force.
        policy_snapshot: Nullable<Digest>,
        /// The digest of what went in.
        input_digest: Digest,
        /// The digest of what came out.
        output_digest: Digest,
        /// One sentence for people, 1 to 500 characters.
        user_summary: Text<1, 500>,
        /// Short facts.
        metadata: Option<ReceiptMetadata>,
        /// Always false.
        payload_included: AlwaysFalse,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
}

impl ProtocolObject for Receipt {
    const REFUSED_AS: Code = Code::InvalidReceipt;
}
