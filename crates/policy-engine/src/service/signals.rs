//! What a decision is told beside request and snapshot: how often its requester has asked, and what an
//! operator has set for it.

use cl_model::object::ContextRequest;
use cl_model::time::UnixTime;
use tokio::sync::MutexGuard;

use super::deciding::ActiveSnapshot;
use super::{PolicyEngine, Submission};
use crate::core::facts::Facts;
use crate::core::operation::TenantName;
use crate::core::rates::{Counter, counters};
use crate::core::signals::Signals;
use crate::error::Error;
use crate::store::settings::Shadow;
use crate::store::{Counted, Heard, Store, StoreError, blocking};

/// The signals of a decision, and what they were read from.
pub(crate) struct Told {
    pub(super) signals: Signals,
    pub(super) heard: Heard,
    /// What is evaluated beside the active snapshot.
    pub(super) shadow: Option<Shadow>,
}

impl PolicyEngine {
    /// Waits until no other call of the requester counts in this process, where a snapshot has rates.
    pub(super) async fn turn(
        &self,
        submission: &Submission,
        active: &ActiveSnapshot,
    ) -> Option<MutexGuard<'_, ()>> {
        if active.read.snapshot.rates().is_empty() {
            return None;
        }
        let requester = &submission.facts.principal;
        self.turns.of(&submission.tenant, requester).await
    }

    /// What the decision about a new request is told.
    pub(super) async fn told_anew(
        &self,
        submission: &Submission,
        active: &ActiveSnapshot,
        swept_until: Option<UnixTime>,
    ) -> Result<Told, Error> {
        let (tenant, facts) = (&submission.tenant, &submission.facts);
        let request = &submission.request.request;
        let snapshot = &active.read.snapshot;
        let counters = if snapshot.rates().is_empty() {
            Vec::new()
        } else {
            // A window that was forgotten already, by a clock that has stepped back since, is over.
            let now = self.forgotten(swept_until);
            counters(snapshot, &facts.principal, request, now)
        };
        self.told(tenant, facts, request, counters).await
    }

    /// What a decision is told about a requester and its request, and what these counters have counted.
    pub(super) async fn told(
        &self,
        tenant: &TenantName,
        facts: &Facts,
        request: &ContextRequest,
        counters: Vec<Counter>,
    ) -> Result<Told, Error> {
        let (tenant, requester) = (tenant.clone(), facts.principal.clone());
        let subject = request.subject_ref.clone();
        let read = blocking(&self.store, move |store| {
            let anomaly = store.anomaly(&tenant, &requester)?;
            let counts = counted(store, &tenant, &counters)?;
            let delegation = store.delegation(&tenant, &subject, &requester)?;
            Ok((anomaly, counts, delegation, store.shadow(&tenant)?))
        });
        let (anomaly, counts, delegation, shadow) = read.await?;
        let version = delegation.as_ref().map(|read| read.version);
        let delegation = delegation.map(|read| read.value);
        // For another purpose it is none.
        let delegation = delegation.filter(|it| it.purposes.contains(&request.purpose_code));
        Ok(Told {
            heard: Heard {
                counts: counts.clone(),
                anomaly: anomaly.as_ref().map(|read| read.version),
                delegation: version,
            },
            signals: Signals {
                counted: counts.iter().map(|it| it.count).collect(),
                anomaly: anomaly.map(|read| read.value.state),
                delegated: delegation.map(|delegation| delegation.delegated),
            },
            shadow: shadow.map(|read| read.value),
        })
    }
}

/// What counters have counted; a conflict if one of them may have been forgotten.
fn counted(
    store: &dyn Store,
    tenant: &TenantName,
    counters: &[Counter],
) -> Result<Vec<Counted>, StoreError> {
    if counters.is_empty() {
        return Ok(Vec::new());
    }
    let counts = store.counted(tenant, counters)?;
    // Looked at once they were read: what was forgotten since is covered too.
    let swept = store.swept_until()?;
    let is_forgotten = |counter: &Counter| swept.is_some_and(|swept| counter.ends <= swept);
    if counters.iter().any(is_forgotten) {
        return Err(StoreError::Conflict);
    }
    Ok(counts)
}
