//! Records that are kept for a time and then forgotten: an index ordered by that time.
//!
//! Each record is indexed in the batch that stores it, and forgotten in one batch with its entry in
//! the index. A crash leaves both or neither, and whatever replica is first does it.

use cl_kv::{Changes, Durability, Engine, Key, Kind, Precondition, Range, Sealed, Tenant};
use cl_model::time::UnixTime;

use super::kv::{decision_key, operation_key, request_key, unissued_key};
use super::{RequestKey, StoreError, records};
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
        changes.put(self.key(), records::encode_kept(self))
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
        let kept = records::decode_kept(&entry.opened.value)?;
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
