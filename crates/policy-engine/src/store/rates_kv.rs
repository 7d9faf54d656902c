//! Counters of rates on ordered keys.

use cl_kv::{Changes, Key, Kind};
use cl_model::digest::Digest;

use super::kept::{Kept, What};
use super::kv::{KvStore, as_read, key};
use super::records;
use super::{Counted, StoreError};
use crate::core::operation::TenantName;
use crate::core::rates::Counter;

const RATE: Kind = Kind::new("rate");

impl KvStore {
    /// What counters have counted.
    pub(super) fn read_counters(
        &self,
        tenant: &TenantName,
        counters: &[Counter],
    ) -> Result<Vec<Counted>, StoreError> {
        let read = counters.iter().map(|counter| {
            let found = self.sealed.get(rate_key(tenant, counter.name)?)?;
            let (count, version) = match found {
                None => (0, None),
                Some(opened) => (records::decode_count(&opened.value)?, Some(opened.version)),
            };
            Ok(Counted {
                counter: *counter,
                count,
                version,
            })
        });
        read.collect()
    }
}

/// Counts one more request, if nobody has counted since.
pub(super) fn count(
    mut changes: Changes,
    tenant: &TenantName,
    counts: &[Counted],
) -> Result<Changes, StoreError> {
    for counted in counts {
        let target = rate_key(tenant, counted.counter.name)?;
        changes = changes
            .require(&target, as_read(counted.version))
            .put(target, counted.count.saturating_add(1).to_be_bytes());
        if counted.version.is_none() {
            let kept = Kept {
                what: What::Rate(tenant.clone(), counted.counter.name),
                until: counted.counter.ends,
            };
            changes = kept.index(changes);
        }
    }
    Ok(changes)
}

pub(super) fn rate_key(tenant: &TenantName, counter: Digest) -> Result<Key, StoreError> {
    Ok(key(tenant, RATE)?.private(counter.as_bytes()))
}
