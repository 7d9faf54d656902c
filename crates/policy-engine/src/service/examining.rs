//! Looking into recorded decisions: which there are, why they are as they are, and what another
//! snapshot would make of them. Nothing here stores or grants anything.

use std::sync::Arc;

use cl_model::digest::Digest;
use cl_model::document::read_canonical;
use cl_model::object::{DecisionState, PolicyDecision, ProtocolObject};
use cl_model::part::PolicySnapshot;
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;

use super::PolicyEngine;
use super::reading::reread;
use super::sign_in::Person;
use crate::core::answer::Approved;
use crate::core::difference::{Difference, Made};
use crate::core::evaluation::{Decided, Inputs};
use crate::core::explanation::Explanation;
use crate::core::operation::TenantName;
use crate::core::request::{ReadRequest, ReadSnapshot};
use crate::core::signals::Signals;
use crate::error::Error;
use crate::store::people::Past;
use crate::store::{RecordedDecision, StoreError, blocking};

/// Decisions of a tenant within a time.
#[derive(Clone)]
pub(crate) struct DecisionRange {
    pub(crate) tenant: TenantName,
    /// From here on.
    pub(crate) since: Option<UnixTime>,
    /// Before this.
    pub(crate) until: Option<UnixTime>,
}

/// A place among the decisions of a tenant, newest first.
#[derive(Clone)]
pub(crate) struct PlaceOfDecision {
    pub(crate) number: u64,
    pub(crate) name: String,
}

/// One recorded decision, by its id.
pub(crate) struct Recorded {
    pub(crate) decision_id: String,
    pub(crate) decided_at: UnixTime,
    pub(crate) state: DecisionState,
    pub(crate) policy: Digest,
}

/// Why a decision is as it is.
pub(crate) struct Explained {
    pub(crate) decision_id: String,
    pub(crate) decided_at: UnixTime,
    pub(crate) state: DecisionState,
    pub(crate) policy: PolicySnapshot,
    pub(crate) explanation: Explanation,
}

/// What would be different under another snapshot.
pub(crate) struct Simulated {
    pub(crate) evaluated: usize,
    pub(crate) differences: Vec<(String, UnixTime, Difference)>,
    pub(crate) next: Option<PlaceOfDecision>,
}

impl PolicyEngine {
    /// At most `limit` recorded decisions, newest first, and where to go on.
    pub(crate) async fn recorded_decisions(
        &self,
        range: &DecisionRange,
        after: Option<PlaceOfDecision>,
        limit: usize,
    ) -> Result<(Vec<Recorded>, Option<PlaceOfDecision>), Error> {
        let (found, next) = self.decisions_in(range, after, limit).await?;
        let mut recorded = Vec::with_capacity(found.len());
        for (decision_id, read) in found {
            let value = read_canonical(&read.decision).map_err(|_| StoreError::Corrupt)?;
            let decision = PolicyDecision::read(&value).map_err(|_| StoreError::Corrupt)?;
            recorded.push(Recorded {
                decision_id,
                decided_at: read.now,
                state: decision.decision,
                policy: read.snapshot,
            });
        }
        Ok((recorded, next))
    }

    /// Why a decision is as it is, for an operator.
    pub(crate) async fn explain(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
    ) -> Result<Explained, Error> {
        let recorded = self.recorded_decision(tenant, decision.as_str()).await?;
        let recorded = recorded.ok_or(Error::DecisionNotFound)?;
        let examined = self.examine(tenant, recorded).await?;
        Ok(examined.explain())
    }

    /// Why a decision is as it is, for a person who may approve for its subject.
    pub(crate) async fn explain_to(
        &self,
        person: &Person,
        decision: &DecisionId,
    ) -> Result<Explained, Error> {
        let (recorded, _) = self.own_recorded(person, decision).await?;
        let examined = self.examine(&person.tenant, recorded).await?;
        Ok(examined.explain())
    }

    /// Evaluates at most `limit` recorded decisions again by another snapshot.
    pub(crate) async fn simulate(
        &self,
        range: &DecisionRange,
        candidate: Vec<u8>,
        after: Option<PlaceOfDecision>,
        limit: usize,
    ) -> Result<Simulated, Error> {
        let candidate = self.compiled.check(candidate).map_err(Error::snapshot)?;
        let (found, next) = self.decisions_in(range, after, limit).await?;
        let mut simulated = Simulated {
            evaluated: found.len(),
            differences: Vec::new(),
            next,
        };
        for (decision_id, recorded) in found {
            let examined = self.examine(&range.tenant, recorded).await?;
            let (decided_at, difference) = (examined.decided_at(), examined.under(&candidate));
            simulated
                .differences
                .extend(difference.map(|it| (decision_id, decided_at, it)));
        }
        Ok(simulated)
    }

