//! The form of stored values: protobuf, sealed by the layer below.

use cl_model::digest::Digest;
use cl_model::document::Signed;
use cl_model::key::Signature;
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::{Action, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, BundleId, DecisionId, ProvenanceRef, RequestId};
use prost::Message;

use super::{Follow, Issue, OutboxEntry, StoreError};
use crate::core::assembly::Content;
use crate::core::bundle::{Bundle, Redemption, State};

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct IssueRecord {
    #[prost(int64, optional, tag = "1")]
    taken_until_ms: Option<i64>,
    #[prost(string, optional, tag = "2")]
    bundle: Option<String>,
    #[prost(string, optional, tag = "3")]
    failed: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct BundleRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(string, tag = "3")]
    recipient: String,
    #[prost(string, tag = "4")]
    request: String,
    #[prost(string, tag = "5")]
    decision: String,
    #[prost(string, tag = "6")]
    policy: String,
    #[prost(string, tag = "7")]
    alias: String,
    #[prost(string, tag = "8")]
    subject_tag: String,
    #[prost(string, repeated, tag = "9")]
    sources: Vec<String>,
    #[prost(string, tag = "10")]
    digest: String,
    #[prost(string, repeated, tag = "11")]
    operations: Vec<String>,
    #[prost(int64, tag = "12")]
    expires_at_ms: i64,
    #[prost(int64, tag = "13")]
    grant_ends_ms: i64,
    #[prost(string, tag = "14")]
    state: String,
    #[prost(message, optional, tag = "15")]
    redemption: Option<RedemptionRecord>,
    #[prost(int64, tag = "16")]
    due_ms: i64,
    #[prost(string, tag = "17")]
    issued_by: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct RedemptionRecord {
    #[prost(string, tag = "1")]
    operation_id: String,
    #[prost(string, optional, tag = "2")]
    key: Option<String>,
    #[prost(int64, tag = "3")]
    at_ms: i64,
    #[prost(bool, tag = "4")]
    is_withheld: bool,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ContentRecord {
    #[prost(bytes = "vec", tag = "1")]
    envelope: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    scope: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    scope_signature: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    notes: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    notes_signature: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct DueRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(int64, tag = "3")]
    at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct OutboxRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    operation_id: String,
    #[prost(string, optional, tag = "3")]
    subject_tag: Option<String>,
    #[prost(bytes = "vec", tag = "4")]
    members: Vec<u8>,
    #[prost(string, optional, tag = "5")]
    live: Option<String>,
    #[prost(string, optional, tag = "6")]
    redeemed: Option<String>,
}

/// What is due, and when.
pub(super) struct DueNote {
    pub(super) tenant: TenantName,
    pub(super) id: BundleId,
    pub(super) at: UnixTime,
}

pub(super) fn encode_issue(issue: &Issue) -> Vec<u8> {
    let mut record = IssueRecord::default();
    match issue {
        Issue::Taken(until) => record.taken_until_ms = Some(until.milliseconds()),
        Issue::Issued(id) => record.bundle = Some(id.as_str().to_owned()),
        Issue::Failed(code) => record.failed = Some(code.clone()),
    }
    record.encode_to_vec()
}

pub(super) fn decode_issue(value: &[u8]) -> Result<Issue, StoreError> {
    let record: IssueRecord = decode(value)?;
    match (record.taken_until_ms, record.bundle, record.failed) {
        (Some(until), None, None) => Ok(Issue::Taken(UnixTime::from_milliseconds(until))),
        (None, Some(id), None) => BundleId::parse(&id)
            .map(Issue::Issued)
            .ok_or(StoreError::Corrupt),
        (None, None, Some(code)) => Ok(Issue::Failed(code)),
        _ => Err(StoreError::Corrupt),
    }
}

pub(super) fn encode_bundle(bundle: &Bundle) -> Vec<u8> {
    let redemption = bundle.redemption.as_ref();
    let record = BundleRecord {
        tenant: bundle.tenant.as_str().to_owned(),
        id: bundle.id.as_str().to_owned(),
        recipient: bundle.recipient.as_str().to_owned(),
        request: bundle.request.as_str().to_owned(),
        decision: bundle.decision.as_str().to_owned(),
        policy: bundle.policy.to_string(),
        alias: bundle.alias.as_str().to_owned(),
        subject_tag: bundle.subject_tag.clone(),
        sources: bundle
            .sources
            .iter()
            .map(|it| it.as_str().to_owned())
            .collect(),
        digest: bundle.digest.to_string(),
        operations: bundle
            .operations
            .iter()
            .map(|it| it.as_str().to_owned())
            .collect(),
        expires_at_ms: bundle.expires_at.milliseconds(),
        grant_ends_ms: bundle.grant_ends.milliseconds(),
        state: bundle.state.as_str().to_owned(),
        redemption: redemption.map(|redemption| RedemptionRecord {
            operation_id: redemption.operation_id.as_str().to_owned(),
            key: redemption.key.map(|key| key.to_string()),
            at_ms: redemption.at.milliseconds(),
            is_withheld: redemption.is_withheld,
        }),
        due_ms: bundle.due.milliseconds(),
        issued_by: bundle.issued_by.as_str().to_owned(),
    };
    record.encode_to_vec()
}

pub(super) fn decode_bundle(value: &[u8]) -> Result<Bundle, StoreError> {
    let record: BundleRecord = decode(value)?;
    read_bundle(record).ok_or(StoreError::Corrupt)
}

