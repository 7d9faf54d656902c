//! The store on ordered keys and preconditioned batches.
//!
//! ```text
//! tenant  active                                          -> digest
//! tenant  snapshot   private(digest)                      -> snapshot
//! tenant  version    private(version)                     -> digest
//! tenant  order      number(newest smallest)              -> digest
//! tenant  count                                           -> number of snapshots
//! tenant  request    private(principal) private(id)       -> state
//! tenant  decision   private(id)                          -> decision with its inputs and grant
//! tenant  operation  private(id)                          -> digest of what it was used for
//! tenant  rate       private(counter)                     -> number of requests
//! process outbox     public(tenant) private(operation id) -> receipt to write
//! process kept       number(time) public(tenant) number(kind) private(id) -> what ends then
//! process unissued   public(tenant) private(principal) private(id) -> request to issue for
//! ```

use std::sync::Arc;

use cl_kv::{
    Changes, Durability, Engine, Key, Kind, Opened, Precondition, Range, Sealed, Target, Tenant,
    Version,
};
use cl_model::digest::Digest;
use cl_model::policy::SnapshotSignature;
use cl_model::time::UnixTime;

use super::kept::{self, Kept, What};
use super::people::Queued;
use super::people::{approvals_kv, history_kv};
use super::rates_kv;
use super::records::{self, RequestState};
use super::settings::InForce;
use super::settings_kv;
use super::{
    AboutSnapshot, Activation, Active, Conclusion, Counted, NewDecision, OutboxEntry, OutboxPage,
    Place, PutSnapshot, RecordedDecision, RequestKey, SnapshotPage, Store, StoreError,
    StoredRequest, StoredSnapshot, UnissuedPage, Use,
};
use crate::core::operation::{OperationId, TenantName};
use crate::core::rates::Counter;
use crate::core::state::{Standing, State};

const ACTIVE: Kind = Kind::new("active");
const SNAPSHOT: Kind = Kind::new("snapshot");
const VERSION: Kind = Kind::new("version");
const ORDER: Kind = Kind::new("order");
const COUNT: Kind = Kind::new("count");
const REQUEST: Kind = Kind::new("request");
const DECISION: Kind = Kind::new("decision");
const OPERATION: Kind = Kind::new("operation");
const OUTBOX: Kind = Kind::new("outbox");
const UNISSUED: Kind = Kind::new("unissued");

/// The store on a sealed engine: RocksDB, or one in memory for tests.
#[derive(Debug)]
pub struct KvStore {
    pub(super) sealed: Sealed<Arc<dyn Engine>>,
}

impl KvStore {
    /// A store on `sealed`.
    pub fn new(sealed: Sealed<Arc<dyn Engine>>) -> Self {
        Self { sealed }
    }

    fn digest_at(&self, key: Key) -> Result<Option<Digest>, StoreError> {
        let found = self.sealed.get(key)?;
        found
            .map(|opened| records::decode_digest(&opened.value))
            .transpose()
    }

    /// How many snapshots a tenant has, and the precondition that this stays so.
    fn count(&self, tenant: &TenantName) -> Result<(u64, Precondition), StoreError> {
        match self.sealed.get(key(tenant, COUNT)?)? {
            None => Ok((0, Precondition::Absent)),
            Some(opened) => Ok((
                records::decode_count(&opened.value)?,
                Precondition::Unchanged(opened.version),
            )),
        }
    }

    /// Adds an operation that must be new, and its receipt.
    pub(super) fn with_operation(
        changes: Changes,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<Changes, StoreError> {
        let used = operation_key(&entry.tenant, &entry.operation_id)?;
        let outbox = outbox_key(&entry.tenant, &entry.operation_id);
        let kept = Kept {
            what: What::Operation(entry.tenant.clone(), entry.operation_id.clone()),
            until: operation.kept_until,
        };
        let changes = changes
            .require(&used, Precondition::Absent)
            .put(used, operation.content.as_bytes().as_slice())
            .put(outbox, records::encode_outbox(entry));
        Ok(kept.index(changes))
    }

    /// Another state of a request that needs no bundle, and no approval, any more.
    pub(super) fn turn_changes(
        request: &RequestKey,
        read: &StoredRequest,
        state: State,
        conclusion: Option<&Conclusion>,
    ) -> Result<Changes, StoreError> {
        let standing = Standing {
            state,
            ..read.standing
        };
        let next = RequestState {
            standing: &standing,
            decision_id: &read.decision_id,
            operation_id: &read.operation_id,
            issue: read.issue.as_ref(),
            conclusion,
            queued: None,
        };
        let target = request_key(request)?;
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(read.version))
            .put(target, records::encode_request(&next))
            .delete(unissued_key(request));
        approvals_kv::unqueued(changes, request, read.queued.as_ref())
    }