    /// Decisions of a range with their inputs, at most `limit`, and where to go on.
    async fn decisions_in(
        &self,
        range: &DecisionRange,
        after: Option<PlaceOfDecision>,
        limit: usize,
    ) -> Result<(Vec<(String, RecordedDecision)>, Option<PlaceOfDecision>), Error> {
        let tenant = range.tenant.clone();
        let after = after.or_else(|| range.until.map(PlaceOfDecision::before));
        let page: Vec<Past> = blocking(&self.store, move |store| {
            let after = after.as_ref().map(|it| (it.number, it.name.as_str()));
            store.decided(&tenant, after, limit)
        })
        .await?;
        let last = page.last().filter(|_| page.len() == limit);
        let mut next = last.map(|past| PlaceOfDecision {
            number: past.place,
            name: past.decision_id.clone(),
        });
        let mut found = Vec::with_capacity(page.len());
        for past in page {
            let id = past.decision_id;
            // One that was forgotten meanwhile is none any more.
            let Some(recorded) = self.recorded_decision(&range.tenant, &id).await? else {
                continue;
            };
            if range.since.is_some_and(|since| recorded.now < since) {
                next = None;
                break;
            }
            if range.until.is_none_or(|until| recorded.now < until) {
                found.push((id, recorded));
            }
        }
        Ok((found, next))
    }

    pub(super) async fn recorded_decision(
        &self,
        tenant: &TenantName,
        decision_id: &str,
    ) -> Result<Option<RecordedDecision>, StoreError> {
        let (tenant, id) = (tenant.clone(), decision_id.to_owned());
        blocking(&self.store, move |store| store.decision(&tenant, &id)).await
    }

    /// A recorded decision, evaluated again. What is said about one that does not come out the
    /// same would be about another decision.
    pub(super) async fn examine(
        &self,
        tenant: &TenantName,
        recorded: RecordedDecision,
    ) -> Result<Examined, Error> {
        let stored = self.stored_snapshot(tenant, recorded.snapshot).await?;
        let snapshot = stored.ok_or(Error::DecisionInputsGone)?;
        let snapshot = self.compiled.read(snapshot.bytes)?;
        let approved = recorded.approval.as_deref().map(Approved::parse);
        let approved = approved.transpose().map_err(|_| StoreError::Corrupt)?;
        let request = reread(recorded.request.clone())?;
        let inputs = inputs(
            &request,
            &recorded,
            &snapshot,
            approved.as_ref(),
            &recorded.signals,
        );
        let decided = inputs.decide().map_err(|_| StoreError::Corrupt)?;
        if decided.record.text().as_bytes() != recorded.decision {
            return Err(StoreError::Corrupt.into());
        }
        Ok(Examined {
            request,
            recorded,
            snapshot,
            approved,
            decided,
        })
    }
}

/// A recorded decision that was evaluated again and came out the same.
pub(super) struct Examined {
    request: ReadRequest,
    recorded: RecordedDecision,
    snapshot: Arc<ReadSnapshot>,
    approved: Option<Approved>,
    decided: Decided,
}

impl Examined {
    fn explain(&self) -> Explained {
        let inputs = inputs(
            &self.request,
            &self.recorded,
            &self.snapshot,
            self.approved.as_ref(),
            &self.recorded.signals,
        );
        let decision = &self.decided.decision;
        Explained {
            decision_id: decision.id.as_str().to_owned(),
            decided_at: self.recorded.now,
            state: self.decided.state(),
            policy: decision.policy_snapshot.clone(),
            explanation: Explanation::of(&inputs, &self.decided),
        }
    }

    /// When it was made.
    pub(super) fn decided_at(&self) -> UnixTime {
        self.recorded.now
    }

    /// What another snapshot would make of it; none if the same.
    pub(super) fn under(&self, candidate: &ReadSnapshot) -> Option<Difference> {
        let signals = &self.recorded.signals;
        let (own, other) = (&self.snapshot.snapshot, &candidate.snapshot);
        let signals = Signals {
            counted: other.recounted(own, &signals.counted),
            ..signals.clone()
        };
        let inputs = inputs(
            &self.request,
            &self.recorded,
            candidate,
            self.approved.as_ref(),
            &signals,
        );
        let recorded = Made {
            decided: &self.decided,
            snapshot: &self.snapshot.snapshot,
        };
        let tried = inputs.try_out().ok();
        let other = tried.as_ref().map(|decided| Made {
            decided,
            snapshot: &candidate.snapshot,
        });
        Difference::between(recorded, other)
    }
}

fn inputs<'a>(
    request: &'a ReadRequest,
    recorded: &'a RecordedDecision,
    snapshot: &'a ReadSnapshot,
    approved: Option<&'a Approved>,
    signals: &'a Signals,
) -> Inputs<'a> {
    Inputs {
        signals,
        request,
        facts: &recorded.facts,
        snapshot: &snapshot.snapshot,
        approved,
        preflight: recorded.preflight,
        now: recorded.now,
    }
}

impl PlaceOfDecision {
    /// The place behind which everything older than a time is, and perhaps some of that time.
    fn before(time: UnixTime) -> Self {
        Self {
            number: u64::MAX - u64::try_from(time.milliseconds()).unwrap_or(0),
            name: String::new(),
        }
    }
}
