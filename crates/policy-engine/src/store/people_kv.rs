//! People on ordered keys and preconditioned batches.
//!
//! ```text
//! process spent      private(id)                              -> how a challenge was used up
//! process answer     private(id)                              -> answer that was opened
//! process session    private(digest of the token)             -> session
//! process link       private(digest of the token)             -> one-time link
//! process passkey    private(credential id)                   -> tenant and name of the credential
//! tenant  credential public(name)                             -> credential
//! tenant  holder     private(principal) public(name)          -> nothing more
//! tenant  answers    private(principal)                       -> the person's open answers
//! tenant  pending    public(id)                               -> what waits, or waited
//! tenant  queue      private(subject) number(time) public(id) -> what waits
//! tenant  history    private(subject) number(newest smallest) public(decision id) -> request
//! process unrevoked  public(tenant) public(decision id)       -> bundle to revoke
//! ```

use cl_kv::{Changes, Durability, Key, Kind, Opened, Precondition, Range, Tenant};
use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::{ApprovalId, CredentialId};

use super::kept::{Kept, What};
use super::kv::{KvStore, key};
use super::people::{
    Answer, Credential, CredentialState, Enrolment, Link, OpenedAnswer, Past, Pending, People,
    Queued, RefusedAnswer, Revocation, Session, SignIn, Spent, Stored, Unrevoked,
};
use super::people_records as records;
use super::{NewDecision, OutboxEntry, Place, RequestKey, StoreError, Use};
use crate::core::challenge::{CeremonyId, Challenge};
use crate::core::open_answers::OpenAnswers;
use crate::core::operation::TenantName;
use crate::core::state::State;

const SPENT: Kind = Kind::new("spent");
const ANSWER: Kind = Kind::new("answer");
const ANSWERS: Kind = Kind::new("answers");
const SESSION: Kind = Kind::new("session");
const LINK: Kind = Kind::new("link");
const PASSKEY: Kind = Kind::new("passkey");
const CREDENTIAL: Kind = Kind::new("credential");
const HOLDER: Kind = Kind::new("holder");
const PENDING: Kind = Kind::new("pending");
const QUEUE: Kind = Kind::new("queue");
const HISTORY: Kind = Kind::new("history");
const DECIDED: Kind = Kind::new("decided");
const UNREVOKED: Kind = Kind::new("unrevoked");

/// How long an opened answer is remembered after its end, so that a late one learns why it is late,
/// and a repeat what it did.
const ANSWER_KEPT_SECONDS: u64 = 3600;

impl People for KvStore {
    fn spent(&self, id: &CeremonyId) -> Result<Option<Spent>, StoreError> {
        let found = self.read(spent_key(id), records::decode_spent)?;
        Ok(found.map(|stored| stored.value))
    }

    fn refuse_sign_in(
        &self,
        challenge: &Challenge,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let changes = spent(Changes::new(), challenge, &Spent::Unnamed);
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }

    fn sign_in(&self, sign_in: &SignIn) -> Result<(), StoreError> {
        let session = session_key(sign_in.token);
        let kept = Kept {
            what: What::Session(sign_in.token),
            until: sign_in.session.expires_at,
        };
        let changes = spent(Changes::new(), &sign_in.challenge, &Spent::Unnamed)
            .require(&session, Precondition::Absent)
            .put(session, records::encode_session(&sign_in.session));
        let changes = counted(changes, &sign_in.credential, sign_in.counter)?;
        self.apply(&kept.index(changes))
    }

    fn session(&self, token: Digest) -> Result<Option<Stored<Session>>, StoreError> {
        self.read(session_key(token), records::decode_session)
    }