    /// A decision with its request, grant, operation and outbox entry.
    pub(super) fn decision_changes(new: &NewDecision) -> Result<Changes, StoreError> {
        let tenant = &new.key.tenant;
        let request = request_key(&new.key)?;
        let decision = decision_key(tenant, &new.decision_id)?;
        let queued = new.pending.as_ref().map(Queued::of);
        let state = RequestState {
            standing: &new.standing,
            decision_id: &new.decision_id,
            operation_id: &new.entry.operation_id,
            issue: new.issue.as_ref(),
            conclusion: None,
            queued: queued.as_ref(),
        };
        let replaced = new.replaces.as_ref();
        let mut changes = Changes::new()
            .require(key(tenant, ACTIVE)?, Precondition::Unchanged(new.active))
            .require(&request, as_read(replaced.map(|read| read.version)))
            .require(&decision, Precondition::Absent)
            .put(request, records::encode_request(&state))
            .put(decision, records::encode_decision(&new.recorded));
        if new.issue.is_some() {
            changes = changes.put(unissued_key(&new.key), records::encode_key(&new.key));
        }
        let void = replaced.and_then(|read| read.queued.as_ref());
        let changes = approvals_kv::unqueued(changes, &new.key, void)?;
        let kept = Kept {
            what: What::Decision(new.key.clone(), new.decision_id.clone()),
            until: new.kept_until,
        };
        let changes = approvals_kv::asked(kept.index(changes), new)?;
        let changes = history_kv::decided(changes, new)?;
        let changes = rates_kv::count(changes, tenant, &new.heard.counts)?;
        let changes = changes.require(
            settings_kv::anomaly_key(tenant, &new.key.principal)?,
            as_read(new.heard.anomaly),
        );
        let delegation = settings_kv::delegation_key(tenant, &new.subject, &new.key.principal)?;
        let changes = changes.require(delegation, as_read(new.heard.delegation));
        Self::with_operation(changes, new.operation, &new.entry)
    }

    pub(super) fn apply(&self, changes: &Changes) -> Result<(), StoreError> {
        self.sealed.apply(changes)?;
        Ok(())
    }
}

