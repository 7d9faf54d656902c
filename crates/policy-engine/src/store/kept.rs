//! Records that are kept for a time and then forgotten: an index ordered by that time.
//!
//! Each record is indexed in the batch that stores it, and forgotten in one batch with its entry in
//! the index. A crash leaves both or neither, and whatever replica is first does it.

use cl_kv::{Changes, Durability, Engine, Key, Kind, Precondition, Range, Sealed, Tenant};
use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::ApprovalId;
use prost::Message;

use super::kv::{decision_key, operation_key, request_key, unissued_key};
use super::people::{Past, approvals_kv, credentials_kv, history_kv, records as people_records};
use super::rates_kv;
use super::records::{self, KeyRecord};
use super::{RequestKey, StoreError};
use crate::core::challenge::CeremonyId;
use crate::core::operation::{OperationId, TenantName};

const KEPT: Kind = Kind::new("kept");
const SWEPT: Kind = Kind::new("swept");

/// A record that is kept for a time.
pub(super) struct Kept {
    pub(super) what: What,
    pub(super) until: UnixTime,
}

/// Which one.
pub(super) enum What {
    /// What an operation id was used for.
    Operation(TenantName, OperationId),
    /// A decision with its inputs, and its request unless that has a newer one.
    Decision(RequestKey, String),
    /// A challenge that was used up.
    Spent(CeremonyId),
    /// An answer that was opened.
    Answer(CeremonyId),
    /// A session, by the digest of its token.
    Session(Digest),
    /// A one-time link, by the digest of its token.
    Link(Digest),
    /// What waited for an answer.
    Pending(TenantName, ApprovalId),
    /// A decision as the people of its subject see it.
    Past(TenantName, Reference, Past),
    /// A counter of requests, by its name.
    Rate(TenantName, Digest),
}

impl Kept {
    /// Adds the entry of the index.
    pub(super) fn index(&self, changes: Changes) -> Changes {
        changes.put(self.key(), encode(self))
    }

    fn key(&self) -> Key {
        let (kind, tenant, name) = match &self.what {
            What::Operation(tenant, id) => (0, tenant.as_str(), id.as_str().as_bytes()),
            What::Decision(request, id) => (1, request.tenant.as_str(), id.as_bytes()),
            What::Spent(id) => (2, "", id.as_slice()),
            What::Session(token) => (3, "", token.as_bytes().as_slice()),
            What::Link(token) => (4, "", token.as_bytes().as_slice()),
            What::Pending(tenant, id) => (5, tenant.as_str(), id.as_str().as_bytes()),
            What::Past(tenant, _, past) => (6, tenant.as_str(), past.decision_id.as_bytes()),
            What::Answer(id) => (7, "", id.as_slice()),
            What::Rate(tenant, name) => (8, tenant.as_str(), name.as_bytes().as_slice()),
        };
        Tenant::process()
            .key(KEPT)
            .number(u64::try_from(self.until.milliseconds()).unwrap_or(0))
            .public(tenant)
            .number(kind)
            .private(name)
    }
}

/// Forgets at most `limit` records whose time has passed, and says how many.
pub(super) fn sweep<E: Engine>(
    sealed: &Sealed<E>,
    now: UnixTime,
    limit: usize,
) -> Result<usize, StoreError> {
    let found = sealed.scan(&Range::of(Tenant::process().key(KEPT), limit))?;
    let mut changes = Changes::new();
    let mut swept = 0;
    for entry in found {
        let kept = decode(&entry.opened.value)?;
        if kept.until > now {
            break;
        }
        changes = forget(sealed, changes.delete(&entry.key), &kept.what)?;
        swept += 1;
    }
    if swept > 0 {
        if swept_until(sealed)?.is_none_or(|latest| latest < now) {
            changes = changes.put(swept_key(), SweptRecord::at(now).encode_to_vec());
        }
        // What comes back when the machine stops is forgotten again.
        sealed.apply(&changes.durability(Durability::Relaxed))?;
    }
    Ok(swept)
}

/// The latest time that a sweep went to.
pub(super) fn swept_until<E: Engine>(sealed: &Sealed<E>) -> Result<Option<UnixTime>, StoreError> {
    let Some(found) = sealed.get(swept_key())? else {
        return Ok(None);
    };
    let record = SweptRecord::decode(found.value.as_slice()).map_err(|_| StoreError::Corrupt)?;
    Ok(Some(UnixTime::from_milliseconds(record.until_ms)))
}

fn swept_key() -> Key {
    Tenant::process().key(SWEPT)
}

#[derive(Clone, PartialEq, Message)]
struct SweptRecord {
    #[prost(int64, tag = "1")]
    until_ms: i64,
}

impl SweptRecord {
    const fn at(until: UnixTime) -> Self {
        Self {
            until_ms: until.milliseconds(),
        }
    }
}

