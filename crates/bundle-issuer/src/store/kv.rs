//! The store on ordered keys and preconditioned batches.
//!
//! ```text
//! tenant  issue      private(decision)                    -> where issuing stands
//! tenant  bundle     private(id)                          -> the bundle without its content
//! tenant  content    private(id)                          -> what goes to the recipient
//! tenant  carries    private(alias or source) private(id) -> id
//! tenant  barred     private(decision, alias or source)   -> until when
//! tenant  operation  private(id)                          -> digest of what it was used for
//! process due        number(time) public(tenant) private(id) -> tenant, id
//! process kept       number(time) public(tenant) number(kind) private(name) -> what ends then
//! process outbox     public(tenant) private(operation id) -> receipt to write
//! process clock                                           -> the latest time that was stored
//! ```
//!
//! A bar is stored before bundles are looked for, in the same batch as the end of those that were
//! found; a bundle is stored only while none of its names is barred. So whichever comes first, no
//! bundle outlives a revocation of one of its names.

use std::sync::Arc;

use cl_kv::{Changes, Engine, Key, Kind, Precondition, Range, Sealed, Tenant, Version};
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, DecisionId};

use super::kept::{self, Kept, What};
use super::records;
use super::{
    Change, Claim, Due, Failed, Issue, NewBundle, OutboxEntry, OutboxPage, Place, Revocation,
    Store, StoreError, StoredBundle, StoredIssue, Target, Use,
};
use crate::core::assembly::Content;
use crate::core::bundle::Bundle;

const ISSUE: Kind = Kind::new("issue");
const BUNDLE: Kind = Kind::new("bundle");
const CONTENT: Kind = Kind::new("content");
const CARRIES: Kind = Kind::new("carries");
const BARRED: Kind = Kind::new("barred");
const OPERATION: Kind = Kind::new("operation");
const DUE: Kind = Kind::new("due");
const OUTBOX: Kind = Kind::new("outbox");
const CLOCK: Kind = Kind::new("clock");

/// The store on a sealed engine: RocksDB, or one in memory for tests.
#[derive(Debug)]
pub struct KvStore {
    sealed: Sealed<Arc<dyn Engine>>,
}

impl KvStore {
    /// A store on `sealed`.
    pub fn new(sealed: Sealed<Arc<dyn Engine>>) -> Self {
        Self { sealed }
    }

    fn apply(&self, changes: &Changes) -> Result<Vec<Version>, StoreError> {
        Ok(self.sealed.apply(changes)?)
    }
}

