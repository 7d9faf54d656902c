//! The engine's calls, in order: what is read, what is checked, what is stored, what is receipted.

mod admin;
mod anomalies;
mod answers;
mod approvers;
mod deciding;
mod delegations;
mod enrolment;
mod examining;
mod opening;
mod reading;
mod revoking;
mod shadow;
mod sign_in;
mod signals;

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_model::alias::tenant_alias;
use cl_model::digest::Digest;
use cl_model::object::DecisionState;
use cl_model::refusal::{Code, Refusal};
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use serde_json::json;

pub(crate) use self::admin::SnapshotStatus;
pub(crate) use self::answers::GivenAnswer;
use self::deciding::{ActiveSnapshot, Deciding};
pub(crate) use self::delegations::NewDelegation;
pub(crate) use self::enrolment::OpenEnrolment;
pub(crate) use self::examining::{DecisionRange, Explained, PlaceOfDecision, Recorded, Simulated};
pub(crate) use self::opening::{AnsweredScope, OpenAnswer};
pub(crate) use self::reading::{ItemState, PlaceOfSubject, Shown, ShownDecision, Summary};
pub(crate) use self::shadow::ShadowStatus;
pub(crate) use self::sign_in::{OpenCeremony, SignedIn};
use crate::Deps;
use crate::ages::Ages;
use crate::compiled::CompiledSnapshots;
use crate::core::evaluation::Decided;
use crate::core::evidence::{Evidence, Operation};
use crate::core::facts::Facts;
use crate::core::grant::Audiences;
use crate::core::keys::Keys;
use crate::core::operation::{OperationId, TenantName};
use crate::core::request::{InvalidBytes, ReadRequest};
use crate::core::state::{OnSubmission, State};
use crate::error::Error;
use crate::issuing::Issuing;
use crate::outbox::Outbox;
use crate::people::PeopleSettings;
use crate::receipts::Receipts;
use crate::revoking::Revoking;
use crate::shadowing::Shadowing;
use crate::signers::Signers;
use crate::store::settings::Shadow;
use crate::store::{
    Active, Conclusion, OutboxEntry, RequestKey, Store, StoreError, StoredRequest, Use, blocking,
};
use crate::turns::Turns;
use crate::watching::{Changes, Watcher};

/// How often a call reads again after somebody else was first.
const ATTEMPTS: usize = 8;

/// The policy engine.
pub(crate) struct PolicyEngine {
    store: Arc<dyn Store>,
    receipts: Arc<dyn Receipts>,
    outbox: Arc<Outbox>,
    issuing: Option<Arc<Issuing>>,
    ids: Arc<dyn Ids>,
    keys: Keys,
    audiences: Audiences,
    signers: Option<Signers>,
    retention_seconds: u64,
    clock: Arc<dyn Clock>,
    own: SpiffeId,
    people: PeopleSettings,
    revoking: Option<Arc<Revoking>>,
    changes: Arc<Changes>,
    decisions: Counter<u64>,
    answers: Counter<u64>,
    compiled: CompiledSnapshots,
    shadowing: Shadowing,
    ages: Arc<Ages>,
    turns: Turns,
}

/// A request to decide.
pub(crate) struct Submission {
    pub(crate) tenant: TenantName,
    pub(crate) request: ReadRequest,
    pub(crate) facts: Facts,
    pub(crate) operation_id: OperationId,
    pub(crate) deadline: Option<Deadline>,
}

/// Where a request stands, for its requester.
#[derive(Clone, PartialEq)]
pub(crate) struct RequestStatus {
    pub(crate) request_ref: String,
    pub(crate) state: State,
    pub(crate) decision: Vec<u8>,
    pub(crate) conclusion: Option<Conclusion>,
    /// Whether a bundle is on its way.
    pub(crate) awaits_bundle: bool,
    /// What the decision says.
    pub(crate) outcome: DecisionState,
}

impl RequestStatus {
    /// Whether nothing changes any more.
    pub(crate) const fn is_final(&self) -> bool {
        self.state.is_final(self.outcome, self.awaits_bundle)
    }
}

/// What is stored before a submission is decided.
struct Before {
    current: Option<StoredRequest>,
    /// What its operation was used for.
    used: Option<Digest>,
    swept_until: Option<UnixTime>,
    active: Option<Active>,
}

/// A request as it is stored, and whether that changed: what has run out is first stored as expired.
fn current(
    store: &dyn Store,
    key: &RequestKey,
    now: UnixTime,
) -> Result<(Option<StoredRequest>, bool), StoreError> {
    let stored = store.request(key)?;
    match &stored {
        Some(read) if read.standing.has_run_out(now) => {
            store.expire(key, read)?;
            Ok((store.request(key)?, true))
        }
        Some(_) | None => Ok((stored, false)),
    }
}