fn forget<E: Engine>(
    sealed: &Sealed<E>,
    changes: Changes,
    what: &What,
) -> Result<Changes, StoreError> {
    let (request, decision_id) = match what {
        What::Operation(tenant, id) => return Ok(changes.delete(operation_key(tenant, id)?)),
        What::Decision(request, decision_id) => (request, decision_id),
        What::Spent(id) => return Ok(changes.delete(credentials_kv::spent_key(id))),
        What::Answer(id) => return Ok(changes.delete(approvals_kv::answer_key(id))),
        What::Session(token) => return Ok(changes.delete(credentials_kv::session_key(*token))),
        What::Link(token) => return Ok(changes.delete(credentials_kv::link_key(*token))),
        What::Pending(tenant, id) => {
            return Ok(changes.delete(approvals_kv::pending_key(tenant, id)?));
        }
        What::Rate(tenant, name) => {
            return Ok(changes.delete(rates_kv::rate_key(tenant, *name)?));
        }
        What::Past(tenant, subject, past) => {
            return Ok(changes
                .delete(history_kv::past_key(tenant, subject, past)?)
                .delete(history_kv::decided_key(tenant, past)?));
        }
    };
    let changes = changes.delete(decision_key(&request.tenant, decision_id)?);
    let target = request_key(request)?;
    let Some(stored) = sealed.get(&target)? else {
        return Ok(changes);
    };
    let stored = records::decode_request(&stored.value, stored.version)?;
    if stored.decision_id != *decision_id {
        return Ok(changes);
    }
    let changes = changes
        .require(&target, Precondition::Unchanged(stored.version))
        .delete(target)
        .delete(unissued_key(request));
    approvals_kv::unqueued(changes, request, stored.queued.as_ref())
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct KeptRecord {
    #[prost(string, optional, tag = "1")]
    tenant: Option<String>,
    #[prost(string, optional, tag = "2")]
    operation: Option<String>,
    #[prost(message, optional, tag = "3")]
    request: Option<KeyRecord>,
    #[prost(string, optional, tag = "4")]
    decision: Option<String>,
    #[prost(int64, tag = "5")]
    until_ms: i64,
    #[prost(bytes = "vec", optional, tag = "6")]
    spent: Option<Vec<u8>>,
    #[prost(string, optional, tag = "7")]
    session: Option<String>,
    #[prost(string, optional, tag = "8")]
    link: Option<String>,
    #[prost(string, optional, tag = "9")]
    pending: Option<String>,
    #[prost(string, optional, tag = "10")]
    subject: Option<String>,
    #[prost(bytes = "vec", optional, tag = "11")]
    past: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "12")]
    answer: Option<Vec<u8>>,
    #[prost(string, optional, tag = "13")]
    rate: Option<String>,
}

fn encode(kept: &Kept) -> Vec<u8> {
    let mut record = KeptRecord {
        until_ms: kept.until.milliseconds(),
        ..KeptRecord::default()
    };
    match &kept.what {
        What::Operation(tenant, id) => {
            record.tenant = Some(tenant.as_str().to_owned());
            record.operation = Some(id.to_string());
        }
        What::Decision(request, decision) => {
            record.request = Some(KeyRecord::of(request));
            record.decision = Some(decision.clone());
        }
        What::Spent(id) => record.spent = Some(id.to_vec()),
        What::Answer(id) => record.answer = Some(id.to_vec()),
        What::Session(token) => record.session = Some(token.to_string()),
        What::Link(token) => record.link = Some(token.to_string()),
        What::Pending(tenant, id) => {
            record.tenant = Some(tenant.as_str().to_owned());
            record.pending = Some(id.to_string());
        }
        What::Past(tenant, subject, past) => {
            record.tenant = Some(tenant.as_str().to_owned());
            record.subject = Some(subject.as_str().to_owned());
            record.past = Some(people_records::encode_past(past));
        }
        What::Rate(tenant, name) => {
            record.tenant = Some(tenant.as_str().to_owned());
            record.rate = Some(name.to_string());
        }
    }
    record.encode_to_vec()
}

fn decode(value: &[u8]) -> Result<Kept, StoreError> {
    let record: KeptRecord = records::decode(value)?;
    let until = UnixTime::from_milliseconds(record.until_ms);
    let what = read(record).ok_or(StoreError::Corrupt)?;
    Ok(Kept { what, until })
}

/// The one thing that a record names; a record that names none, or more than it should, is corrupt.
fn read(record: KeptRecord) -> Option<What> {
    let what = match record {
        KeptRecord {
            tenant: Some(tenant),
            operation: Some(id),
            ..
        } => What::Operation(TenantName::parse(&tenant)?, OperationId::parse(&id)?),
        KeptRecord {
            request: Some(request),
            decision: Some(decision),
            ..
        } => What::Decision(request.read()?, decision),
        KeptRecord {
            spent: Some(id), ..
        } => What::Spent(id.try_into().ok()?),
        KeptRecord {
            answer: Some(id), ..
        } => What::Answer(id.try_into().ok()?),
        KeptRecord {
            session: Some(token),
            ..
        } => What::Session(Digest::parse(&token)?),
        KeptRecord {
            link: Some(token), ..
        } => What::Link(Digest::parse(&token)?),
        KeptRecord {
            tenant: Some(tenant),
            pending: Some(id),
            ..
        } => What::Pending(TenantName::parse(&tenant)?, ApprovalId::parse(&id)?),
        KeptRecord {
            tenant: Some(tenant),
            subject: Some(subject),
            past: Some(past),
            ..
        } => What::Past(
            TenantName::parse(&tenant)?,
            Reference::new(subject)?,
            people_records::decode_past(&past).ok()?,
        ),
        KeptRecord {
            tenant: Some(tenant),
            rate: Some(name),
            ..
        } => What::Rate(TenantName::parse(&tenant)?, Digest::parse(&name)?),
        KeptRecord { .. } => return None,
    };
    Some(what)
}