impl Store for KvStore {
    fn issue(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
    ) -> Result<Option<StoredIssue>, StoreError> {
        let found = self.sealed.get(issue_key(tenant, decision)?)?;
        found
            .map(|opened| {
                Ok(StoredIssue {
                    issue: records::decode_issue(&opened.value)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    fn claim(&self, claim: &Claim<'_>) -> Result<Version, StoreError> {
        let target = issue_key(claim.tenant, claim.decision)?;
        let changes = Changes::new()
            .require(&target, as_read(claim.read))
            .put(target, records::encode_issue(&Issue::Taken(claim.until)));
        let kept = Kept {
            tenant: claim.tenant.clone(),
            what: What::Issue(claim.decision.clone()),
            until: claim.kept_until,
        };
        let versions = self.apply(&kept.index(changes))?;
        versions.first().copied().ok_or(StoreError::Corrupt)
    }

    fn release(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
        claim: Version,
    ) -> Result<(), StoreError> {
        let target = issue_key(tenant, decision)?;
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(claim))
            .delete(target);
        self.apply(&changes)?;
        Ok(())
    }

    fn fail(&self, failed: &Failed) -> Result<(), StoreError> {
        let target = issue_key(&failed.entry.tenant, &failed.decision)?;
        let issue = Issue::Failed(failed.code.clone());
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(failed.claim))
            .put(target, records::encode_issue(&issue));
        self.apply(&announced(changes, &failed.entry, failed.operation)?)?;
        Ok(())
    }

    fn set_aside(&self, new: &NewBundle) -> Result<(), StoreError> {
        let bundle = &new.bundle;
        let tenant = &bundle.tenant;
        let issue = issue_key(tenant, &bundle.decision)?;
        let target = key(tenant, BUNDLE)?.private(bundle.id.as_str());
        let issued = records::encode_issue(&Issue::Issued(bundle.id.clone()));
        let mut changes = Changes::new()
            .require(&issue, Precondition::Unchanged(new.claim))
            .require(&target, Precondition::Absent)
            .put(issue, issued)
            .put(target, records::encode_bundle(bundle))
            .put(content_key(bundle)?, records::encode_content(&new.content))
            .put(due_key(bundle), records::encode_due(bundle));
        for name in Target::naming(bundle) {
            let barred = bar_key(tenant, name.as_str())?;
            changes = changes.require(barred, Precondition::Absent);
        }
        for carried in carried(bundle)? {
            changes = changes.put(carried, bundle.id.as_str());
        }
        self.apply(&announced(changes, &new.entry, new.operation)?)?;
        Ok(())
    }

    fn is_barred(&self, tenant: &TenantName, names: &[Target]) -> Result<bool, StoreError> {
        let barred = names
            .iter()
            .map(|name| Ok(bar_key(tenant, name.as_str())?.into()));
        let barred = barred.collect::<Result<Vec<_>, StoreError>>()?;
        Ok(self.sealed.get_many(&barred)?.iter().any(Option::is_some))
    }

    fn bundle(
        &self,
        tenant: &TenantName,
        id: &BundleId,
    ) -> Result<Option<StoredBundle>, StoreError> {
        let found = self.sealed.get(key(tenant, BUNDLE)?.private(id.as_str()))?;
        found
            .map(|opened| {
                Ok(StoredBundle {
                    bundle: records::decode_bundle(&opened.value)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    fn content(&self, tenant: &TenantName, id: &BundleId) -> Result<Option<Content>, StoreError> {
        let found = self
            .sealed
            .get(key(tenant, CONTENT)?.private(id.as_str()))?;
        found
            .map(|opened| records::decode_content(&opened.value))
            .transpose()
    }

    fn change(&self, change: &Change<'_>) -> Result<(), StoreError> {
        let mut changes = turned(Changes::new(), change.read, change.next)?;
        if change.wipes {
            changes = changes.delete(content_key(change.next)?);
        }
        if let Some(entry) = change.settles {
            changes = changes.delete(outbox_key(&entry.tenant, &entry.operation_id));
        }
        if let Some((entry, operation)) = change.announces {
            changes = announced(changes, entry, operation)?;
        }
        self.apply(&changes)?;
        Ok(())
    }

    fn remove(&self, read: &StoredBundle) -> Result<(), StoreError> {
        let bundle = &read.bundle;
        let target = key(&bundle.tenant, BUNDLE)?.private(bundle.id.as_str());
        let mut changes = Changes::new()
            .require(&target, Precondition::Unchanged(read.version))
            .delete(target)
            .delete(content_key(bundle)?)
            .delete(issue_key(&bundle.tenant, &bundle.decision)?)
            .delete(due_key(bundle));
        for carried in carried(bundle)? {
            changes = changes.delete(carried);
        }
        self.apply(&changes)?;
        Ok(())
    }

    fn find(
        &self,
        tenant: &TenantName,
        target: &Target,
        limit: usize,
    ) -> Result<Vec<BundleId>, StoreError> {
        match target {
            Target::Bundle(id) => Ok(self
                .bundle(tenant, id)?
                .map(|_| id.clone())
                .into_iter()
                .collect()),
            Target::Decision(decision) => Ok(match self.issue(tenant, decision)? {
                Some(StoredIssue {
                    issue: Issue::Issued(id),
                    ..
                }) => vec![id],
                Some(_) | None => Vec::new(),
            }),
            Target::Alias(_) | Target::Source(_) => {
                let prefix = key(tenant, CARRIES)?.private(target.as_str());
                let found = self.sealed.scan(&Range::of(prefix, limit))?;
                let ids = found
                    .iter()
                    .map(|entry| records::decode_id(&entry.opened.value));
                ids.collect()
            }
        }
    }

    fn bar(&self, tenant: &TenantName, target: &Target, until: UnixTime) -> Result<(), StoreError> {
        match target {
            // Its decision has had its bundle, and gets no other one.
            Target::Bundle(_) => Ok(()),
            Target::Decision(_) | Target::Alias(_) | Target::Source(_) => {
                let barred = bar_key(tenant, target.as_str())?;
                let changes = Changes::new().put(barred, records::encode_time(until));
                let kept = Kept {
                    tenant: tenant.clone(),
                    what: What::Bar(target.as_str().to_owned()),
                    until,
                };
                self.apply(&kept.index(changes))?;
                Ok(())
            }
        }
    }

    fn revoke(&self, revocation: &Revocation<'_>) -> Result<(), StoreError> {
        let mut changes = Changes::new();
        for (read, next) in revocation.bundles {
            changes = turned(changes, read, next)?.delete(content_key(next)?);
        }
        self.apply(&announced(changes, revocation.entry, revocation.operation)?)?;
        Ok(())
    }

    fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<Digest>, StoreError> {
        let found = self.sealed.get(operation_key(tenant, operation_id)?)?;
        found
            .map(|opened| records::decode_digest(&opened.value))
            .transpose()
    }

    fn due(&self, now: UnixTime, limit: usize) -> Result<Vec<Due>, StoreError> {
        let range = Range::of(Tenant::process().key(DUE), limit);
        let mut due = Vec::new();
        for entry in self.sealed.scan(&range)? {
            let note = records::decode_due(&entry.opened.value)?;
            if note.at > now {
                break;
            }
            due.push(Due {
                tenant: note.tenant,
                id: note.id,
                place: entry.key,
            });
        }
        Ok(due)
    }

    fn forget(&self, due: &Due) -> Result<(), StoreError> {
        self.apply(&Changes::new().delete(&due.place))?;
        Ok(())
    }

    fn sweep(&self, now: UnixTime, limit: usize) -> Result<usize, StoreError> {
        kept::sweep(&self.sealed, now, limit)
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
        self.apply(&Changes::new().delete(target))?;
        Ok(())
    }

    fn high_water(&self) -> Result<Option<UnixTime>, StoreError> {
        let found = self.sealed.get(Tenant::process().key(CLOCK))?;
        found
            .map(|opened| records::decode_time(&opened.value))
            .transpose()
    }

    fn raise(&self, time: UnixTime) -> Result<(), StoreError> {
        let target = Tenant::process().key(CLOCK);
        let found = self.sealed.get(&target)?;
        let version = found.as_ref().map(|opened| opened.version);
        let stored = found.map(|opened| records::decode_time(&opened.value));
        if stored.transpose()?.is_some_and(|stored| stored >= time) {
            return Ok(());
        }
        let changes = Changes::new()
            .require(&target, as_read(version))
            .put(target, records::encode_time(time));
        match self.apply(&changes) {
            // Another replica looked at its clock; the next look will tell.
            Err(StoreError::Conflict) => Ok(()),
            result => result.map(|_| ()),
        }
    }
}

/// Adds an operation that must be new, and its receipt.
fn announced(changes: Changes, entry: &OutboxEntry, operation: Use) -> Result<Changes, StoreError> {
    let used = operation_key(&entry.tenant, &entry.operation_id)?;
    let outbox = outbox_key(&entry.tenant, &entry.operation_id);
    let kept = Kept {
        tenant: entry.tenant.clone(),
        what: What::Operation(entry.operation_id.clone()),
        until: operation.kept_until,
    };
    let changes = changes
        .require(&used, Precondition::Absent)
        .put(used, operation.content.as_bytes().as_slice())
        .put(outbox, records::encode_outbox(entry));
    Ok(kept.index(changes))
}

/// Adds another state of a bundle, and when that needs a look.
fn turned(changes: Changes, read: &StoredBundle, next: &Bundle) -> Result<Changes, StoreError> {
    let target = key(&next.tenant, BUNDLE)?.private(next.id.as_str());
    Ok(changes
        .require(&target, Precondition::Unchanged(read.version))
        .put(target, records::encode_bundle(next))
        .delete(due_key(&read.bundle))
        .put(due_key(next), records::encode_due(next)))
}

/// The entries by which a bundle is found.
fn carried(bundle: &Bundle) -> Result<Vec<Key>, StoreError> {
    let sources = bundle.sources.iter().map(|source| source.as_str());
    let names = [bundle.alias.as_str()].into_iter().chain(sources);
    names
        .map(|name| {
            let found = key(&bundle.tenant, CARRIES)?.private(name);
            Ok(found.private(bundle.id.as_str()))
        })
        .collect()
}

fn as_read(version: Option<Version>) -> Precondition {
    version.map_or(Precondition::Absent, Precondition::Unchanged)
}

fn key(tenant: &TenantName, kind: Kind) -> Result<Key, StoreError> {
    let tenant = Tenant::parse(tenant.as_str()).map_err(|_| StoreError::Corrupt)?;
    Ok(tenant.key(kind))
}

pub(super) fn issue_key(tenant: &TenantName, decision: &DecisionId) -> Result<Key, StoreError> {
    Ok(key(tenant, ISSUE)?.private(decision.as_str()))
}

pub(super) fn operation_key(tenant: &TenantName, id: &OperationId) -> Result<Key, StoreError> {
    Ok(key(tenant, OPERATION)?.private(id.as_str()))
}

pub(super) fn bar_key(tenant: &TenantName, name: &str) -> Result<Key, StoreError> {
    Ok(key(tenant, BARRED)?.private(name))
}

fn content_key(bundle: &Bundle) -> Result<Key, StoreError> {
    Ok(key(&bundle.tenant, CONTENT)?.private(bundle.id.as_str()))
}

fn due_key(bundle: &Bundle) -> Key {
    let at = u64::try_from(bundle.due.milliseconds()).unwrap_or(0);
    Tenant::process()
        .key(DUE)
        .number(at)
        .public(bundle.tenant.as_str())
        .private(bundle.id.as_str())
}

fn outbox_key(tenant: &TenantName, operation_id: &OperationId) -> Key {
    Tenant::process()
        .key(OUTBOX)
        .public(tenant.as_str())
        .private(operation_id.as_str())
}
