//! What waits for people and what they answer, on ordered keys and preconditioned batches.
//!
//! ```text
//! process answer     private(id)                              -> answer that was opened
//! tenant  answers    private(principal)                       -> the person's open answers
//! tenant  pending    public(id)                               -> what waits, or waited
//! tenant  queue      private(subject) number(time) public(id) -> what waits
//! ```

use cl_kv::{Changes, Key, Kind, Precondition, Tenant};
use cl_model::scalar::Reference;
use cl_model::urn::ApprovalId;

use super::credentials_kv::counted;
use super::records;
use super::{Answer, Approvals, OpenedAnswer, Pending, Queued, RefusedAnswer, Spent, Stored};
use crate::core::challenge::CeremonyId;
use crate::core::open_answers::OpenAnswers;
use crate::core::operation::TenantName;
use crate::store::kept::{Kept, What};
use crate::store::kv::{KvStore, key};
use crate::store::kv_reading::page;
use crate::store::{NewDecision, RequestKey, StoreError};

const ANSWER: Kind = Kind::new("answer");
const ANSWERS: Kind = Kind::new("answers");
const PENDING: Kind = Kind::new("pending");
const QUEUE: Kind = Kind::new("queue");

/// How long an opened answer is remembered after its end, so that a late one learns why it is late,
/// and a repeat what it did.
const ANSWER_KEPT_SECONDS: u64 = 3600;

impl Approvals for KvStore {
    fn pending(
        &self,
        tenant: &TenantName,
        approval: &ApprovalId,
    ) -> Result<Option<Pending>, StoreError> {
        let found = self.read(pending_key(tenant, approval)?, records::decode_pending)?;
        Ok(found.map(|stored| stored.value))
    }

    fn queue(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Pending>, StoreError> {
        let of = key(tenant, QUEUE)?.private(subject.as_str());
        self.list(&page(of, after, limit), records::decode_pending)
    }

    fn open_answers(
        &self,
        tenant: &TenantName,
        principal: &Reference,
    ) -> Result<Option<Stored<OpenAnswers>>, StoreError> {
        self.read(
            open_answers_key(tenant, principal)?,
            records::decode_open_answers,
        )
    }

    fn open_answer(
        &self,
        id: &CeremonyId,
        opened: &OpenedAnswer,
        read: Option<Stored<OpenAnswers>>,
    ) -> Result<(), StoreError> {
        let target = answer_key(id);
        let kept = Kept {
            what: What::Answer(*id),
            until: opened.expires_at.plus_seconds(ANSWER_KEPT_SECONDS),
        };
        let mut changes = Changes::new()
            .require(&target, Precondition::Absent)
            .put(target, records::encode_opened_answer(opened));
        let of = open_answers_key(&opened.tenant, &opened.principal)?;
        let (changed, replaced) = turned(changes, of, read, |answers| answers.open(*id));
        changes = changed;
        if let Some(replaced) = replaced {
            changes = changes.delete(answer_key(&replaced));
        }
        self.apply(&kept.index(changes))
    }

    fn opened_answer(&self, id: &CeremonyId) -> Result<Option<Stored<OpenedAnswer>>, StoreError> {
        self.read(answer_key(id), records::decode_opened_answer)
    }

    fn refuse_answer(&self, refusal: &RefusedAnswer) -> Result<(), StoreError> {
        let (id, opened) = &refusal.opened;
        let changes = used_up(Changes::new(), id, opened, Spent::Unnamed);
        let of = open_answers_key(&opened.value.tenant, &opened.value.principal)?;
        let read = refusal.read.clone();
        let (changes, ()) = turned(changes, of, read, |answers| answers.refuse(refusal.now));
        self.apply(&Self::with_operation(
            changes,
            refusal.operation,
            &refusal.entry,
        )?)
    }

    fn answer(&self, answer: &Answer) -> Result<(), StoreError> {
        let (id, opened) = &answer.opened;
        let by = Spent::By(answer.entry.operation_id.clone());
        let changes = Self::decision_changes(&answer.decision)?;
        let changes = used_up(changes, id, opened, by);
        let changes = counted(changes, &answer.credential, answer.counter)?;
        self.apply(&Self::with_operation(
            changes,
            answer.operation,
            &answer.entry,
        )?)
    }
}

/// Takes what waits out of its queue.
pub(in crate::store) fn unqueued(
    changes: Changes,
    request: &RequestKey,
    queued: Option<&Queued>,
) -> Result<Changes, StoreError> {
    match queued {
        None => Ok(changes),
        Some(queued) => Ok(changes.delete(queue_key(&request.tenant, queued)?)),
    }
}

impl Queued {
    /// The place of what waits.
    pub fn of(pending: &Pending) -> Self {
        Self {
            approval: pending.reference.clone(),
            subject: pending.subject.clone(),
            created_at: pending.created_at,
        }
    }
}

fn used_up(changes: Changes, id: &CeremonyId, read: &Stored<OpenedAnswer>, by: Spent) -> Changes {
    let target = answer_key(id);
    let opened = OpenedAnswer {
        spent_by: Some(by),
        ..read.value.clone()
    };
    changes
        .require(&target, Precondition::Unchanged(read.version))
        .put(target, records::encode_opened_answer(&opened))
}

/// Changes what is known of a person's answers.
fn turned<T>(
    changes: Changes,
    of: Key,
    read: Option<Stored<OpenAnswers>>,
    turn: impl FnOnce(&mut OpenAnswers) -> T,
) -> (Changes, T) {
    let (mut answers, precondition) = match read {
        None => (OpenAnswers::default(), Precondition::Absent),
        Some(read) => (read.value, Precondition::Unchanged(read.version)),
    };
    let result = turn(&mut answers);
    let changes = changes
        .require(&of, precondition)
        .put(of, records::encode_open_answers(&answers));
    (changes, result)
}

pub(in crate::store) fn answer_key(id: &CeremonyId) -> Key {
    Tenant::process().key(ANSWER).private(id)
}

fn open_answers_key(tenant: &TenantName, principal: &Reference) -> Result<Key, StoreError> {
    Ok(key(tenant, ANSWERS)?.private(principal.as_str()))
}

pub(in crate::store) fn pending_key(
    tenant: &TenantName,
    id: &ApprovalId,
) -> Result<Key, StoreError> {
    Ok(key(tenant, PENDING)?.public(id.as_str()))
}

fn queue_key(tenant: &TenantName, queued: &Queued) -> Result<Key, StoreError> {
    let time = u64::try_from(queued.created_at.milliseconds()).unwrap_or(0);
    Ok(key(tenant, QUEUE)?
        .private(queued.subject.as_str())
        .number(time)
        .public(queued.approval.as_str()))
}

/// What a new decision asks people, if it does.
pub(in crate::store) fn asked(changes: Changes, new: &NewDecision) -> Result<Changes, StoreError> {
    let tenant = &new.key.tenant;
    let Some(pending) = &new.pending else {
        return Ok(changes);
    };
    let bytes = records::encode_pending(pending);
    let changes = changes
        .put(pending_key(tenant, &pending.reference)?, bytes.clone())
        .put(queue_key(tenant, &Queued::of(pending))?, bytes);
    let kept = Kept {
        what: What::Pending(tenant.clone(), pending.reference.clone()),
        until: new.kept_until,
    };
    Ok(kept.index(changes))
}