fn read_bundle(record: BundleRecord) -> Option<Bundle> {
    let sources = record.sources.iter().map(|text| ProvenanceRef::parse(text));
    let operations = record.operations.into_iter().map(Action::new);
    let redemption = match record.redemption {
        None => None,
        Some(redemption) => Some(redemption.read()?),
    };
    Some(Bundle {
        tenant: TenantName::parse(&record.tenant)?,
        id: BundleId::parse(&record.id)?,
        recipient: Reference::new(record.recipient)?,
        request: RequestId::parse(&record.request)?,
        decision: DecisionId::parse(&record.decision)?,
        policy: Digest::parse(&record.policy)?,
        alias: Alias::parse(&record.alias)?,
        subject_tag: record.subject_tag,
        sources: sources.collect::<Option<_>>()?,
        digest: Digest::parse(&record.digest)?,
        operations: operations.collect::<Option<_>>()?,
        issued_by: OperationId::parse(&record.issued_by)?,
        expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
        grant_ends: UnixTime::from_milliseconds(record.grant_ends_ms),
        state: State::parse(&record.state)?,
        redemption,
        due: UnixTime::from_milliseconds(record.due_ms),
    })
}

impl RedemptionRecord {
    fn read(self) -> Option<Redemption> {
        let key = match self.key {
            None => None,
            Some(key) => Some(Digest::parse(&key)?),
        };
        Some(Redemption {
            operation_id: OperationId::parse(&self.operation_id)?,
            key,
            at: UnixTime::from_milliseconds(self.at_ms),
            is_withheld: self.is_withheld,
        })
    }
}

pub(super) fn encode_content(content: &Content) -> Vec<u8> {
    let record = ContentRecord {
        envelope: content.envelope.clone(),
        scope: content.scope.document.clone(),
        scope_signature: content.scope.signature.as_bytes().to_vec(),
        notes: content.notes.document.clone(),
        notes_signature: content.notes.signature.as_bytes().to_vec(),
    };
    record.encode_to_vec()
}

pub(super) fn decode_content(value: &[u8]) -> Result<Content, StoreError> {
    let record: ContentRecord = decode(value)?;
    let signed = |document, signature: Vec<u8>| {
        let signature = Signature::new(signature.try_into().ok()?);
        Some(Signed {
            document,
            signature,
        })
    };
    let scope = signed(record.scope, record.scope_signature);
    let notes = signed(record.notes, record.notes_signature);
    Ok(Content {
        envelope: record.envelope,
        scope: scope.ok_or(StoreError::Corrupt)?,
        notes: notes.ok_or(StoreError::Corrupt)?,
    })
}

pub(super) fn encode_due(bundle: &Bundle) -> Vec<u8> {
    let record = DueRecord {
        tenant: bundle.tenant.as_str().to_owned(),
        id: bundle.id.as_str().to_owned(),
        at_ms: bundle.due.milliseconds(),
    };
    record.encode_to_vec()
}

pub(super) fn decode_due(value: &[u8]) -> Result<DueNote, StoreError> {
    let record: DueRecord = decode(value)?;
    Ok(DueNote {
        tenant: TenantName::parse(&record.tenant).ok_or(StoreError::Corrupt)?,
        id: BundleId::parse(&record.id).ok_or(StoreError::Corrupt)?,
        at: UnixTime::from_milliseconds(record.at_ms),
    })
}

pub(super) fn encode_outbox(entry: &OutboxEntry) -> Vec<u8> {
    let (live, redeemed) = match &entry.follow {
        Follow::Nothing => (None, None),
        Follow::Live(id) => (Some(id.as_str().to_owned()), None),
        Follow::Redeemed(id) => (None, Some(id.as_str().to_owned())),
    };
    let record = OutboxRecord {
        tenant: entry.tenant.as_str().to_owned(),
        operation_id: entry.operation_id.as_str().to_owned(),
        subject_tag: entry.subject_tag.clone(),
        members: entry.members.clone(),
        live,
        redeemed,
    };
    record.encode_to_vec()
}

pub(super) fn decode_outbox(value: &[u8]) -> Result<OutboxEntry, StoreError> {
    let record: OutboxRecord = decode(value)?;
    let id = |text: &str| BundleId::parse(text).ok_or(StoreError::Corrupt);
    let follow = match (record.live.as_deref(), record.redeemed.as_deref()) {
        (None, None) => Follow::Nothing,
        (Some(text), None) => Follow::Live(id(text)?),
        (None, Some(text)) => Follow::Redeemed(id(text)?),
        (Some(_), Some(_)) => return Err(StoreError::Corrupt),
    };
    Ok(OutboxEntry {
        tenant: TenantName::parse(&record.tenant).ok_or(StoreError::Corrupt)?,
        operation_id: OperationId::parse(&record.operation_id).ok_or(StoreError::Corrupt)?,
        subject_tag: record.subject_tag,
        members: record.members,
        follow,
    })
}

pub(super) fn decode_id(value: &[u8]) -> Result<BundleId, StoreError> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(BundleId::parse).ok_or(StoreError::Corrupt)
}

pub(super) fn decode_digest(value: &[u8]) -> Result<Digest, StoreError> {
    let bytes: [u8; 32] = value.try_into().map_err(|_| StoreError::Corrupt)?;
    Ok(Digest::from(bytes))
}

pub(super) fn encode_time(time: UnixTime) -> [u8; 8] {
    time.milliseconds().to_be_bytes()
}

pub(super) fn decode_time(value: &[u8]) -> Result<UnixTime, StoreError> {
    let bytes = value.try_into().map_err(|_| StoreError::Corrupt)?;
    Ok(UnixTime::from_milliseconds(i64::from_be_bytes(bytes)))
}

pub(super) fn decode<M: Message + Default>(value: &[u8]) -> Result<M, StoreError> {
    M::decode(value).map_err(|_| StoreError::Corrupt)
}
