//! Legal holds: what they cover, and how they are kept.

use cl_host::identity::SpiffeId;
use cl_model::digest::Digest;
use prost::Message;
use serde_json::json;

use super::records::EntryRecord;
use super::routing::{OperationId, SubjectTag};
use crate::error::Error;

/// How many holds a tenant has at most: all of them are one record.
pub const MAX_HOLDS: usize = 256;

const OPERATION_PREFIX: &str = "urn:cl:operation:";
const HOLD_PREFIX: &str = "urn:cl:hold:";

/// What a hold covers.
#[derive(Clone, PartialEq, Eq)]
pub enum HoldTarget {
    /// All receipts of the tenant.
    Tenant,
    /// Those of one subject.
    Subject(SubjectTag),
    /// Those about one bundle.
    Bundle(String),
    /// One, by its URN.
    Receipt(String),
}

impl HoldTarget {
    /// What kind of target it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Subject(_) => "subject",
            Self::Bundle(_) => "bundle",
            Self::Receipt(_) => "receipt",
        }
    }

    /// Tells one target from another.
    pub fn digest(&self) -> Digest {
        let name = match self {
            Self::Tenant => "",
            Self::Subject(tag) => tag.as_str(),
            Self::Bundle(name) | Self::Receipt(name) => name,
        };
        Digest::of_json(&json!({"kind": self.kind(), "name": name}))
    }

    fn covers(&self, entry: &EntryRecord) -> bool {
        match self {
            Self::Tenant => true,
            Self::Subject(tag) => entry.subject_tag() == Some(tag.as_str()),
            Self::Bundle(bundle) => entry.bundle_ref.as_ref() == Some(bundle),
            Self::Receipt(reference) => entry.receipt_ref == *reference,
        }
    }
}

/// All holds of a tenant, the oldest first.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HoldsRecord {
    /// The holds.
    #[prost(message, repeated, tag = "1")]
    pub holds: Vec<HoldRecord>,
}

/// A hold. Without a subject, bundle and receipt it covers the tenant.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct HoldRecord {
    /// Its URN.
    #[prost(string, tag = "1")]
    pub hold_id: String,
    /// The subject that it covers.
    #[prost(string, optional, tag = "2")]
    pub subject_tag: Option<String>,
    /// The bundle that it covers.
    #[prost(string, optional, tag = "3")]
    pub bundle_ref: Option<String>,
    /// The receipt that it covers.
    #[prost(string, optional, tag = "4")]
    pub receipt_ref: Option<String>,
    /// Why it is there.
    #[prost(string, tag = "5")]
    pub reason: String,
    /// The SPIFFE id of the operator who placed it.
    #[prost(string, tag = "6")]
    pub placed_by: String,
    /// When, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "7")]
    pub placed_at_ms: u64,
}

impl HoldsRecord {
    /// Whether a receipt must stay.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a hold that does not read: what it covers is not known, so nothing
    /// may be erased.
    pub fn cover(&self, entry: &EntryRecord) -> Result<bool, Error> {
        for hold in &self.holds {
            if hold.target()?.covers(entry) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl HoldRecord {
    /// A new hold.
    pub fn new(
        operation: &OperationId,
        target: &HoldTarget,
        reason: &str,
        placed_by: &SpiffeId,
        placed_at_ms: u64,
    ) -> Self {
        let (mut subject_tag, mut bundle_ref, mut receipt_ref) = (None, None, None);
        match target {
            HoldTarget::Tenant => {}
            HoldTarget::Subject(tag) => subject_tag = Some(tag.as_str().to_owned()),
            HoldTarget::Bundle(bundle) => bundle_ref = Some(bundle.clone()),
            HoldTarget::Receipt(receipt) => receipt_ref = Some(receipt.clone()),
        }
        Self {
            hold_id: hold_id(operation),
            subject_tag,
            bundle_ref,
            receipt_ref,
            reason: reason.to_owned(),
            placed_by: placed_by.as_str().to_owned(),
            placed_at_ms,
        }
    }

    /// What it covers.
    pub fn target(&self) -> Result<HoldTarget, Error> {
        let unread = Error::Corrupt("a hold does not read");
        match (&self.subject_tag, &self.bundle_ref, &self.receipt_ref) {
            (None, None, None) => Ok(HoldTarget::Tenant),
            (Some(tag), None, None) => {
                let tag = SubjectTag::parse(tag).ok_or(unread)?;
                Ok(HoldTarget::Subject(tag))
            }
            (None, Some(bundle), None) => Ok(HoldTarget::Bundle(bundle.clone())),
            (None, None, Some(receipt)) => Ok(HoldTarget::Receipt(receipt.clone())),
            (Some(_) | None, Some(_) | None, Some(_) | None) => Err(unread),
        }
    }
}

/// The id of the hold that an operation places.
pub fn hold_id(operation: &OperationId) -> String {
    operation
        .as_str()
        .replacen(OPERATION_PREFIX, HOLD_PREFIX, 1)
}

/// Whether a text has the form of a hold's id.
pub fn is_hold_id(text: &str) -> bool {
    let operation = text
        .strip_prefix(HOLD_PREFIX)
        .map(|id| format!("{OPERATION_PREFIX}{id}"));
    operation
        .and_then(|operation| OperationId::parse(&operation))
        .is_some_and(|operation| operation.is_uuid())
}
