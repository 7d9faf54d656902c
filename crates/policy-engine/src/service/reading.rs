//! What people see: their queue, one item of it, and the decisions about their subjects.

use cl_model::alias::subject_tag;
use cl_model::digest::Digest;
use cl_model::object::{ContextRequest, DecisionState, PolicyDecision, ProtocolObject};
use cl_model::scalar::Reference;
use cl_model::urn::{ApprovalId, DecisionId};

use super::PolicyEngine;
use super::deciding::ActiveSnapshot;
use super::sign_in::Person;
use super::signals::Told;
use crate::core::answer::Approved;
use crate::core::item::{Item, subjects_of};
use crate::core::request::ReadRequest;
use crate::core::state::State;
use crate::error::Error;
use crate::store::people::{Past, Pending};
use crate::store::{Conclusion, RecordedDecision, RequestKey, StoreError, StoredRequest, blocking};

/// The most decisions that one page is looked for in. Strangers decide how many there are.
const MAX_LOOKED_AT: usize = 1000;

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemState {
    Pending,
    Answered,
    Expired,
    Replaced,
    NotNeeded,
}

/// An item in one line.
pub(crate) struct Summary {
    pub(crate) pending: Pending,
    pub(crate) request: ReadRequest,
}

/// An item, read under the active policy.
pub(crate) struct Shown {
    pub(crate) summary: Summary,
    pub(crate) recorded: RecordedDecision,
    pub(crate) state: ItemState,
    pub(crate) item: Item,
    pub(super) active: ActiveSnapshot,
    pub(super) told: Told,
    /// Its request as it is stored, if that is still the one that was shown.
    pub(super) stored: Option<StoredRequest>,
}

impl Shown {
    /// The version and digest of the policy that it was read under.
    pub(crate) fn policy(&self) -> &cl_model::part::PolicySnapshot {
        self.active.read.snapshot.identity()
    }
}

/// One decision about a subject.
pub(crate) struct ShownDecision {
    pub(crate) past: Past,
    pub(crate) subject: Reference,
    pub(crate) request: ReadRequest,
    pub(crate) decision: PolicyDecision,
    pub(crate) digest: Digest,
    pub(crate) decided_at: cl_model::time::UnixTime,
    pub(crate) state: State,
    pub(crate) is_active_grant: bool,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) conclusion: Option<Conclusion>,
}

/// A place in what belongs to several subjects: which of them, and where in it.
#[derive(Clone)]
pub(crate) struct PlaceOfSubject {
    pub(crate) subject: Reference,
    pub(crate) number: u64,
    pub(crate) name: String,
}

impl PolicyEngine {
    /// The subjects that a person may approve for, from where a page goes on.
    async fn subjects(
        &self,
        person: &Person,
        after: Option<&PlaceOfSubject>,
    ) -> Result<Vec<Reference>, Error> {
        let active = self.active_snapshot(&person.tenant).await?;
        let mut subjects = subjects_of(&active.read.snapshot, &person.principal);
        if let Some(after) = after {
            subjects.retain(|subject| subject.as_str() >= after.subject.as_str());
        }
        Ok(subjects)
    }

    /// The subjects that a person may approve for, with the tags of their receipts.
    pub(crate) async fn tagged_subjects(
        &self,
        person: &Person,
    ) -> Result<Vec<(Reference, String)>, Error> {
        let tenant = person.tenant.as_str();
        let tagged = |subject: Reference| {
            let tag = subject_tag(&self.keys.subject_tag, tenant, subject.as_str());
            (subject, tag)
        };
        let subjects = self.subjects(person, None).await?;
        Ok(subjects.into_iter().map(tagged).collect())
    }