impl Store for KvStore {
    fn active(&self, tenant: &TenantName) -> Result<Option<Active>, StoreError> {
        let found = self.sealed.get(key(tenant, ACTIVE)?)?;
        found
            .map(|opened| {
                Ok(Active {
                    digest: records::decode_digest(&opened.value)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    fn snapshot(
        &self,
        tenant: &TenantName,
        digest: Digest,
    ) -> Result<Option<StoredSnapshot>, StoreError> {
        let found = self.sealed.get(snapshot_key(tenant, digest)?)?;
        found.map(|opened| read_snapshot(&opened)).transpose()
    }

    fn snapshot_of_version(
        &self,
        tenant: &TenantName,
        version: &str,
    ) -> Result<Option<Digest>, StoreError> {
        self.digest_at(key(tenant, VERSION)?.private(version))
    }

    fn snapshots(
        &self,
        tenant: &TenantName,
        after: Option<u64>,
        limit: usize,
    ) -> Result<SnapshotPage, StoreError> {
        let order = key(tenant, ORDER)?;
        let mut range = Range::of(order.clone(), limit.saturating_add(1));
        if let Some(place) = after {
            range = range.after(order.number(place));
        }
        let mut found = self.sealed.scan(&range)?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let mut targets: Vec<Target> = Vec::with_capacity(found.len());
        for entry in &found {
            let digest = records::decode_digest(&entry.opened.value)?;
            targets.push(snapshot_key(tenant, digest)?.into());
        }
        let mut entries = Vec::with_capacity(found.len());
        for opened in self.sealed.get_many(&targets)? {
            let opened = opened.ok_or(StoreError::Corrupt)?;
            entries.push(read_snapshot(&opened)?.about);
        }
        Ok(SnapshotPage {
            entries,
            has_more,
            total: self.count(tenant)?.0,
        })
    }

    fn put_snapshot(&self, put: &PutSnapshot) -> Result<(), StoreError> {
        let tenant = &put.entry.tenant;
        let (count, unchanged) = self.count(tenant)?;
        let place = u64::MAX - count;
        let about = AboutSnapshot {
            digest: put.digest,
            name: put.name.clone(),
            place,
            stored_at: put.now,
            stored_by: put.entry.operation_id.clone(),
            activated: None,
            expires_at: put.expires_at,
            signature: put.signature.clone(),
        };
        let snapshot = snapshot_key(tenant, put.digest)?;
        let version = key(tenant, VERSION)?.private(&put.name);
        let count_key = key(tenant, COUNT)?;
        let digest = put.digest.as_bytes().as_slice();
        let changes = Changes::new()
            .require(&count_key, unchanged)
            .require(&snapshot, Precondition::Absent)
            .require(&version, Precondition::Absent)
            .put(snapshot, records::encode_snapshot(&put.bytes, &about))
            .put(version, digest)
            .put(key(tenant, ORDER)?.number(place), digest)
            .put(count_key, (count + 1).to_be_bytes());
        self.apply(&Self::with_operation(changes, put.operation, &put.entry)?)
    }

    fn sign_snapshot(
        &self,
        read: &StoredSnapshot,
        signature: &SnapshotSignature,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let mut about = read.about.clone();
        about.stored_by = entry.operation_id.clone();
        about.signature = Some(signature.clone());
        let snapshot = snapshot_key(&entry.tenant, about.digest)?;
        let changes = Changes::new()
            .require(&snapshot, Precondition::Unchanged(read.version))
            .put(snapshot, records::encode_snapshot(&read.bytes, &about));
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }

    fn activate(&self, activation: &Activation) -> Result<(), StoreError> {
        let entry = &activation.entry;
        let read = &activation.snapshot;
        let mut about = read.about.clone();
        about.activated = Some((activation.now, entry.operation_id.clone()));
        let active = key(&entry.tenant, ACTIVE)?;
        let snapshot = snapshot_key(&entry.tenant, about.digest)?;
        let current = activation.current.map(|active| active.version);
        let changes = Changes::new()
            .require(&active, as_read(current))
            .require(&snapshot, Precondition::Unchanged(read.version))
            .put(active, about.digest.as_bytes().as_slice())
            .put(snapshot, records::encode_snapshot(&read.bytes, &about));
        let times = InForce {
            since: activation.now,
            until: about.expires_at,
        };
        let changes = settings_kv::in_force(changes, &entry.tenant, times);
        self.apply(&Self::with_operation(changes, activation.operation, entry)?)
    }

    fn request(&self, request: &RequestKey) -> Result<Option<StoredRequest>, StoreError> {
        let found = self.sealed.get(request_key(request)?)?;
        found
            .map(|opened| records::decode_request(&opened.value, opened.version))
            .transpose()
    }

    fn decision(
        &self,
        tenant: &TenantName,
        decision_id: &str,
    ) -> Result<Option<RecordedDecision>, StoreError> {
        let found = self.sealed.get(decision_key(tenant, decision_id)?)?;
        found
            .map(|opened| records::decode_decision(&opened.value))
            .transpose()
    }

    fn counted(
        &self,
        tenant: &TenantName,
        counters: &[Counter],
    ) -> Result<Vec<Counted>, StoreError> {
        self.read_counters(tenant, counters)
    }

    fn record(&self, new: &NewDecision) -> Result<(), StoreError> {
        self.apply(&Self::decision_changes(new)?)
    }

    fn expire(&self, request: &RequestKey, read: &StoredRequest) -> Result<(), StoreError> {
        self.apply(&Self::turn_changes(request, read, State::Expired, None)?)
    }

    fn conclude(
        &self,
        request: &RequestKey,
        read: &StoredRequest,
        conclusion: &Conclusion,
    ) -> Result<(), StoreError> {
        let state = match conclusion {
            Conclusion::Issued(_) => State::Issued,
            Conclusion::Failed(_) => State::Failed,
        };
        let changes = Self::turn_changes(request, read, state, Some(conclusion))?;
        self.apply(&changes)
    }

    fn unissued(&self, after: Option<Place>, limit: usize) -> Result<UnissuedPage, StoreError> {
        let mut range = Range::of(Tenant::process().key(UNISSUED), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.sealed.scan(&range)?;
        let mut keys = Vec::with_capacity(found.len());
        for entry in &found {
            keys.push(records::decode_key(&entry.opened.value)?);
        }
        let last = found.into_iter().last().map(|entry| entry.key);
        Ok(UnissuedPage {
            next: last.filter(|_| keys.len() == limit),
            keys,
        })
    }

    fn forget_issue(&self, request: &RequestKey) -> Result<(), StoreError> {
        self.apply(&Changes::new().delete(unissued_key(request)))
    }

    fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<Digest>, StoreError> {
        self.digest_at(operation_key(tenant, operation_id)?)
    }

    fn begin(&self, operation: Use, entry: &OutboxEntry) -> Result<(), StoreError> {
        self.apply(&Self::with_operation(Changes::new(), operation, entry)?)
    }

    fn sweep(&self, now: UnixTime, limit: usize) -> Result<usize, StoreError> {
        kept::sweep(&self.sealed, now, limit)
    }

    fn swept_until(&self) -> Result<Option<UnixTime>, StoreError> {
        kept::swept_until(&self.sealed)
    }

    fn outstanding(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<OutboxEntry>, StoreError> {
        let found = self.sealed.get(outbox_key(tenant, operation_id))?;
        found
            .map(|opened| records::decode_outbox(&opened.value))
            .transpose()
    }

    fn outbox(&self, after: Option<Place>, limit: usize) -> Result<OutboxPage, StoreError> {
        let mut range = Range::of(Tenant::process().key(OUTBOX), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.sealed.scan(&range)?;
        let mut entries = Vec::with_capacity(found.len());
        for entry in &found {
            entries.push(records::decode_outbox(&entry.opened.value)?);
        }
        let last = found.into_iter().last().map(|entry| entry.key);
        Ok(OutboxPage {
            next: last.filter(|_| entries.len() == limit),
            entries,
        })
    }

    fn settle(&self, entry: &OutboxEntry) -> Result<(), StoreError> {
        let target = outbox_key(&entry.tenant, &entry.operation_id);
        // An entry that comes back when the machine stops is delivered again, which is harmless.
        let forgotten = Changes::new().delete(target);
        self.apply(&forgotten.durability(Durability::Relaxed))
    }
}

pub(super) fn as_read(version: Option<Version>) -> Precondition {
    version.map_or(Precondition::Absent, Precondition::Unchanged)
}

fn read_snapshot(opened: &Opened) -> Result<StoredSnapshot, StoreError> {
    records::decode_snapshot(&opened.value, opened.version)
}

pub(super) fn key(tenant: &TenantName, kind: Kind) -> Result<Key, StoreError> {
    let tenant = Tenant::parse(tenant.as_str()).map_err(|_| StoreError::Corrupt)?;
    Ok(tenant.key(kind))
}

fn snapshot_key(tenant: &TenantName, digest: Digest) -> Result<Key, StoreError> {
    Ok(key(tenant, SNAPSHOT)?.private(digest.as_bytes()))
}

pub(super) fn request_key(request: &RequestKey) -> Result<Key, StoreError> {
    Ok(key(&request.tenant, REQUEST)?
        .private(request.principal.as_str())
        .private(request.id.as_str()))
}

pub(super) fn unissued_key(request: &RequestKey) -> Key {
    Tenant::process()
        .key(UNISSUED)
        .public(request.tenant.as_str())
        .private(request.principal.as_str())
        .private(request.id.as_str())
}

pub(super) fn operation_key(tenant: &TenantName, id: &OperationId) -> Result<Key, StoreError> {
    Ok(key(tenant, OPERATION)?.private(id.as_str()))
}

pub(super) fn decision_key(tenant: &TenantName, id: &str) -> Result<Key, StoreError> {
    Ok(key(tenant, DECISION)?.private(id))
}

fn outbox_key(tenant: &TenantName, operation_id: &OperationId) -> Key {
    Tenant::process()
        .key(OUTBOX)
        .public(tenant.as_str())
        .private(operation_id.as_str())
}
