//! `minimum_reveal_response` (spec 7.6).

use serde_json::Value;

use super::ProtocolObject;
use crate::json::read::{FromJson, Mismatch, ToJson, constant, object};
use crate::list::Dictionary;
use crate::part::{Integrity, Issuer, SpecVersion};
use crate::refusal::Code;
use crate::scalar::{Bounded, Name, Text};
use crate::time::Timestamp;
use crate::urn::{DecisionId, DiscoveryRequestId, DiscoveryResultId};

constant! {
    /// `type` of a minimum-reveal response.
    pub struct MinimumRevealResponseType = "minimum_reveal_response";
}

/// A revealed field: a short text or a flag, so that neither scores nor features fit in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevealedValue {
    /// 1 to 500 characters.
    Text(Text<1, 500>),
    /// A flag.
    Flag(bool),
}

impl FromJson for RevealedValue {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        if let Some(flag) = value.as_bool() {
            return Ok(Self::Flag(flag));
        }
        Text::from_json(value).map(Self::Text)
    }
}

impl ToJson for RevealedValue {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.to_json(),
            Self::Flag(flag) => flag.to_json(),
        }
    }
}

object! {
    /// What is left of the requester's query budget.
    pub struct QueryBudgetState {
        /// Queries left in this window, up to 1,000,000.
        remaining: Bounded<0, 1_000_000>,
        /// When the window ends.
        window_ends_at: Timestamp,
    }
}

object! {
    /// The answer to an external match: a result and nothing that led to it (spec 7.6).
    pub struct MinimumRevealResponse {
        /// The protocol version.
        spec_version: SpecVersion,
        /// The object type.
        kind as "type": MinimumRevealResponseType,
        /// The response's id.
        id: DiscoveryResultId,
        /// When it was made.
        created_at: Timestamp,
        /// The discovery proxy.
        issuer: Issuer,
        /// The discovery request.
        request_ref: DiscoveryRequestId,
        /// The decision, if one was recorded.
        decision_ref: Option<DecisionId>,
        /// The result class.
        result: Name,
        /// The fields that policy allows, up to 16.
        reveal: Dictionary<Name, RevealedValue, 0, 16>,
        /// Whether a person must approve before more is revealed.
        requires_user_approval: bool,
        /// What is left of the budget.
        query_budget_state: QueryBudgetState,
        /// When the answer ends.
        expires_at: Timestamp,
        /// The digest of the contents.
        integrity: Option<Integrity>,
    }
}

impl ProtocolObject for MinimumRevealResponse {
    const REFUSED_AS: Code = Code::InvalidMinimumRevealResponse;
}
