//! Operations and their receipts.
//!
//! ```text
//! tenant  operation private(operation id)                     -> what it was used for
//! process outbox    public(tenant) private(operation id)      -> receipt to write
//! ```

use cl_kv::{Changes, Key, Kind, Located, Precondition, Range, Tenant};
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use prost::Message;

use super::records::{OperationRecord, StoredOperation, decode};
use super::{Draft, Store, StoreError, tenant_key};

const OPERATION: Kind = Kind::new("operation");
const OUTBOX: Kind = Kind::new("outbox");

/// A place to go on from.
pub type Place = Located;

/// A receipt to write.
#[derive(Clone)]
pub struct OutboxEntry {
    /// The tenant that it belongs to.
    pub tenant: TenantName,
    /// The operation.
    pub operation_id: OperationId,
    /// The subject's tag.
    pub subject_tag: Option<String>,
    /// Its members.
    pub members: Vec<u8>,
}

/// One page of the outbox.
pub struct OutboxPage {
    /// The entries.
    pub entries: Vec<OutboxEntry>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct OutboxRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    operation_id: String,
    #[prost(string, optional, tag = "3")]
    subject_tag: Option<String>,
    #[prost(bytes = "vec", tag = "4")]
    members: Vec<u8>,
}

impl Store {
    /// What an operation id was used for.
    pub fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<StoredOperation>, StoreError> {
        let key = operation_key(tenant, operation_id)?;
        let Some(found) = self.data.get(key)? else {
            return Ok(None);
        };
        let record: OperationRecord = decode(&found.value)?;
        Ok(Some(StoredOperation {
            content: Digest::parse(&record.content).ok_or(StoreError::Corrupt)?,
            result: record.result,
        }))
    }

    /// Stores an operation that changes no subject, with its receipt.
    pub fn record(
        &self,
        operation: &StoredOperation,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        self.data
            .apply(&with_operation(Changes::new(), operation, entry)?)?;
        Ok(())
    }

    /// The outbox entry of an operation; none once its receipt is durable.
    pub fn outstanding(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<OutboxEntry>, StoreError> {
        let found = self.data.get(outbox_key(tenant, operation_id))?;
        found.map(|opened| read_outbox(&opened.value)).transpose()
    }

    /// At most `limit` outbox entries of all tenants, in no particular order, after a place.
    pub fn outbox(&self, after: Option<Place>, limit: usize) -> Result<OutboxPage, StoreError> {
        let found = self.scan_process(OUTBOX, after, limit)?;
        let entries = found.iter().map(|entry| read_outbox(&entry.opened.value));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        Ok(OutboxPage {
            next: next_place(found, limit),
            entries,
        })
    }

    /// Forgets an outbox entry whose receipt is durable. Forgetting twice is fine.
    pub fn settle(&self, entry: &OutboxEntry) -> Result<(), StoreError> {
        let target = outbox_key(&entry.tenant, &entry.operation_id);
        self.data.apply(&Changes::new().delete(target))?;
        Ok(())
    }

    pub(super) fn scan_process(
        &self,
        kind: Kind,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<cl_kv::Found>, StoreError> {
        let mut range = Range::of(Tenant::process().key(kind), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        Ok(self.data.scan(&range)?)
    }
}

impl Draft<'_> {
    /// Adds an operation that must be new, and its receipt.
    pub fn record(
        &mut self,
        operation: &StoredOperation,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        self.change(|changes| with_operation(changes, operation, entry))
    }
}

pub(super) fn with_operation(
    changes: Changes,
    operation: &StoredOperation,
    entry: &OutboxEntry,
) -> Result<Changes, StoreError> {
    let key = operation_key(&entry.tenant, &entry.operation_id)?;
    let record = OperationRecord {
        content: operation.content.to_string(),
        result: operation.result.clone(),
    };
    let outbox = OutboxRecord {
        tenant: entry.tenant.as_str().to_owned(),
        operation_id: entry.operation_id.to_string(),
        subject_tag: entry.subject_tag.clone(),
        members: entry.members.clone(),
    };
    Ok(changes
        .require(&key, Precondition::Absent)
        .put(key, record.encode_to_vec())
        .put(
            outbox_key(&entry.tenant, &entry.operation_id),
            outbox.encode_to_vec(),
        ))
}

fn read_outbox(value: &[u8]) -> Result<OutboxEntry, StoreError> {
    let record: OutboxRecord = decode(value)?;
    let read = || {
        Some(OutboxEntry {
            tenant: TenantName::parse(&record.tenant)?,
            operation_id: OperationId::parse(&record.operation_id)?,
            subject_tag: record.subject_tag,
            members: record.members,
        })
    };
    read().ok_or(StoreError::Corrupt)
}

pub(super) fn next_place(found: Vec<cl_kv::Found>, limit: usize) -> Option<Place> {
    let is_full = found.len() == limit;
    let last = found.into_iter().last().map(|entry| entry.key);
    last.filter(|_| is_full)
}

fn operation_key(tenant: &TenantName, operation_id: &OperationId) -> Result<Key, StoreError> {
    Ok(tenant_key(tenant, OPERATION)?.private(operation_id.as_str()))
}

fn outbox_key(tenant: &TenantName, operation_id: &OperationId) -> Key {
    Tenant::process()
        .key(OUTBOX)
        .public(tenant.as_str())
        .private(operation_id.as_str())
}
