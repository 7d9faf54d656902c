//! Records that are kept for a time and then forgotten: an index ordered by that time.
//!
//! Each record is indexed in the batch that stores it, and forgotten in one batch with its entry in
//! the index. A crash leaves both or neither, and whatever replica is first does it.

use cl_kv::{Changes, Durability, Engine, Key, Kind, Precondition, Range, Sealed, Tenant};
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;
use prost::Message;

use super::kv::{bar_key, issue_key, operation_key};
use super::{Issue, StoreError, records};

const KEPT: Kind = Kind::new("kept");

/// A record that is kept for a time.
pub(super) struct Kept {
    pub(super) tenant: TenantName,
    pub(super) what: What,
    pub(super) until: UnixTime,
}

/// Which one.
pub(super) enum What {
    /// What an operation id was used for.
    Operation(OperationId),
    /// A name that was revoked.
    Bar(String),
    /// Where issuing under a decision stands, if there is no bundle that keeps it.
    Issue(DecisionId),
}

impl Kept {
    /// Adds the entry of the index.
    pub(super) fn index(&self, changes: Changes) -> Changes {
        changes.put(self.key(), encode(self))
    }

    fn key(&self) -> Key {
        let (kind, name) = match &self.what {
            What::Operation(id) => (0, id.as_str()),
            What::Bar(name) => (1, name.as_str()),
            What::Issue(decision) => (2, decision.as_str()),
        };
        Tenant::process()
            .key(KEPT)
            .number(u64::try_from(self.until.milliseconds()).unwrap_or(0))
            .public(self.tenant.as_str())
            .number(kind)
            .private(name)
    }
}

/// Forgets at most `limit` records whose time has passed, and says how many were looked at.
pub(super) fn sweep<E: Engine>(
    sealed: &Sealed<E>,
    now: UnixTime,
    limit: usize,
) -> Result<usize, StoreError> {
    let found = sealed.scan(&Range::of(Tenant::process().key(KEPT), limit))?;
    let mut changes = Changes::new();
    let mut looked_at = 0;
    for entry in found {
        let kept = decode(&entry.opened.value)?;
        if kept.until > now {
            break;
        }
        changes = forget(sealed, changes.delete(&entry.key), &kept, now)?;
        looked_at += 1;
    }
    if looked_at > 0 {
        // What comes back when the machine stops is forgotten again.
        sealed.apply(&changes.durability(Durability::Relaxed))?;
    }
    Ok(looked_at)
}

/// Adds the end of a record, unless it was stored anew and is kept for longer.
fn forget<E: Engine>(
    sealed: &Sealed<E>,
    changes: Changes,
    kept: &Kept,
    now: UnixTime,
) -> Result<Changes, StoreError> {
    let target = match &kept.what {
        What::Operation(id) => return Ok(changes.delete(operation_key(&kept.tenant, id)?)),
        What::Bar(name) => bar_key(&kept.tenant, name)?,
        What::Issue(decision) => issue_key(&kept.tenant, decision)?,
    };
    let Some(stored) = sealed.get(&target)? else {
        return Ok(changes);
    };
    let is_over = match &kept.what {
        What::Operation(_) => true,
        What::Bar(_) => records::decode_time(&stored.value)? <= now,
        What::Issue(_) => match records::decode_issue(&stored.value)? {
            Issue::Issued(_) => false,
            Issue::Taken(_) | Issue::Failed(_) => true,
        },
    };
    if !is_over {
        return Ok(changes);
    }
    Ok(changes
        .require(&target, Precondition::Unchanged(stored.version))
        .delete(target))
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct KeptRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, optional, tag = "2")]
    operation: Option<String>,
    #[prost(string, optional, tag = "3")]
    bar: Option<String>,
    #[prost(string, optional, tag = "4")]
    decision: Option<String>,
    #[prost(int64, tag = "5")]
    until_ms: i64,
}

fn encode(kept: &Kept) -> Vec<u8> {
    let mut record = KeptRecord {
        tenant: kept.tenant.as_str().to_owned(),
        until_ms: kept.until.milliseconds(),
        ..KeptRecord::default()
    };
    match &kept.what {
        What::Operation(id) => record.operation = Some(id.as_str().to_owned()),
        What::Bar(name) => record.bar = Some(name.clone()),
        What::Issue(decision) => record.decision = Some(decision.as_str().to_owned()),
    }
    record.encode_to_vec()
}

fn decode(value: &[u8]) -> Result<Kept, StoreError> {
    let record: KeptRecord = records::decode(value)?;
    let what = match (record.operation, record.bar, record.decision) {
        (Some(id), None, None) => OperationId::parse(&id).map(What::Operation),
        (None, Some(name), None) => Some(What::Bar(name)),
        (None, None, Some(id)) => DecisionId::parse(&id).map(What::Issue),
        _ => None,
    };
    Ok(Kept {
        tenant: TenantName::parse(&record.tenant).ok_or(StoreError::Corrupt)?,
        what: what.ok_or(StoreError::Corrupt)?,
        until: UnixTime::from_milliseconds(record.until_ms),
    })
}
