//! Exchanges under a grant, and the proposals that come back from them.

use cl_model::digest::Digest;
use cl_model::scalar::{Action, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::{DecisionId, EventId, RequestId};
use prost::Message;

use super::{StoreError, texts};

/// What an exchange under a grant needs to find its way back.
#[derive(Clone, PartialEq)]
pub struct Exchange {
    /// Who received the bundle.
    pub recipient: Reference,
    /// The request.
    pub request: RequestId,
    /// The decision.
    pub decision: DecisionId,
    /// What the recipient may do.
    pub actions: Vec<Action>,
    /// When the grant ends.
    pub expires_at: UnixTime,
    /// The subject's tag in receipts.
    pub subject_tag: String,
    /// The events behind the handles.
    pub events: Vec<EventId>,
}

/// A proposal as it is stored.
#[derive(Clone, PartialEq)]
pub struct StoredProposal {
    /// The document with its state.
    pub document: Vec<u8>,
    /// The digest of what was submitted.
    pub submitted: Digest,
    /// When it expires.
    pub expires_at: UnixTime,
    /// The operation that stored it.
    pub operation_id: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(in crate::store) struct ExchangeRecord {
    #[prost(string, tag = "1")]
    recipient: String,
    #[prost(string, tag = "2")]
    request: String,
    #[prost(string, tag = "3")]
    decision: String,
    #[prost(string, repeated, tag = "4")]
    actions: Vec<String>,
    #[prost(int64, tag = "5")]
    expires_at_ms: i64,
    #[prost(string, repeated, tag = "6")]
    events: Vec<String>,
    #[prost(string, tag = "7")]
    subject_tag: String,
}

impl ExchangeRecord {
    pub(in crate::store) fn of(exchange: &Exchange) -> Self {
        Self {
            recipient: exchange.recipient.as_str().to_owned(),
            request: exchange.request.as_str().to_owned(),
            decision: exchange.decision.as_str().to_owned(),
            actions: texts(&exchange.actions),
            expires_at_ms: exchange.expires_at.milliseconds(),
            subject_tag: exchange.subject_tag.clone(),
            events: exchange
                .events
                .iter()
                .map(|event| event.as_str().to_owned())
                .collect(),
        }
    }

    pub(in crate::store) fn read(self) -> Result<Exchange, StoreError> {
        self.try_read().ok_or(StoreError::Corrupt)
    }

    fn try_read(self) -> Option<Exchange> {
        let events = self.events.iter().map(|event| EventId::parse(event));
        Some(Exchange {
            recipient: Reference::new(self.recipient)?,
            request: RequestId::parse(&self.request)?,
            decision: DecisionId::parse(&self.decision)?,
            actions: self
                .actions
                .into_iter()
                .map(Action::new)
                .collect::<Option<_>>()?,
            expires_at: UnixTime::from_milliseconds(self.expires_at_ms),
            subject_tag: self.subject_tag,
            events: events.collect::<Option<_>>()?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(in crate::store) struct ProposalRecord {
    #[prost(bytes = "vec", tag = "1")]
    document: Vec<u8>,
    #[prost(string, tag = "2")]
    submitted: String,
    #[prost(int64, tag = "3")]
    expires_at_ms: i64,
    #[prost(string, tag = "4")]
    operation_id: String,
}

impl ProposalRecord {
    pub(in crate::store) fn of(proposal: &StoredProposal) -> Self {
        Self {
            document: proposal.document.clone(),
            submitted: proposal.submitted.to_string(),
            expires_at_ms: proposal.expires_at.milliseconds(),
            operation_id: proposal.operation_id.clone(),
        }
    }

    pub(in crate::store) fn read(self) -> Result<StoredProposal, StoreError> {
        Ok(StoredProposal {
            document: self.document,
            submitted: Digest::parse(&self.submitted).ok_or(StoreError::Corrupt)?,
            expires_at: UnixTime::from_milliseconds(self.expires_at_ms),
            operation_id: self.operation_id,
        })
    }
}
