//! The protocol's objects as types (spec 7). What these types accept is what `schemas/` accepts.

mod bundle;
mod claim;
mod decision;
mod discovery;
mod error;
mod event;
mod evidence;
mod proposal;
mod receipt;
mod request;

use serde_json::Value;

pub use self::bundle::{
    ContextItem, MemoryWrite, OpaqueReference, OpaqueReferenceKind, ProvenanceMap,
    RawVaultResolution, ReceiptContract, Restrictions, ScopedContextBundle,
    ScopedContextBundleType,
};
pub use self::claim::{
    ClaimEdit, ClaimStatus, ClaimSupersession, ContextClaim, ContextClaimType, TypedValue, Validity,
};
pub use self::decision::{
    ApprovalBinding, ApprovalVerification, DecisionState, PolicyDecision, PolicyDecisionType,
    PreflightStatus, ReceiptPreflight,
};
pub use self::discovery::{
    MinimumRevealResponse, MinimumRevealResponseType, QueryBudgetState, RevealedValue,
};
pub use self::error::{ErrorObject, ErrorType};
pub use self::event::{
    EventEdit, EventSource, EventSupersession, PayloadRef, SourceEvent, SourceEventType,
    SourceProvenance,
};
pub use self::evidence::{
    AdapterInfo, AdapterObject, AuthorizationContext, DeletionMarker, Evidence, NativeSignature,
    OriginalTime, SignatureVerification,
};
pub use self::proposal::{
    MemoryOperation, MemoryUpdateProposal, MemoryUpdateProposalType, ProposalStatus, ProposedClaim,
};
pub use self::receipt::{Outcome, Receipt, ReceiptMetadata, ReceiptType};
pub use self::request::{ContextRequest, ContextRequestType, Recipient, Requester};

use crate::json::read::{FromJson, ToJson};
use crate::refusal::{Code, Refusal};

/// A top-level object of the protocol.
pub trait ProtocolObject: FromJson + ToJson {
    /// The code under which a value that does not fit is refused.
    const REFUSED_AS: Code;

    /// Reads a value with the verdict of the object's closed schema.
    ///
    /// # Errors
    ///
    /// [`Self::REFUSED_AS`], with the place that does not fit.
    fn read(value: &Value) -> Result<Self, Refusal> {
        Self::from_json(value).map_err(|mismatch| mismatch.refuse(Self::REFUSED_AS))
    }
}