    /// At most `limit` items that wait for a person, and where to go on. What has run out since
    /// counts too, so that a page may be empty and not the last.
    pub(crate) async fn queue(
        &self,
        person: &Person,
        after: Option<PlaceOfSubject>,
        limit: usize,
    ) -> Result<(Vec<Summary>, Option<PlaceOfSubject>), Error> {
        let mut shown = Vec::new();
        let mut looked_at = 0;
        let mut last = None;
        for subject in self.subjects(person, after.as_ref()).await? {
            let from = after.clone().filter(|after| after.subject == subject);
            let (tenant, left) = (person.tenant.clone(), limit - looked_at);
            let found = blocking(&self.store, move |store| {
                let from = from.as_ref().map(|from| (from.number, from.name.as_str()));
                store.queue(&tenant, &subject, from, left)
            });
            for pending in found.await? {
                looked_at += 1;
                last = Some(PlaceOfSubject {
                    subject: pending.subject.clone(),
                    number: u64::try_from(pending.created_at.milliseconds()).unwrap_or(0),
                    name: pending.reference.to_string(),
                });
                // What has run out since leaves the queue with this look at its request.
                let current = self.current(&pending.key).await?;
                let waits = current.is_some_and(|stored| {
                    stored.standing.state == State::PendingApproval
                        && stored.decision_id == pending.decision_id
                });
                if waits {
                    let recorded = self.recorded(&pending).await?;
                    shown.push(Summary {
                        request: reread(recorded.request)?,
                        pending,
                    });
                }
            }
            if looked_at == limit {
                return Ok((shown, last));
            }
        }
        Ok((shown, None))
    }

    /// One item, under the active policy, for a person who may answer it.
    pub(crate) async fn item(
        &self,
        person: &Person,
        approval: &ApprovalId,
    ) -> Result<Shown, Error> {
        let active = self.active_snapshot(&person.tenant).await?;
        let pending = self.pending(person, approval).await?;
        let subjects = subjects_of(&active.read.snapshot, &person.principal);
        if !subjects.contains(&pending.subject) {
            return Err(Error::ApprovalNotFound);
        }
        self.shown(pending, active).await
    }

    pub(super) async fn pending(
        &self,
        person: &Person,
        approval: &ApprovalId,
    ) -> Result<Pending, Error> {
        let (tenant, approval) = (person.tenant.clone(), approval.clone());
        let read = blocking(&self.store, move |store| store.pending(&tenant, &approval));
        read.await?.ok_or(Error::ApprovalNotFound)
    }

    /// An item as it stands, read under a policy.
    pub(super) async fn shown(
        &self,
        pending: Pending,
        active: ActiveSnapshot,
    ) -> Result<Shown, Error> {
        let stored = self.current(&pending.key).await?;
        let stored = stored.ok_or(Error::ApprovalNotFound)?;
        // Nobody is shown a decision whose receipt is not durable.
        self.outbox
            .settle(&pending.key.tenant, &stored.operation_id)
            .await?;
        let recorded = self.recorded(&pending).await?;
        let request = reread(recorded.request.clone())?;
        let (tenant, facts) = (&pending.key.tenant, &recorded.facts);
        let told = self.told(tenant, facts, &request.request);
        let told = told.await?;
        let item = Item::read(
            &pending.reference,
            &request,
            &recorded.facts,
            &active.read.snapshot,
            &told.signals,
            self.now(),
        );
        let is_same_request = stored.standing.request_digest == pending.request_digest;
        let is_same_decision = stored.decision_id == pending.decision_id;
        let state = match stored.standing.state {
            _ if !is_same_request => ItemState::Replaced,
            State::PendingApproval if is_same_decision && item.needs_answer => ItemState::Pending,
            State::PendingApproval if is_same_decision => ItemState::NotNeeded,
            State::Expired if is_same_decision => ItemState::Expired,
            State::PendingApproval => ItemState::Replaced,
            State::Decided | State::Issued | State::Failed | State::Expired | State::Revoked => {
                ItemState::Answered
            }
        };
        let waits = matches!(state, ItemState::Pending | ItemState::NotNeeded);
        Ok(Shown {
            summary: Summary { pending, request },
            recorded,
            state,
            item,
            active,
            told,
            stored: Some(stored).filter(|_| waits),
        })
    }

    async fn recorded(&self, pending: &Pending) -> Result<RecordedDecision, Error> {
        let (tenant, id) = (pending.key.tenant.clone(), pending.decision_id.clone());
        let read = blocking(&self.store, move |store| store.decision(&tenant, &id));
        read.await?.ok_or(Error::ApprovalNotFound)
    }

