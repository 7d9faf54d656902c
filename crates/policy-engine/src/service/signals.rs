//! What a decision is told beside request and snapshot: how often its requester has asked, and what an
//! operator has set for it.

use cl_model::object::ContextRequest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use tokio::sync::MutexGuard;

use super::deciding::ActiveSnapshot;
use super::{PolicyEngine, Submission};
use crate::core::facts::Facts;
use crate::core::operation::TenantName;
use crate::core::rates::{Counter, counters};
use crate::core::signals::Signals;
use crate::error::Error;
use crate::store::people::Stored;
use crate::store::settings::{Anomaly, Delegation, Shadow};
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
        settings: Settings,
        swept_until: Option<UnixTime>,
    ) -> Result<Told, Error> {
        let (tenant, facts) = (submission.tenant.clone(), &submission.facts);
        let request = &submission.request.request;
        let snapshot = &active.read.snapshot;
        if snapshot.rates().is_empty() {
            return Ok(settings.told(request, Vec::new()));
        }
        // A window that was forgotten already, by a clock that has stepped back since, is over.
        let now = self.forgotten(swept_until);
        let counters = counters(snapshot, &facts.principal, request, now);
        let read = blocking(&self.store, move |store| counted(store, &tenant, &counters));
        Ok(settings.told(request, read.await?))
    }

    /// What a decision is told about a requester and its request, where nothing is counted.
    pub(super) async fn told(
        &self,
        tenant: &TenantName,
        facts: &Facts,
        request: &ContextRequest,
    ) -> Result<Told, Error> {
        let (tenant, requester) = (tenant.clone(), facts.principal.clone());
        let subject = request.subject_ref.clone();
        let read = blocking(&self.store, move |store| {
            Settings::read(store, &tenant, &requester, &subject)
        });
        Ok(read.await?.told(request, Vec::new()))
    }
}

/// What operators have set that decisions are told of.
pub(super) struct Settings {
    anomaly: Option<Stored<Anomaly>>,
    delegation: Option<Stored<Delegation>>,
    shadow: Option<Stored<Shadow>>,
}

impl Settings {
    pub(super) fn read(
        store: &dyn Store,
        tenant: &TenantName,
        requester: &Reference,
        subject: &Reference,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            anomaly: store.anomaly(tenant, requester)?,
            delegation: store.delegation(tenant, subject, requester)?,
            shadow: store.shadow(tenant)?,
        })
    }

    fn told(self, request: &ContextRequest, counts: Vec<Counted>) -> Told {
        let version = self.delegation.as_ref().map(|read| read.version);
        let delegation = self.delegation.map(|read| read.value);
        // For another purpose it is none.
        let delegation = delegation.filter(|it| it.purposes.contains(&request.purpose_code));
        Told {
            signals: Signals {
                counted: counts.iter().map(|it| it.count).collect(),
                anomaly: self.anomaly.as_ref().map(|read| read.value.state.clone()),
                delegated: delegation.map(|delegation| delegation.delegated),
            },
            heard: Heard {
                counts,
                anomaly: self.anomaly.map(|read| read.version),
                delegation: version,
            },
            shadow: self.shadow.map(|read| read.value),
        }
    }
}

/// What counters have counted; a conflict if one of them may have been forgotten.
fn counted(
    store: &dyn Store,
    tenant: &TenantName,
    counters: &[Counter],
) -> Result<Vec<Counted>, StoreError> {
    let counts = store.counted(tenant, counters)?;
    // Looked at once they were read: what was forgotten since is covered too.
    let swept = store.swept_until()?;
    let is_forgotten = |counter: &Counter| swept.is_some_and(|swept| counter.ends <= swept);
    if counters.iter().any(is_forgotten) {
        return Err(StoreError::Conflict);
    }
    Ok(counts)
}