    fn touch(
        &self,
        token: Digest,
        read: &Stored<Session>,
        used_at: UnixTime,
    ) -> Result<(), StoreError> {
        let target = session_key(token);
        let session = Session {
            used_at,
            ..read.value.clone()
        };
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(read.version))
            .put(target, records::encode_session(&session));
        self.apply(&changes.durability(Durability::Relaxed))
    }

    fn end_session(&self, token: Digest) -> Result<(), StoreError> {
        self.apply(&Changes::new().delete(session_key(token)))
    }

    fn open_link(
        &self,
        token: Digest,
        link: &Link,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = link_key(token);
        let kept = Kept {
            what: What::Link(token),
            until: link.expires_at,
        };
        let changes = Changes::new()
            .require(&target, Precondition::Absent)
            .put(target, records::encode_link(link));
        self.apply(&Self::with_operation(
            kept.index(changes),
            operation,
            entry,
        )?)
    }

    fn link(&self, token: Digest) -> Result<Option<Stored<Link>>, StoreError> {
        self.read(link_key(token), records::decode_link)
    }

    fn enrol(&self, enrolment: &Enrolment) -> Result<(), StoreError> {
        let (token, link) = &enrolment.link;
        let credential = &enrolment.credential;
        let by = Spent::By(enrolment.entry.operation_id.clone());
        let link_target = link_key(*token);
        let passkey = passkey_key(&credential.id);
        let target = credential_key(&credential.tenant, &credential.reference)?;
        let holder = key(&credential.tenant, HOLDER)?
            .private(credential.principal.as_str())
            .public(credential.reference.as_str());
        let changes = spent(Changes::new(), &enrolment.challenge, &by)
            .require(&link_target, Precondition::Unchanged(link.version))
            .delete(link_target)
            .require(&passkey, Precondition::Absent)
            .put(passkey, records::encode_named(credential))
            .require(&target, Precondition::Absent)
            .put(target, records::encode_credential(credential))
            .put(holder, records::encode_named(credential));
        self.apply(&Self::with_operation(
            changes,
            enrolment.operation,
            &enrolment.entry,
        )?)
    }

    fn credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
    ) -> Result<Option<Stored<Credential>>, StoreError> {
        self.read(
            credential_key(tenant, reference)?,
            records::decode_credential,
        )
    }

    fn credential_by_id(&self, id: &[u8]) -> Result<Option<Stored<Credential>>, StoreError> {
        let Some(named) = self.read(passkey_key(id), records::decode_named)? else {
            return Ok(None);
        };
        let (tenant, reference) = named.value;
        let found = self.credential(&tenant, &reference)?;
        found.ok_or(StoreError::Corrupt).map(Some)
    }

    fn credentials(
        &self,
        tenant: &TenantName,
        after: Option<&CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError> {
        let all = key(tenant, CREDENTIAL)?;
        let mut range = Range::of(all.clone(), limit);
        if let Some(reference) = after {
            range = range.after(all.public(reference.as_str()));
        }
        self.list(&range, records::decode_credential)
    }

    fn credentials_of(
        &self,
        tenant: &TenantName,
        principal: &Reference,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError> {
        let of = key(tenant, HOLDER)?.private(principal.as_str());
        let named = self.list(&Range::of(of, limit), records::decode_named)?;
        let mut credentials = Vec::with_capacity(named.len());
        for (tenant, reference) in named {
            let found = self.credential(&tenant, &reference)?;
            credentials.push(found.ok_or(StoreError::Corrupt)?.value);
        }
        Ok(credentials)
    }

    fn turn_credential(
        &self,
        read: &Stored<Credential>,
        state: CredentialState,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let next = Credential {
            state,
            ..read.value.clone()
        };
        let changes = rewritten(Changes::new(), read, &next)?;
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }

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

impl KvStore {
    fn read<T>(
        &self,
        target: Key,
        decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<Stored<T>>, StoreError> {
        let found: Option<Opened> = self.sealed.get(target)?;
        found
            .map(|opened| {
                Ok(Stored {
                    value: decode(&opened.value)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    fn list<T>(
        &self,
        range: &Range,
        decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let found = self.sealed.scan(range)?;
        found
            .iter()
            .map(|entry| decode(&entry.opened.value))
            .collect()
    }
}

/// What people see of a new decision: an item to answer, if it asks for an approval, and one more
/// decision about the subject.
pub(super) fn shown(mut changes: Changes, new: &NewDecision) -> Result<Changes, StoreError> {
    let tenant = &new.key.tenant;
    if let Some(pending) = &new.pending {
        let bytes = records::encode_pending(pending);
        let queued = Queued::of(pending);
        changes = changes
            .put(pending_key(tenant, &pending.reference)?, bytes.clone())
            .put(queue_key(tenant, &queued)?, bytes);
        let kept = Kept {
            what: What::Pending(tenant.clone(), pending.reference.clone()),
            until: new.kept_until,
        };
        changes = kept.index(changes);
    }
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

/// Takes what waits out of its queue.
pub(super) fn unqueued(
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

fn page(of: Key, after: Option<(u64, &str)>, limit: usize) -> Range {
    let range = Range::of(of.clone(), limit);
    match after {
        None => range,
        Some((number, name)) => range.after(of.number(number).public(name)),
    }
}

/// Uses a challenge up that has no record until then.
fn spent(changes: Changes, challenge: &Challenge, by: &Spent) -> Changes {
    let target = spent_key(&challenge.id);
    let kept = Kept {
        what: What::Spent(challenge.id),
        until: challenge.expires_at,
    };
    let changes = changes
        .require(&target, Precondition::Absent)
        .put(target, records::encode_spent(by));
    kept.index(changes)
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

/// Stores a credential's counter, which is never lowered: the batch does not apply to another writing
/// than the one that the counter was judged by.
fn counted(
    changes: Changes,
    read: &Stored<Credential>,
    counter: u32,
) -> Result<Changes, StoreError> {
    let next = Credential {
        counter,
        ..read.value.clone()
    };
    rewritten(changes, read, &next)
}

fn rewritten(
    changes: Changes,
    read: &Stored<Credential>,
    next: &Credential,
) -> Result<Changes, StoreError> {
    let target = credential_key(&next.tenant, &next.reference)?;
    Ok(changes
        .require(&target, Precondition::Unchanged(read.version))
        .put(target, records::encode_credential(next)))
}

pub(super) fn spent_key(id: &CeremonyId) -> Key {
    Tenant::process().key(SPENT).private(id)
}

pub(super) fn answer_key(id: &CeremonyId) -> Key {
    Tenant::process().key(ANSWER).private(id)
}

fn open_answers_key(tenant: &TenantName, principal: &Reference) -> Result<Key, StoreError> {
    Ok(key(tenant, ANSWERS)?.private(principal.as_str()))
}

pub(super) fn session_key(token: Digest) -> Key {
    Tenant::process().key(SESSION).private(token.as_bytes())
}

pub(super) fn link_key(token: Digest) -> Key {
    Tenant::process().key(LINK).private(token.as_bytes())
}

fn passkey_key(id: &[u8]) -> Key {
    Tenant::process().key(PASSKEY).private(id)
}

fn credential_key(tenant: &TenantName, reference: &CredentialId) -> Result<Key, StoreError> {
    Ok(key(tenant, CREDENTIAL)?.public(reference.as_str()))
}

pub(super) fn pending_key(tenant: &TenantName, id: &ApprovalId) -> Result<Key, StoreError> {
    Ok(key(tenant, PENDING)?.public(id.as_str()))
}

fn queue_key(tenant: &TenantName, queued: &Queued) -> Result<Key, StoreError> {
    let time = u64::try_from(queued.created_at.milliseconds()).unwrap_or(0);
    Ok(key(tenant, QUEUE)?
        .private(queued.subject.as_str())
        .number(time)
        .public(queued.approval.as_str()))
}

pub(super) fn decided_key(tenant: &TenantName, past: &Past) -> Result<Key, StoreError> {
    Ok(key(tenant, DECIDED)?
        .number(past.place)
        .public(&past.decision_id))
}

pub(super) fn past_key(
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
