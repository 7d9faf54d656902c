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
mod submitting;

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_model::alias::tenant_alias;
use cl_model::digest::Digest;
use cl_model::object::DecisionState;
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;

pub(crate) use self::admin::SnapshotStatus;
pub(crate) use self::answers::GivenAnswer;
use self::deciding::ActiveSnapshot;
pub(crate) use self::delegations::NewDelegation;
pub(crate) use self::enrolment::OpenEnrolment;
pub(crate) use self::examining::{DecisionRange, Explained, PlaceOfDecision, Recorded, Simulated};
pub(crate) use self::opening::{AnsweredScope, OpenAnswer};
pub(crate) use self::reading::{ItemState, PlaceOfSubject, Shown, ShownDecision, Summary};
pub(crate) use self::shadow::ShadowStatus;
pub(crate) use self::sign_in::{OpenCeremony, SignedIn};
pub(crate) use self::submitting::Submission;
use crate::Deps;
use crate::ages::Ages;
use crate::compiled::CompiledSnapshots;
use crate::core::evaluation::Decided;
use crate::core::evidence::{Evidence, Operation};
use crate::core::grant::Audiences;
use crate::core::keys::Keys;
use crate::core::operation::{OperationId, TenantName};
use crate::core::state::State;
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

/// Tries a call again while somebody else is first.
async fn retried<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 0..ATTEMPTS {
        match attempt().await {
            Err(Error::Store(StoreError::Conflict)) => {}
            result => return result,
        }
    }
    Err(Error::InProgress)
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
        let stored = retried(|| self.current(key)).await?;
        let stored = stored.ok_or(Error::RequestNotFound)?;
        self.answer(key, stored).await
    }

    /// Counts a decision that is stored, and has a shadow look at it if there is one.
    fn count(&self, tenant: &TenantName, decided: &Decided, shadow: Option<&Shadow>) {
        let outcome = KeyValue::new("decision", decided.state().as_str());
        self.decisions.add(1, &[outcome]);
        if let Some(shadow) = shadow {
            self.shadowing.look(tenant, &decided.decision.id, shadow);
        }
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
