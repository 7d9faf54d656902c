//! A request that comes in: what was stored before, and the decision.

use cl_host::deadline::Deadline;
use cl_model::digest::Digest;
use cl_model::refusal::{Code, Refusal};
use cl_model::time::UnixTime;
use serde_json::json;

use super::deciding::Deciding;
use super::signals::Settings;
use super::{PolicyEngine, RequestStatus, current, retried};
use crate::core::evidence::Operation;
use crate::core::facts::Facts;
use crate::core::operation::{OperationId, TenantName};
use crate::core::request::{InvalidBytes, ReadRequest};
use crate::core::state::{OnSubmission, State};
use crate::error::Error;
use crate::store::{Active, RequestKey, StoreError, StoredRequest, blocking};

/// How far the clock of a requester may be ahead.
const CLOCK_LEEWAY_SECONDS: u64 = 300;

/// A request to decide.
pub(crate) struct Submission {
    pub(crate) tenant: TenantName,
    pub(crate) request: ReadRequest,
    pub(crate) facts: Facts,
    pub(crate) operation_id: OperationId,
    pub(crate) deadline: Option<Deadline>,
}

impl Submission {
    fn key(&self) -> RequestKey {
        RequestKey {
            tenant: self.tenant.clone(),
            principal: self.facts.principal.clone(),
            id: self.request.request.id.clone(),
        }
    }

    /// What its operation id is used for.
    fn content(&self) -> Digest {
        Digest::of_json(&json!([
            Operation::Decide.as_str(),
            self.facts.principal.as_str(),
            self.request.digest().to_string(),
        ]))
    }
}

/// What is stored before a submission is decided.
struct Before {
    current: Option<StoredRequest>,
    /// What its operation was used for.
    used: Option<Digest>,
    swept_until: Option<UnixTime>,
    active: Option<Active>,
    settings: Settings,
}

impl PolicyEngine {
    /// Decides a request, or returns where it stands.
    pub(crate) async fn submit(&self, submission: &Submission) -> Result<RequestStatus, Error> {
        let status = retried(|| self.try_submit(submission)).await?;
        if status.awaits_bundle {
            let key = submission.key();
            return self.with_bundle(&key, submission.deadline).await;
        }
        Ok(status)
    }

    async fn try_submit(&self, submission: &Submission) -> Result<RequestStatus, Error> {
        let key = submission.key();
        let before = self.before(submission).await?;
        let digest = submission.request.digest();
        let replaces = match before.current {
            None => None,
            Some(stored) => match stored.standing.on_submission(digest) {
                OnSubmission::Return => return self.answer(&key, stored).await,
                OnSubmission::Replace => Some(stored),
                OnSubmission::Conflict => return Err(Error::RequestIdConflict),
            },
        };
        let forgotten = self.forgotten(before.swept_until);
        self.check_age(&submission.request, forgotten)?;
        let (id, content) = (&submission.operation_id, submission.content());
        if self.is_repeat(before.used, id, content, forgotten)? {
            return Err(self.repeated(submission, replaces.as_ref()).await?);
        }
        let active = self.snapshot_of(&submission.tenant, before.active).await?;
        // Only now: what repeats itself costs the receipt store nothing.
        self.preflight(&submission.tenant, Operation::Decide)
            .await?;
        let turn = self.turn(submission, &active).await;
        let told = self
            .told_anew(submission, &active, before.settings, before.swept_until)
            .await?;
        let deciding = Deciding {
            told: &told,
            key,
            request: &submission.request,
            facts: &submission.facts,
            operation_id: &submission.operation_id,
            content,
            active: &active,
            replaces,
            approved: None,
            now: self.now(),
        };
        let (decided, new) = self.decide(deciding)?;
        let entry = new.entry.clone();
        let status = RequestStatus {
            request_ref: new.key.id.as_str().to_owned(),
            state: new.standing.state,
            decision: new.recorded.decision.clone(),
            conclusion: None,
            awaits_bundle: new.standing.state == State::Decided && new.issue.is_some(),
            outcome: decided.state(),
        };
        // The commit point. A crash before it leaves nothing, a crash after it leaves an outbox
        // entry that the outbox settles.
        blocking(&self.store, move |store| store.record(&new)).await?;
        drop(turn);
        self.changes.announce(&submission.key());
        self.count(&submission.tenant, &decided, told.shadow.as_ref());
        self.outbox.deliver(entry).await?;
        // What was stored a moment ago, not what may have taken its place since.
        Ok(status)
    }

    /// What is stored before a submission is decided, read in this order: what has gone from an
    /// earlier place is covered by a later one.
    async fn before(&self, submission: &Submission) -> Result<Before, Error> {
        let (key, now) = (submission.key(), self.now());
        let (of, operation_id) = (key.clone(), submission.operation_id.clone());
        let subject = submission.request.request.subject_ref.clone();
        let read = blocking(&self.store, move |store| {
            let (current, has_changed) = current(store, &of, now)?;
            let before = Before {
                current,
                used: store.operation(&of.tenant, &operation_id)?,
                swept_until: store.swept_until()?,
                active: store.active(&of.tenant)?,
                settings: Settings::read(store, &of.tenant, &of.principal, &subject)?,
            };
            Ok((before, has_changed))
        });
        let (before, has_changed) = read.await?;
        if has_changed {
            self.changes.announce(&key);
        }
        Ok(before)
    }

    /// Why a submission is refused whose operation has decided already.
    async fn repeated(
        &self,
        submission: &Submission,
        replaces: Option<&StoredRequest>,
    ) -> Result<Error, Error> {
        let again = self.current(&submission.key()).await?;
        let is_unchanged =
            again.map(|stored| stored.version) == replaces.map(|stored| stored.version);
        Ok(if is_unchanged {
            // The same submission once more, after another one has taken its request's place.
            Error::RequestIdConflict
        } else {
            // The same call twice at once, and the other one was faster.
            StoreError::Conflict.into()
        })
    }

    /// Refuses a request that may have been decided and forgotten, so that none is decided twice, and one
    /// from the future, which would be kept for longer than any other.
    fn check_age(&self, request: &ReadRequest, forgotten: UnixTime) -> Result<(), Error> {
        let refused = |code| Error::document("request")(InvalidBytes::Refused(Refusal::from(code)));
        let created_at = request.request.created_at.instant();
        if created_at.plus_seconds(self.retention_seconds) <= forgotten {
            return Err(refused(Code::RequestTooOld));
        }
        if created_at > self.now().plus_seconds(CLOCK_LEEWAY_SECONDS) {
            return Err(refused(Code::RequestFromFuture));
        }
        Ok(())
    }
}