impl PolicyEngine {
    pub(crate) fn new(
        deps: Deps,
        outbox: Arc<Outbox>,
        issuing: Option<Arc<Issuing>>,
        revoking: Option<Arc<Revoking>>,
        changes: Arc<Changes>,
        shadowing: Shadowing,
        ages: Arc<Ages>,
    ) -> Self {
        Self {
            store: deps.store,
            receipts: deps.receipts,
            outbox,
            issuing,
            ids: deps.ids,
            keys: deps.keys,
            audiences: deps.audiences,
            signers: deps.signers,
            retention_seconds: deps.retention_seconds,
            clock: deps.clock,
            own: deps.own,
            people: deps.people,
            revoking,
            changes,
            answers: deps
                .meter
                .u64_counter("policy_answers")
                .with_description("Answers of people, by how they ended.")
                .build(),
            compiled: CompiledSnapshots::new(),
            shadowing,
            ages,
            turns: Turns::new(),
            decisions: deps
                .meter
                .u64_counter("policy_decisions")
                .with_description("Decisions, by their outcome.")
                .build(),
        }
    }

    pub(crate) fn trust_domain(&self) -> &str {
        self.own.trust_domain()
    }

    /// Decides a request, or returns where it stands.
    pub(crate) async fn submit(&self, submission: &Submission) -> Result<RequestStatus, Error> {
        for _ in 0..ATTEMPTS {
            match self.try_submit(submission).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                Ok(status) if status.awaits_bundle => {
                    let key = submission.key();
                    return self.with_bundle(&key, submission.deadline).await;
                }
                result => return result,
            }
        }
        Err(Error::InProgress)
    }

    /// Asks for the bundle at once, so that the ordinary answer names it already. If that takes too
    /// long or fails, the answer says what is known, and the issuing goes on.
    async fn with_bundle(
        &self,
        key: &RequestKey,
        deadline: Option<Deadline>,
    ) -> Result<RequestStatus, Error> {
        if let Some(issuing) = &self.issuing {
            issuing.ask_now(key, deadline).await;
        }
        self.request(key).await
    }

    /// A call that follows a request.
    pub(crate) fn watcher(&self, key: RequestKey) -> Result<Watcher, Error> {
        self.changes.watcher(key)
    }

    /// Returns where a request stands.
    pub(crate) async fn request(&self, key: &RequestKey) -> Result<RequestStatus, Error> {
        for _ in 0..ATTEMPTS {
            match self.current(key).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                Err(error) => return Err(error),
                Ok(None) => return Err(Error::RequestNotFound),
                Ok(Some(stored)) => return self.answer(key, stored).await,
            }
        }
        Err(Error::InProgress)
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
        self.preflight(&submission.tenant, Operation::Decide)
            .await?;
        let turn = self.turn(submission, &active).await;
        let told = self.told_anew(submission, &active).await?;
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
        let read = blocking(&self.store, move |store| {
            let (current, has_changed) = current(store, &of, now)?;
            let before = Before {
                current,
                used: store.operation(&of.tenant, &operation_id)?,
                swept_until: store.swept_until()?,
                active: store.active(&of.tenant)?,
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

    /// Counts a decision that is stored, and has a shadow look at it if there is one.
    fn count(&self, tenant: &TenantName, decided: &Decided, shadow: Option<&Shadow>) {
        let outcome = KeyValue::new("decision", decided.state().as_str());
        self.decisions.add(1, &[outcome]);
        if let Some(shadow) = shadow {
            self.shadowing.look(tenant, &decided.decision.id, shadow);
        }
    }

    /// Refuses a request that may have been decided and forgotten, so that none is decided twice.
    fn check_age(&self, request: &ReadRequest, forgotten: UnixTime) -> Result<(), Error> {
        let created_at = request.request.created_at.instant();
        if created_at.plus_seconds(self.retention_seconds) <= forgotten {
            let refusal = Refusal::from(Code::RequestTooOld);
            return Err(Error::document("request")(InvalidBytes::Refused(refusal)));
        }
        Ok(())
    }

    /// A request as it is stored; what has run out is first stored as expired.
    async fn current(&self, key: &RequestKey) -> Result<Option<StoredRequest>, Error> {
        let (of, now) = (key.clone(), self.now());
        let read = blocking(&self.store, move |store| current(store, &of, now));
        let (stored, has_changed) = read.await?;
        if has_changed {
            self.changes.announce(key);
        }
        Ok(stored)
    }

    /// Where a request stands, once the receipts of its decision and of a person's answer are
    /// durable.
    async fn answer(
        &self,
        key: &RequestKey,
        stored: StoredRequest,
    ) -> Result<RequestStatus, Error> {
        self.outbox
            .settle(&key.tenant, &stored.operation_id)
            .await?;
        let (tenant, decision_id) = (key.tenant.clone(), stored.decision_id.clone());
        let recorded = blocking(&self.store, move |store| {
            store
                .decision(&tenant, &decision_id)?
                .ok_or(StoreError::Corrupt)
        });
        let recorded = recorded.await?;
        if recorded.approval.is_some() {
            self.outbox
                .settle_decision(&key.tenant, &stored.decision_id)
                .await?;
        }
        let state = stored.standing.state;
        Ok(RequestStatus {
            request_ref: key.id.as_str().to_owned(),
            state,
            outcome: stored.standing.decision,
            conclusion: stored.conclusion,
            awaits_bundle: state == State::Decided && stored.issue.is_some(),
            decision: recorded.decision,
        })
    }

    /// Whether the operation id was used for this content; other content is a conflict.
    async fn has_begun(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
        content: Digest,
    ) -> Result<bool, Error> {
        let (tenant, id) = (tenant.clone(), operation_id.clone());
        let read = blocking(&self.store, move |store| {
            Ok((store.operation(&tenant, &id)?, store.swept_until()?))
        });
        let (used, swept_until) = read.await?;
        self.is_repeat(used, operation_id, content, self.forgotten(swept_until))
    }

    fn is_repeat(
        &self,
        used: Option<Digest>,
        operation_id: &OperationId,
        content: Digest,
        forgotten: UnixTime,
    ) -> Result<bool, Error> {
        match used {
            None if operation_id.is_forgotten(forgotten, self.retention_seconds) => {
                Err(Error::OperationTooOld)
            }
            None => Ok(false),
            Some(used) if used == content => Ok(true),
            Some(_) => Err(Error::OperationConflict),
        }
    }

    /// Until when what was kept may be forgotten, also by a clock that has stepped back since.
    async fn forgotten_until(&self) -> Result<UnixTime, StoreError> {
        let swept = blocking(&self.store, |store| store.swept_until()).await?;
        Ok(self.forgotten(swept))
    }

    fn forgotten(&self, swept_until: Option<UnixTime>) -> UnixTime {
        let now = self.now();
        swept_until.map_or(now, |swept| swept.max(now))
    }

    /// What an operation id is used for.
    fn used_for(&self, operation_id: &OperationId, content: Digest, now: UnixTime) -> Use {
        Use {
            content,
            kept_until: operation_id.kept_until(now, self.retention_seconds),
        }
    }

    /// The active snapshot, and which activation was read.
    async fn active_snapshot(&self, tenant: &TenantName) -> Result<ActiveSnapshot, Error> {
        let of = tenant.clone();
        let active = blocking(&self.store, move |store| store.active(&of)).await?;
        self.snapshot_of(tenant, active).await
    }

    /// The snapshot that an activation names. It is read from the store if it was not read lately.
    async fn snapshot_of(
        &self,
        tenant: &TenantName,
        active: Option<Active>,
    ) -> Result<ActiveSnapshot, Error> {
        let active = active.ok_or(Error::PolicyNotActive)?;
        let read = match self.compiled.known(active.digest) {
            Some(known) => known,
            None => {
                let tenant = tenant.clone();
                let stored = blocking(&self.store, move |store| {
                    store.snapshot(&tenant, active.digest)
                });
                let stored = stored.await?.ok_or(StoreError::Corrupt)?;
                self.compiled.read(stored.bytes)?
            }
        };
        Ok(ActiveSnapshot {
            read,
            version: active.version,
        })
    }

    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), Error> {
        let answer = self.receipts.preflight(tenant, operation).await;
        answer.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "receipt preflight failed");
            Error::ReceiptStoreUnavailable
        })
    }

    fn new_operation(&self) -> Result<OperationId, Error> {
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        OperationId::parse(&format!("urn:cl:operation:{uuid}")).ok_or(Error::Internal)
    }

    fn entry(
        &self,
        tenant: &TenantName,
        evidence: &Evidence<'_>,
        subject_tag: Option<String>,
    ) -> Result<OutboxEntry, Error> {
        Ok(OutboxEntry {
            tenant: tenant.clone(),
            operation_id: evidence.operation_id.clone(),
            subject_tag,
            members: evidence.members().map_err(|_| Error::Internal)?,
        })
    }

    fn tenant_alias(&self, tenant: &TenantName) -> Alias {
        tenant_alias(&self.keys.tenant_alias, tenant.as_str())
    }

    pub(crate) fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }
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
