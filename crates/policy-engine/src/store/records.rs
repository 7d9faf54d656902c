//! The form of stored values: protobuf, sealed by the layer below.

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::document::Signed;
use cl_model::key::Signature;
use cl_model::object::DecisionState;
use cl_model::policy::{Assurance, Delegated, Preflight, SnapshotSignature};
use cl_model::scalar::{KeyId, Name, Predicate, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::{ApprovalId, BundleId, RequestId};
use prost::Message;

use super::people::Queued;
use super::{
    AboutSnapshot, Conclusion, OutboxEntry, RecordedDecision, RequestKey, StoreError,
    StoredRequest, StoredSnapshot,
};
use crate::core::facts::{BoundKey, Facts, Method};
use crate::core::grant::SignedGrant;
use crate::core::operation::{OperationId, TenantName};
use crate::core::signals::Signals;
use crate::core::state::{Standing, State};

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct SnapshotRecord {
    #[prost(bytes = "vec", tag = "1")]
    bytes: Vec<u8>,
    #[prost(message, required, tag = "2")]
    about: AboutRecord,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AboutRecord {
    #[prost(string, tag = "1")]
    digest: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint64, tag = "3")]
    place: u64,
    #[prost(int64, tag = "4")]
    stored_at_ms: i64,
    #[prost(string, tag = "5")]
    stored_by: String,
    #[prost(int64, optional, tag = "6")]
    activated_at_ms: Option<i64>,
    #[prost(string, optional, tag = "7")]
    activated_by: Option<String>,
    #[prost(int64, optional, tag = "8")]
    expires_at_ms: Option<i64>,
    #[prost(string, optional, tag = "9")]
    signed_by: Option<String>,
    #[prost(bytes = "vec", optional, tag = "10")]
    signature: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct RequestRecord {
    #[prost(string, tag = "1")]
    state: String,
    #[prost(string, tag = "2")]
    request_digest: String,
    #[prost(string, tag = "3")]
    decision: String,
    #[prost(int64, tag = "4")]
    expires_at_ms: i64,
    #[prost(string, tag = "5")]
    decision_id: String,
    #[prost(string, tag = "6")]
    operation_id: String,
    #[prost(string, optional, tag = "7")]
    issue: Option<String>,
    #[prost(string, optional, tag = "8")]
    bundle: Option<String>,
    #[prost(string, optional, tag = "9")]
    failure: Option<String>,
    #[prost(message, optional, tag = "10")]
    queued: Option<QueuedRecord>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct QueuedRecord {
    #[prost(string, tag = "1")]
    approval: String,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(int64, tag = "3")]
    created_at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct KeyRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    principal: String,
    #[prost(string, tag = "3")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct DecisionRecord {
    #[prost(bytes = "vec", tag = "1")]
    request: Vec<u8>,
    #[prost(message, required, tag = "2")]
    facts: FactsRecord,
    #[prost(string, tag = "3")]
    snapshot: String,
    #[prost(string, tag = "4")]
    preflight: String,
    #[prost(int64, tag = "5")]
    now_ms: i64,
    #[prost(bytes = "vec", tag = "6")]
    decision: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    grant: Option<GrantRecord>,
    #[prost(bytes = "vec", optional, tag = "8")]
    approval: Option<Vec<u8>>,
    #[prost(uint64, repeated, tag = "9")]
    counted: Vec<u64>,
    #[prost(string, optional, tag = "10")]
    anomaly: Option<String>,
    #[prost(message, optional, tag = "11")]
    delegated: Option<DelegatedRecord>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct DelegatedRecord {
    #[prost(string, repeated, tag = "1")]
    predicates: Vec<String>,
    #[prost(int64, tag = "2")]
    until_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct FactsRecord {
    #[prost(string, tag = "1")]
    principal: String,
    #[prost(string, tag = "2")]
    client_instance: String,
    #[prost(string, tag = "3")]
    method: String,
    #[prost(string, tag = "4")]
    assurance: String,
    #[prost(string, optional, tag = "5")]
    certificate_thumbprint: Option<String>,
    #[prost(string, optional, tag = "6")]
    jwk_thumbprint: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct GrantRecord {
    #[prost(bytes = "vec", tag = "1")]
    scope: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    scope_signature: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    plan: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    plan_signature: Vec<u8>,
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
}

pub(super) fn encode_snapshot(bytes: &[u8], about: &AboutSnapshot) -> Vec<u8> {
    let record = SnapshotRecord {
        bytes: bytes.to_vec(),
        about: AboutRecord::of(about),
    };
    record.encode_to_vec()
}

pub(super) fn decode_snapshot(
    value: &[u8],
    version: Version,
) -> Result<StoredSnapshot, StoreError> {
    let record: SnapshotRecord = decode(value)?;
    Ok(StoredSnapshot {
        bytes: record.bytes,
        about: record.about.read().ok_or(StoreError::Corrupt)?,
        version,
    })
}

impl AboutRecord {
    fn of(about: &AboutSnapshot) -> Self {
        let activated = about.activated.as_ref();
        let signature = about.signature.as_ref();
        Self {
            digest: about.digest.to_string(),
            name: about.name.clone(),
            place: about.place,
            stored_at_ms: about.stored_at.milliseconds(),
            stored_by: about.stored_by.to_string(),
            activated_at_ms: activated.map(|(at, _)| at.milliseconds()),
            activated_by: activated.map(|(_, by)| by.to_string()),
            expires_at_ms: about.expires_at.map(UnixTime::milliseconds),
            signed_by: signature.map(|it| it.kid.as_str().to_owned()),
            signature: signature.map(|it| it.signature.as_bytes().to_vec()),
        }
    }

    fn read(self) -> Option<AboutSnapshot> {
        let activated = match (self.activated_at_ms, self.activated_by) {
            (None, None) => None,
            (Some(at), Some(by)) => {
                Some((UnixTime::from_milliseconds(at), OperationId::parse(&by)?))
            }
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let signature = match (self.signed_by, self.signature) {
            (None, None) => None,
            (Some(kid), Some(bytes)) => Some(SnapshotSignature {
                kid: KeyId::new(kid)?,
                signature: Signature::new(bytes.try_into().ok()?),
            }),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        Some(AboutSnapshot {
            digest: Digest::parse(&self.digest)?,
            name: self.name,
            place: self.place,
            stored_at: UnixTime::from_milliseconds(self.stored_at_ms),
            stored_by: OperationId::parse(&self.stored_by)?,
            activated,
            expires_at: self.expires_at_ms.map(UnixTime::from_milliseconds),
            signature,
        })
    }
}

/// A request's state to store.
pub(super) struct RequestState<'a> {
    pub(super) standing: &'a Standing,
    pub(super) decision_id: &'a str,
    pub(super) operation_id: &'a OperationId,
    pub(super) issue: Option<&'a OperationId>,
    pub(super) conclusion: Option<&'a Conclusion>,
    pub(super) queued: Option<&'a Queued>,
}

pub(super) fn encode_request(state: &RequestState<'_>) -> Vec<u8> {
    let standing = state.standing;
    let (bundle, failure) = match state.conclusion {
        None => (None, None),
        Some(Conclusion::Issued(id)) => (Some(id.to_string()), None),
        Some(Conclusion::Failed(code)) => (None, Some(code.clone())),
    };
    let record = RequestRecord {
        state: standing.state.as_str().to_owned(),
        request_digest: standing.request_digest.to_string(),
        decision: standing.decision.as_str().to_owned(),
        expires_at_ms: standing.expires_at.milliseconds(),
        decision_id: state.decision_id.to_owned(),
        operation_id: state.operation_id.to_string(),
        issue: state.issue.map(ToString::to_string),
        bundle,
        failure,
        queued: state.queued.map(QueuedRecord::of),
    };
    record.encode_to_vec()
}

pub(super) fn decode_request(value: &[u8], version: Version) -> Result<StoredRequest, StoreError> {
    let record: RequestRecord = decode(value)?;
    let standing = || {
        Some(Standing {
            state: State::parse(&record.state)?,
            request_digest: Digest::parse(&record.request_digest)?,
            decision: DecisionState::parse(&record.decision)?,
            expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
        })
    };
    let parsed = |text: &str| OperationId::parse(text).ok_or(StoreError::Corrupt);
    let conclusion = match (record.bundle.as_deref(), record.failure) {
        (None, None) => None,
        (Some(id), None) => {
            let id = BundleId::parse(id).ok_or(StoreError::Corrupt)?;
            Some(Conclusion::Issued(id))
        }
        (None, Some(code)) => Some(Conclusion::Failed(code)),
        (Some(_), Some(_)) => return Err(StoreError::Corrupt),
    };
    let queued = match record.queued.clone() {
        None => None,
        Some(queued) => Some(queued.read().ok_or(StoreError::Corrupt)?),
    };
    Ok(StoredRequest {
        queued,
        standing: standing().ok_or(StoreError::Corrupt)?,
        operation_id: parsed(&record.operation_id)?,
        issue: record.issue.as_deref().map(parsed).transpose()?,
        conclusion,
        decision_id: record.decision_id,
        version,
    })
}

impl QueuedRecord {
    fn of(queued: &Queued) -> Self {
        Self {
            approval: queued.approval.to_string(),
            subject: queued.subject.as_str().to_owned(),
            created_at_ms: queued.created_at.milliseconds(),
        }
    }

    fn read(self) -> Option<Queued> {
        Some(Queued {
            approval: ApprovalId::parse(&self.approval)?,
            subject: Reference::new(self.subject)?,
            created_at: UnixTime::from_milliseconds(self.created_at_ms),
        })
    }
}

pub(super) fn encode_key(key: &RequestKey) -> Vec<u8> {
    KeyRecord::of(key).encode_to_vec()
}

pub(super) fn decode_key(value: &[u8]) -> Result<RequestKey, StoreError> {
    let record: KeyRecord = decode(value)?;
    record.read().ok_or(StoreError::Corrupt)
}

impl KeyRecord {
    pub(super) fn of(key: &RequestKey) -> Self {
        Self {
            tenant: key.tenant.as_str().to_owned(),
            principal: key.principal.as_str().to_owned(),
            id: key.id.to_string(),
        }
    }

    pub(super) fn read(self) -> Option<RequestKey> {
        Some(RequestKey {
            tenant: TenantName::parse(&self.tenant)?,
            principal: Reference::new(self.principal)?,
            id: RequestId::parse(&self.id)?,
        })
    }
}

pub(super) fn encode_decision(recorded: &RecordedDecision) -> Vec<u8> {
    let record = DecisionRecord {
        request: recorded.request.clone(),
        facts: FactsRecord::of(&recorded.facts),
        snapshot: recorded.snapshot.to_string(),
        preflight: preflight_name(recorded.preflight).to_owned(),
        now_ms: recorded.now.milliseconds(),
        decision: recorded.decision.clone(),
        grant: recorded.grant.as_ref().map(GrantRecord::of),
        approval: recorded.approval.clone(),
        counted: recorded.signals.counted.clone(),
        anomaly: recorded
            .signals
            .anomaly
            .as_ref()
            .map(|it| it.as_str().to_owned()),
        delegated: recorded.signals.delegated.as_ref().map(DelegatedRecord::of),
    };
    record.encode_to_vec()
}

pub(super) fn decode_decision(value: &[u8]) -> Result<RecordedDecision, StoreError> {
    let record: DecisionRecord = decode(value)?;
    read_decision(record).ok_or(StoreError::Corrupt)
}

fn read_decision(record: DecisionRecord) -> Option<RecordedDecision> {
    let grant = match record.grant {
        None => None,
        Some(grant) => Some(grant.read()?),
    };
    let anomaly = match record.anomaly {
        None => None,
        Some(state) => Some(Name::new(state)?),
    };
    let delegated = match record.delegated {
        None => None,
        Some(delegated) => Some(delegated.read()?),
    };
    Some(RecordedDecision {
        request: record.request,
        facts: record.facts.read()?,
        snapshot: Digest::parse(&record.snapshot)?,
        preflight: read_preflight(&record.preflight)?,
        now: UnixTime::from_milliseconds(record.now_ms),
        decision: record.decision,
        grant,
        approval: record.approval,
        signals: Signals {
            counted: record.counted,
            anomaly,
            delegated,
        },
    })
}

const fn preflight_name(preflight: Preflight) -> &'static str {
    match preflight {
        Preflight::Absent => "absent",
        Preflight::Unavailable => "unavailable",
        Preflight::Available => "available",
    }
}

fn read_preflight(text: &str) -> Option<Preflight> {
    [
        Preflight::Absent,
        Preflight::Unavailable,
        Preflight::Available,
    ]
    .into_iter()
    .find(|preflight| preflight_name(*preflight) == text)
}

impl DelegatedRecord {
    pub(super) fn of(delegated: &Delegated) -> Self {
        let predicates = delegated.predicates.iter();
        Self {
            predicates: predicates.map(|it| it.as_str().to_owned()).collect(),
            until_ms: delegated.until.milliseconds(),
        }
    }

    pub(super) fn read(self) -> Option<Delegated> {
        let predicates = self.predicates.into_iter().map(Predicate::new);
        Some(Delegated {
            predicates: predicates.collect::<Option<_>>()?,
            until: UnixTime::from_milliseconds(self.until_ms),
        })
    }
}

impl FactsRecord {
    fn of(facts: &Facts) -> Self {
        let (certificate_thumbprint, jwk_thumbprint) = match &facts.bound_key {
            None => (None, None),
            Some(BoundKey::Certificate(thumbprint)) => (Some(thumbprint.clone()), None),
            Some(BoundKey::Jwk(thumbprint)) => (None, Some(thumbprint.clone())),
        };
        Self {
            principal: facts.principal.as_str().to_owned(),
            client_instance: facts.client_instance.as_str().to_owned(),
            method: facts.method.as_str().to_owned(),
            assurance: facts.assurance.as_str().to_owned(),
            certificate_thumbprint,
            jwk_thumbprint,
        }
    }

    fn read(self) -> Option<Facts> {
        let bound_key = match (self.certificate_thumbprint, self.jwk_thumbprint) {
            (None, None) => None,
            (Some(thumbprint), None) => Some(BoundKey::Certificate(thumbprint)),
            (None, Some(thumbprint)) => Some(BoundKey::Jwk(thumbprint)),
            (Some(_), Some(_)) => return None,
        };
        Some(Facts {
            principal: Reference::new(self.principal)?,
            client_instance: Reference::new(self.client_instance)?,
            method: Method::parse(&self.method)?,
            assurance: Assurance::parse(&self.assurance)?,
            bound_key,
        })
    }
}

impl GrantRecord {
    fn of(grant: &SignedGrant) -> Self {
        Self {
            scope: grant.scope.document.clone(),
            scope_signature: grant.scope.signature.as_bytes().to_vec(),
            plan: grant.plan.document.clone(),
            plan_signature: grant.plan.signature.as_bytes().to_vec(),
        }
    }

    fn read(self) -> Option<SignedGrant> {
        let signed = |document: Vec<u8>, signature: Vec<u8>| {
            let signature = Signature::new(signature.try_into().ok()?);
            Some(Signed {
                document,
                signature,
            })
        };
        Some(SignedGrant {
            scope: signed(self.scope, self.scope_signature)?,
            plan: signed(self.plan, self.plan_signature)?,
        })
    }
}

pub(super) fn encode_outbox(entry: &OutboxEntry) -> Vec<u8> {
    let record = OutboxRecord {
        tenant: entry.tenant.as_str().to_owned(),
        operation_id: entry.operation_id.to_string(),
        subject_tag: entry.subject_tag.clone(),
        members: entry.members.clone(),
    };
    record.encode_to_vec()
}

pub(super) fn decode_outbox(value: &[u8]) -> Result<OutboxEntry, StoreError> {
    let record: OutboxRecord = decode(value)?;
    Ok(OutboxEntry {
        tenant: TenantName::parse(&record.tenant).ok_or(StoreError::Corrupt)?,
        operation_id: OperationId::parse(&record.operation_id).ok_or(StoreError::Corrupt)?,
        subject_tag: record.subject_tag,
        members: record.members,
    })
}

pub(super) fn decode_digest(value: &[u8]) -> Result<Digest, StoreError> {
    let bytes: [u8; 32] = value.try_into().map_err(|_| StoreError::Corrupt)?;
    Ok(Digest::from(bytes))
}

pub(super) fn decode_count(value: &[u8]) -> Result<u64, StoreError> {
    let bytes = value.try_into().map_err(|_| StoreError::Corrupt)?;
    Ok(u64::from_be_bytes(bytes))
}

pub(super) fn decode<M: Message + Default>(value: &[u8]) -> Result<M, StoreError> {
    M::decode(value).map_err(|_| StoreError::Corrupt)
}
