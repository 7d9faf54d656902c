//! The form of stored values about people: protobuf, sealed by the layer below.

use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::{ApprovalId, CredentialId};
use prost::Message;

use super::{
    Credential, CredentialState, Link, OpenedAnswer, Past, Pending, Session, Spent, Unrevoked,
};
use crate::core::open_answers::OpenAnswers;
use crate::core::operation::{OperationId, TenantName};
use crate::store::StoreError;
use crate::store::records::{KeyRecord, decode};

#[derive(Clone, PartialEq, Message)]
struct SpentRecord {
    #[prost(string, optional, tag = "1")]
    operation: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct OpenedAnswerRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    principal: String,
    #[prost(string, tag = "3")]
    approval: String,
    #[prost(string, tag = "4")]
    item: String,
    #[prost(bytes = "vec", tag = "5")]
    document: Vec<u8>,
    #[prost(int64, tag = "6")]
    expires_at_ms: i64,
    #[prost(message, optional, tag = "7")]
    spent: Option<SpentRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct OpenAnswersRecord {
    #[prost(bytes = "vec", repeated, tag = "1")]
    open: Vec<Vec<u8>>,
    #[prost(uint32, tag = "2")]
    refused: u32,
    #[prost(int64, optional, tag = "3")]
    refused_until_ms: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct SessionRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    principal: String,
    #[prost(string, tag = "3")]
    credential: String,
    #[prost(int64, tag = "4")]
    used_at_ms: i64,
    #[prost(int64, tag = "5")]
    expires_at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct LinkRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    principal: String,
    #[prost(int64, tag = "3")]
    expires_at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct NamedRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    reference: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct CredentialRecord {
    #[prost(message, required, tag = "1")]
    name: NamedRecord,
    #[prost(string, tag = "2")]
    principal: String,
    #[prost(bytes = "vec", tag = "3")]
    id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    key: Vec<u8>,
    #[prost(uint32, tag = "5")]
    counter: u32,
    #[prost(bool, tag = "6")]
    is_backup_eligible: bool,
    #[prost(string, tag = "7")]
    state: String,
    #[prost(int64, tag = "8")]
    enrolled_at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct PendingRecord {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(message, required, tag = "2")]
    key: KeyRecord,
    #[prost(string, tag = "3")]
    decision_id: String,
    #[prost(string, tag = "4")]
    request_digest: String,
    #[prost(string, tag = "5")]
    subject: String,
    #[prost(int64, tag = "6")]
    created_at_ms: i64,
    #[prost(int64, tag = "7")]
    expires_at_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct PastRecord {
    #[prost(message, required, tag = "1")]
    key: KeyRecord,
    #[prost(string, tag = "2")]
    decision_id: String,
    #[prost(uint64, tag = "3")]
    place: u64,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct UnrevokedRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    decision_id: String,
    #[prost(string, tag = "3")]
    operation_id: String,
}

impl SpentRecord {
    fn of(spent: &Spent) -> Self {
        Self {
            operation: match spent {
                Spent::Unnamed => None,
                Spent::By(id) => Some(id.to_string()),
            },
        }
    }

    fn read(self) -> Option<Spent> {
        match self.operation {
            None => Some(Spent::Unnamed),
            Some(id) => OperationId::parse(&id).map(Spent::By),
        }
    }
}

pub(in crate::store) fn encode_spent(spent: &Spent) -> Vec<u8> {
    SpentRecord::of(spent).encode_to_vec()
}

pub(in crate::store) fn decode_spent(value: &[u8]) -> Result<Spent, StoreError> {
    let record: SpentRecord = decode(value)?;
    record.read().ok_or(StoreError::Corrupt)
}

pub(in crate::store) fn encode_opened_answer(opened: &OpenedAnswer) -> Vec<u8> {
    let record = OpenedAnswerRecord {
        tenant: opened.tenant.as_str().to_owned(),
        principal: opened.principal.as_str().to_owned(),
        approval: opened.approval.to_string(),
        item: opened.item.to_string(),
        document: opened.document.clone(),
        expires_at_ms: opened.expires_at.milliseconds(),
        spent: opened.spent_by.as_ref().map(SpentRecord::of),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_opened_answer(value: &[u8]) -> Result<OpenedAnswer, StoreError> {
    let record: OpenedAnswerRecord = decode(value)?;
    let read = || {
        Some(OpenedAnswer {
            tenant: TenantName::parse(&record.tenant)?,
            principal: Reference::new(record.principal)?,
            approval: ApprovalId::parse(&record.approval)?,
            item: Digest::parse(&record.item)?,
            document: record.document,
            expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
            spent_by: match record.spent {
                None => None,
                Some(spent) => Some(spent.read()?),
            },
        })
    };
    read().ok_or(StoreError::Corrupt)
}

pub(in crate::store) fn encode_open_answers(answers: &OpenAnswers) -> Vec<u8> {
    let record = OpenAnswersRecord {
        open: answers.open.iter().map(|id| id.to_vec()).collect(),
        refused: answers.refused,
        refused_until_ms: answers.refused_until.map(UnixTime::milliseconds),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_open_answers(value: &[u8]) -> Result<OpenAnswers, StoreError> {
    let record: OpenAnswersRecord = decode(value)?;
    let open: Result<_, _> = record.open.into_iter().map(TryInto::try_into).collect();
    Ok(OpenAnswers {
        open: open.map_err(|_| StoreError::Corrupt)?,
        refused: record.refused,
        refused_until: record.refused_until_ms.map(UnixTime::from_milliseconds),
    })
}

pub(in crate::store) fn encode_session(session: &Session) -> Vec<u8> {
    let record = SessionRecord {
        tenant: session.tenant.as_str().to_owned(),
        principal: session.principal.as_str().to_owned(),
        credential: session.credential.to_string(),
        used_at_ms: session.used_at.milliseconds(),
        expires_at_ms: session.expires_at.milliseconds(),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_session(value: &[u8]) -> Result<Session, StoreError> {
    let record: SessionRecord = decode(value)?;
    let read = || {
        Some(Session {
            tenant: TenantName::parse(&record.tenant)?,
            principal: Reference::new(record.principal)?,
            credential: CredentialId::parse(&record.credential)?,
            used_at: UnixTime::from_milliseconds(record.used_at_ms),
            expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
        })
    };
    read().ok_or(StoreError::Corrupt)
}

pub(in crate::store) fn encode_link(link: &Link) -> Vec<u8> {
    let record = LinkRecord {
        tenant: link.tenant.as_str().to_owned(),
        principal: link.principal.as_str().to_owned(),
        expires_at_ms: link.expires_at.milliseconds(),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_link(value: &[u8]) -> Result<Link, StoreError> {
    let record: LinkRecord = decode(value)?;
    let read = || {
        Some(Link {
            tenant: TenantName::parse(&record.tenant)?,
            principal: Reference::new(record.principal)?,
            expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
        })
    };
    read().ok_or(StoreError::Corrupt)
}

impl NamedRecord {
    fn of(credential: &Credential) -> Self {
        Self {
            tenant: credential.tenant.as_str().to_owned(),
            reference: credential.reference.to_string(),
        }
    }

    fn read(&self) -> Option<(TenantName, CredentialId)> {
        Some((
            TenantName::parse(&self.tenant)?,
            CredentialId::parse(&self.reference)?,
        ))
    }
}

pub(in crate::store) fn encode_named(credential: &Credential) -> Vec<u8> {
    NamedRecord::of(credential).encode_to_vec()
}

pub(in crate::store) fn decode_named(
    value: &[u8],
) -> Result<(TenantName, CredentialId), StoreError> {
    let record: NamedRecord = decode(value)?;
    record.read().ok_or(StoreError::Corrupt)
}

impl CredentialState {
    const ALL: [Self; 3] = [Self::Inactive, Self::Active, Self::Revoked];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Revoked => "revoked",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

pub(in crate::store) fn encode_credential(credential: &Credential) -> Vec<u8> {
    let record = CredentialRecord {
        name: NamedRecord::of(credential),
        principal: credential.principal.as_str().to_owned(),
        id: credential.id.clone(),
        key: credential.key.clone(),
        counter: credential.counter,
        is_backup_eligible: credential.is_backup_eligible,
        state: credential.state.as_str().to_owned(),
        enrolled_at_ms: credential.enrolled_at.milliseconds(),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_credential(value: &[u8]) -> Result<Credential, StoreError> {
    let record: CredentialRecord = decode(value)?;
    let read = || {
        let (tenant, reference) = record.name.read()?;
        Some(Credential {
            reference,
            tenant,
            principal: Reference::new(record.principal)?,
            id: record.id,
            key: record.key,
            counter: record.counter,
            is_backup_eligible: record.is_backup_eligible,
            state: CredentialState::parse(&record.state)?,
            enrolled_at: UnixTime::from_milliseconds(record.enrolled_at_ms),
        })
    };
    read().ok_or(StoreError::Corrupt)
}

pub(in crate::store) fn encode_pending(pending: &Pending) -> Vec<u8> {
    let record = PendingRecord {
        reference: pending.reference.to_string(),
        key: KeyRecord::of(&pending.key),
        decision_id: pending.decision_id.clone(),
        request_digest: pending.request_digest.to_string(),
        subject: pending.subject.as_str().to_owned(),
        created_at_ms: pending.created_at.milliseconds(),
        expires_at_ms: pending.expires_at.milliseconds(),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_pending(value: &[u8]) -> Result<Pending, StoreError> {
    let record: PendingRecord = decode(value)?;
    let read = || {
        Some(Pending {
            reference: ApprovalId::parse(&record.reference)?,
            key: record.key.read()?,
            decision_id: record.decision_id,
            request_digest: Digest::parse(&record.request_digest)?,
            subject: Reference::new(record.subject)?,
            created_at: UnixTime::from_milliseconds(record.created_at_ms),
            expires_at: UnixTime::from_milliseconds(record.expires_at_ms),
        })
    };
    read().ok_or(StoreError::Corrupt)
}

pub(in crate::store) fn encode_past(past: &Past) -> Vec<u8> {
    let record = PastRecord {
        key: KeyRecord::of(&past.key),
        decision_id: past.decision_id.clone(),
        place: past.place,
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_past(value: &[u8]) -> Result<Past, StoreError> {
    let record: PastRecord = decode(value)?;
    Ok(Past {
        key: record.key.read().ok_or(StoreError::Corrupt)?,
        decision_id: record.decision_id,
        place: record.place,
    })
}

pub(in crate::store) fn encode_unrevoked(unrevoked: &Unrevoked) -> Vec<u8> {
    let record = UnrevokedRecord {
        tenant: unrevoked.tenant.as_str().to_owned(),
        decision_id: unrevoked.decision_id.clone(),
        operation_id: unrevoked.operation_id.to_string(),
    };
    record.encode_to_vec()
}

pub(in crate::store) fn decode_unrevoked(value: &[u8]) -> Result<Unrevoked, StoreError> {
    let record: UnrevokedRecord = decode(value)?;
    let read = || {
        Some(Unrevoked {
            tenant: TenantName::parse(&record.tenant)?,
            decision_id: record.decision_id,
            operation_id: OperationId::parse(&record.operation_id)?,
        })
    };
    read().ok_or(StoreError::Corrupt)
}