    /// At most `limit` decisions about a person's subjects, and where to go on.
    pub(crate) async fn past(
        &self,
        person: &Person,
        active_grants_only: bool,
        after: Option<PlaceOfSubject>,
        limit: usize,
    ) -> Result<(Vec<ShownDecision>, Option<PlaceOfSubject>), Error> {
        let mut shown = Vec::new();
        let mut looked_at = 0;
        for subject in self.subjects(person, after.as_ref()).await? {
            let mut last = after.clone().filter(|after| after.subject == subject);
            loop {
                let (tenant, of, from) = (person.tenant.clone(), subject.clone(), last.clone());
                let found = blocking(&self.store, move |store| {
                    let from = from.as_ref().map(|from| (from.number, from.name.as_str()));
                    store.history(&tenant, &of, from, limit)
                });
                let found = found.await?;
                let is_last = found.len() < limit;
                for past in found {
                    looked_at += 1;
                    last = Some(PlaceOfSubject {
                        subject: subject.clone(),
                        number: past.place,
                        name: past.decision_id.clone(),
                    });
                    let decision = self.shown_decision(past, &subject).await?;
                    shown.extend(decision.filter(|it| it.is_active_grant || !active_grants_only));
                    if shown.len() == limit || looked_at == MAX_LOOKED_AT {
                        return Ok((shown, last));
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok((shown, None))
    }

    /// A decision about a subject that a person may approve for, with its request; none about anybody
    /// else is found.
    pub(super) async fn own_recorded(
        &self,
        person: &Person,
        decision: &DecisionId,
    ) -> Result<(RecordedDecision, ContextRequest), Error> {
        let tenant = &person.tenant;
        let recorded = self.recorded_decision(tenant, decision.as_str()).await?;
        let recorded = recorded.ok_or(Error::DecisionNotFound)?;
        let request = reread(recorded.request.clone())?.request;
        let active = self.active_snapshot(tenant).await?;
        if !subjects_of(&active.read.snapshot, &person.principal).contains(&request.subject_ref) {
            return Err(Error::DecisionNotFound);
        }
        Ok((recorded, request))
    }

    /// The same, as it is shown.
    pub(crate) async fn own_decision(
        &self,
        person: &Person,
        decision: &DecisionId,
    ) -> Result<ShownDecision, Error> {
        let (recorded, request) = self.own_recorded(person, decision).await?;
        let past = Past {
            key: RequestKey {
                tenant: person.tenant.clone(),
                principal: recorded.facts.principal,
                id: request.id,
            },
            decision_id: decision.as_str().to_owned(),
            place: 0,
        };
        let shown = self.shown_decision(past, &request.subject_ref).await?;
        shown.ok_or(Error::DecisionNotFound)
    }

    /// One decision with where its request stands; none if it was forgotten meanwhile.
    pub(super) async fn shown_decision(
        &self,
        past: Past,
        subject: &Reference,
    ) -> Result<Option<ShownDecision>, Error> {
        let (tenant, id) = (past.key.tenant.clone(), past.decision_id.clone());
        let read = blocking(&self.store, move |store| store.decision(&tenant, &id));
        let Some(recorded) = read.await? else {
            return Ok(None);
        };
        let stored = self.current(&past.key).await?;
        let value = cl_model::document::read_canonical(&recorded.decision);
        let value = value.map_err(|_| StoreError::Corrupt)?;
        let decision = PolicyDecision::read(&value).map_err(|_| StoreError::Corrupt)?;
        let approved = recorded.approval.as_deref().map(Approved::parse);
        let approved = approved.transpose().map_err(|_| StoreError::Corrupt)?;
        // A decision whose request has a newer one has ended with it.
        let stored = stored.filter(|stored| stored.decision_id == past.decision_id);
        let is_newest = stored.is_some();
        let (state, conclusion) = match stored {
            None => (State::Decided, None),
            Some(stored) => (stored.standing.state, stored.conclusion),
        };
        let ends = decision.expires_at.instant();
        let is_live =
            is_newest && matches!(state, State::Decided | State::Issued) && ends > self.now();
        Ok(Some(ShownDecision {
            request: reread(recorded.request)?,
            is_active_grant: is_live && decision.decision.allows(),
            digest: Digest::of_bytes(&recorded.decision),
            decided_at: recorded.now,
            approval: approved.map(|approved| approved.document().id.clone()),
            subject: subject.clone(),
            decision,
            past,
            state,
            conclusion,
        }))
    }
}

impl ShownDecision {
    /// Its outcome.
    pub(crate) const fn outcome(&self) -> DecisionState {
        self.decision.decision
    }
}

/// A request that was checked when it was stored.
pub(super) fn reread(bytes: Vec<u8>) -> Result<ReadRequest, Error> {
    ReadRequest::parse(bytes).map_err(|_| StoreError::Corrupt.into())
}
