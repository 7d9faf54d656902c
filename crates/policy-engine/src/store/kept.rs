//! Records that are kept for a time and then forgotten: an index ordered by that time.
//!
//! Each record is indexed in the batch that stores it, and forgotten in one batch with its entry in
//! the index. A crash leaves both or neither, and whatever replica is first does it.

use cl_kv::{Changes, Durability, Engine, Key, Kind, Precondition, Range, Sealed, Tenant};
use cl_model::time::UnixTime;
use prost::Message;

use super::kv::{decision_key, operation_key, request_key, unissued_key};
use super::records::{self, KeyRecord};
use super::{RequestKey, StoreError};
use crate::core::operation::{OperationId, TenantName};

const KEPT: Kind = Kind::new("kept");

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
}

impl Kept {
    /// Adds the entry of the index.
    pub(super) fn index(&self, changes: Changes) -> Changes {
        changes.put(self.key(), encode(self))
    }

    fn key(&self) -> Key {
        let (kind, tenant, name) = match &self.what {
            What::Operation(tenant, id) => (0, tenant, id.as_str()),
            What::Decision(request, id) => (1, &request.tenant, id.as_str()),
        };
        Tenant::process()
            .key(KEPT)
            .number(u64::try_from(self.until.milliseconds()).unwrap_or(0))
            .public(tenant.as_str())
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
        // What comes back when the machine stops is forgotten again.
        sealed.apply(&changes.durability(Durability::Relaxed))?;
    }
    Ok(swept)
}

fn forget<E: Engine>(
    sealed: &Sealed<E>,
    changes: Changes,
    what: &What,
) -> Result<Changes, StoreError> {
    let (request, decision_id) = match what {
        What::Operation(tenant, id) => return Ok(changes.delete(operation_key(tenant, id)?)),
        What::Decision(request, decision_id) => (request, decision_id),
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
    Ok(changes
        .require(&target, Precondition::Unchanged(stored.version))
        .delete(target)
        .delete(unissued_key(request)))
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
    }
    record.encode_to_vec()
}

fn decode(value: &[u8]) -> Result<Kept, StoreError> {
    let record: KeptRecord = records::decode(value)?;
    let what = match (
        record.tenant,
        record.operation,
        record.request,
        record.decision,
    ) {
        (Some(tenant), Some(id), None, None) => TenantName::parse(&tenant)
            .zip(OperationId::parse(&id))
            .map(|(tenant, id)| What::Operation(tenant, id)),
        (None, None, Some(request), Some(decision)) => request
            .read()
            .map(|request| What::Decision(request, decision)),
        _ => None,
    };
    Ok(Kept {
        what: what.ok_or(StoreError::Corrupt)?,
        until: UnixTime::from_milliseconds(record.until_ms),
    })
}
