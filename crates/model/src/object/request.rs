//! `context_request` (spec 7.3).

use super::ProtocolObject;
use crate::json::read::{constant, object};
use crate::list::UniqueList;
use crate::part::{
    Issuer, OnwardDisclosure, ReceiptRequirement, Retention, Selector, SpecVersion, Task,
};
use crate::purpose::PurposeCode;
use crate::refusal::Code;
use crate::scalar::{Action, Reference, Text};
use crate::time::Timestamp;
use crate::urn::RequestId;

constant! {
    /// `type` of a context request.
    pub struct ContextRequestType = "context_request";
}

object! {
    /// Who asks, as the request states it; the transport must agree (spec 11.1).
    pub struct Requester {
        /// The asking principal.
        principal: Reference,
        /// How it was authenticated, 1 to 120 characters.
        authenticated_by: Text<1, 120>,
        /// The client instance that it uses.
        client_instance: Reference,
    }
}

object! {
    /// Who is to receive the context (spec 7.3).
    pub struct Recipient {
        /// The receiving principal.
        principal: Reference,
        /// Whether it asks to pass context on.
        onward_disclosure: OnwardDisclosure,
    }
}

object! {
    /// A request for named facts, for a named purpose, for a named recipient (spec 7.3).
    pub struct ContextRequest {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": ContextRequestType,
        /// Chosen by the requester; unique for it.
        id: RequestId,
        /// When the requester made it.
        created_at: Timestamp,
        /// The component that made it.
        issuer: Issuer,
        /// Whose context is asked for.
        subject_ref: Reference,
        /// Who asks.
        requester: Requester,
        /// Who is to receive.
        recipient: Recipient,
        /// What for: the only purpose input to authorisation.
        purpose_code: PurposeCode,
        /// Words for people, 3 to 240 characters; never an input to authorisation.
        purpose: Option<Text<3, 240>>,
        /// The task.
        task: Task,
        /// The facts asked for, 1 to 64.
        selectors: UniqueList<Selector, 1, 64>,
        /// The actions asked for, up to 64.
        requested_actions: UniqueList<Action, 0, 64>,
        /// The retention asked for.
        retention: Retention,
        /// The receipts asked for.
        receipt_requirement: ReceiptRequirement,
        /// When the request stops being valid.
        expires_at: Timestamp,
    }
}

impl ProtocolObject for ContextRequest {
    const REFUSED_AS: Code = Code::InvalidRequest;
}
