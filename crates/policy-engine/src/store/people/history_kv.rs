//! What was decided about people, on ordered keys and preconditioned batches.
//!
//! ```text
//! tenant  history    private(subject) number(newest smallest) public(decision id) -> request
//! process unrevoked  public(tenant) public(decision id)       -> bundle to revoke
//! ```

use cl_kv::{Changes, Key, Kind, Range, Tenant};
use cl_model::scalar::Reference;

use super::records;
use super::{History, Past, Revocation, Unrevoked};
use crate::core::operation::TenantName;
use crate::core::state::State;
use crate::store::kept::{Kept, What};
use crate::store::kv::{KvStore, key};
use crate::store::kv_reading::page;
use crate::store::{NewDecision, Place, StoreError};

const HISTORY: Kind = Kind::new("history");
const DECIDED: Kind = Kind::new("decided");
const UNREVOKED: Kind = Kind::new("unrevoked");

impl History for KvStore {
    fn history(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError> {
        let of = key(tenant, HISTORY)?.private(subject.as_str());
        self.list(&page(of, after, limit), records::decode_past)
    }

    fn decided(
        &self,
        tenant: &TenantName,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError> {
        self.list(
            &page(key(tenant, DECIDED)?, after, limit),
            records::decode_past,
        )
    }

    fn revoke(&self, revocation: &Revocation) -> Result<(), StoreError> {
        let entry = &revocation.entry;
        let read = &revocation.read;
        let unrevoked = revocation.unrevoked();
        let changes = Self::turn_changes(
            &revocation.key,
            read,
            State::Revoked,
            read.conclusion.as_ref(),
        )?;
        let changes = changes.put(
            unrevoked_key(&unrevoked),
            records::encode_unrevoked(&unrevoked),
        );
        self.apply(&Self::with_operation(changes, revocation.operation, entry)?)
    }

    fn unrevoked(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<(Vec<Unrevoked>, Option<Place>), StoreError> {
        let mut range = Range::of(Tenant::process().key(UNREVOKED), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.sealed.scan(&range)?;
        let mut all = Vec::with_capacity(found.len());
        for entry in &found {
            all.push(records::decode_unrevoked(&entry.opened.value)?);
        }
        let last = found.into_iter().last().map(|entry| entry.key);
        let next = last.filter(|_| all.len() == limit);
        Ok((all, next))
    }

    fn forget_revocation(&self, unrevoked: &Unrevoked) -> Result<(), StoreError> {
        self.apply(&Changes::new().delete(unrevoked_key(unrevoked)))
    }
}

pub(in crate::store) fn decided_key(tenant: &TenantName, past: &Past) -> Result<Key, StoreError> {
    Ok(key(tenant, DECIDED)?
        .number(past.place)
        .public(&past.decision_id))
}

pub(in crate::store) fn past_key(
    tenant: &TenantName,
    subject: &Reference,
    past: &Past,
) -> Result<Key, StoreError> {
    Ok(key(tenant, HISTORY)?
        .private(subject.as_str())
        .number(past.place)
        .public(&past.decision_id))
}

fn unrevoked_key(unrevoked: &Unrevoked) -> Key {
    Tenant::process()
        .key(UNREVOKED)
        .public(unrevoked.tenant.as_str())
        .public(&unrevoked.decision_id)
}

/// One more decision about a subject.
pub(in crate::store) fn decided(
    changes: Changes,
    new: &NewDecision,
) -> Result<Changes, StoreError> {
    let tenant = &new.key.tenant;
    let past = Past {
        key: new.key.clone(),
        decision_id: new.decision_id.clone(),
        place: u64::MAX - u64::try_from(new.recorded.now.milliseconds()).unwrap_or(0),
    };
    let kept = Kept {
        what: What::Past(tenant.clone(), new.subject.clone(), past.clone()),
        until: new.kept_until,
    };
    let bytes = records::encode_past(&past);
    let changes = changes
        .put(past_key(tenant, &new.subject, &past)?, bytes.clone())
        .put(decided_key(tenant, &past)?, bytes);
    Ok(kept.index(changes))
}
