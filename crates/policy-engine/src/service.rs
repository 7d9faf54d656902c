//! The engine's calls, in order: what is read, what is checked, what is stored, what is receipted.

mod admin;

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_model::alias::tenant_alias;
use cl_model::digest::Digest;
use cl_model::policy::Preflight;
use cl_model::refusal::{Code, Refusal};
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use serde_json::json;

pub(crate) use self::admin::SnapshotStatus;
use crate::Deps;
use crate::compiled::CompiledSnapshots;
use crate::core::evaluation::{Decided, Inputs};
use crate::core::evidence::{Evidence, Operation};
use crate::core::facts::Facts;
use crate::core::grant::{Audiences, SubjectNames, grant};
use crate::core::keys::Keys;
use crate::core::operation::{OperationId, TenantName};
use crate::core::request::{InvalidBytes, ReadRequest, ReadSnapshot};
use crate::core::state::{OnSubmission, Standing, State};
use crate::error::Error;
use crate::issuing::Issuing;
use crate::outbox::Outbox;
use crate::receipts::Receipts;
use crate::store::{
    Conclusion, NewDecision, OutboxEntry, RecordedDecision, RequestKey, Store, StoreError,
    StoredRequest, Use, blocking,
};

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
    retention_seconds: u64,
    clock: Arc<dyn Clock>,
    own: SpiffeId,
    decisions: Counter<u64>,
    compiled: CompiledSnapshots,
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
pub(crate) struct RequestStatus {
    pub(crate) request_ref: String,
    pub(crate) state: State,
    pub(crate) decision: Vec<u8>,
    pub(crate) conclusion: Option<Conclusion>,
    /// Whether a bundle is on its way.
    pub(crate) awaits_bundle: bool,
}

/// What a submission is judged against, read before it is decided.
struct Judgement {
    snapshot: Arc<ReadSnapshot>,
    active: cl_kv::Version,
    replaces: Option<cl_kv::Version>,
    content: Digest,
    now: UnixTime,
}

impl PolicyEngine {
    pub(crate) fn new(deps: Deps, outbox: Arc<Outbox>, issuing: Option<Arc<Issuing>>) -> Self {
        Self {
            store: deps.store,
            receipts: deps.receipts,
            outbox,
            issuing,
            ids: deps.ids,
            keys: deps.keys,
            audiences: deps.audiences,
            retention_seconds: deps.retention_seconds,
            clock: deps.clock,
            own: deps.own,
            compiled: CompiledSnapshots::new(),
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
                Ok(status) if status.awaits_bundle => return self.with_bundle(submission).await,
                result => return result,
            }
        }
        Err(Error::InProgress)
    }

    /// Asks for the bundle at once, so that the ordinary answer names it already. If that takes too
    /// long or fails, the answer says what is known, and the issuing goes on.
    async fn with_bundle(&self, submission: &Submission) -> Result<RequestStatus, Error> {
        let key = submission.key();
        if let Some(issuing) = &self.issuing {
            issuing.ask_now(&key, submission.deadline).await;
        }
        self.request(&key).await
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
        let current = self.current(&key).await?;
        let digest = submission.request.digest();
        let replaces = match current {
            None => None,
            Some(stored) => match stored.standing.on_submission(digest) {
                OnSubmission::Return => return self.answer(&key, stored).await,
                OnSubmission::Replace => Some(stored.version),
                OnSubmission::Conflict => return Err(Error::RequestIdConflict),
            },
        };
        self.check_age(&submission.request)?;
        let judgement = self.judgement(submission, replaces).await?;
        self.preflight(&submission.tenant, Operation::Decide)
            .await?;
        let (decided, new) = self.decide(submission, &judgement)?;
        let entry = new.entry.clone();
        let status = RequestStatus {
            request_ref: key.id.as_str().to_owned(),
            state: new.standing.state,
            decision: new.recorded.decision.clone(),
            conclusion: None,
            awaits_bundle: new.standing.state == State::Decided && new.issue.is_some(),
        };
        // The commit point. A crash before it leaves nothing, a crash after it leaves an outbox
        // entry that the outbox settles.
        blocking(&self.store, move |store| store.record(&new)).await?;
        let outcome = KeyValue::new("decision", decided.state().as_str());
        self.decisions.add(1, &[outcome]);
        self.outbox.deliver(entry).await?;
        // What was stored a moment ago, not what may have taken its place since.
        Ok(status)
    }

    async fn judgement(
        &self,
        submission: &Submission,
        replaces: Option<cl_kv::Version>,
    ) -> Result<Judgement, Error> {
        let content = submission.content();
        let tenant = submission.tenant.clone();
        if self
            .has_begun(&tenant, &submission.operation_id, content)
            .await?
        {
            let again = self.current(&submission.key()).await?;
            return Err(if again.map(|stored| stored.version) == replaces {
                // The same submission once more, after another one has taken its request's place.
                Error::RequestIdConflict
            } else {
                // The same call twice at once, and the other one was faster.
                StoreError::Conflict.into()
            });
        }
        let read = blocking(&self.store, move |store| {
            let Some(active) = store.active(&tenant)? else {
                return Ok(None);
            };
            let stored = store.snapshot(&tenant, active.digest)?;
            Ok(Some((active, stored.ok_or(StoreError::Corrupt)?)))
        });
        let (active, stored) = read.await?.ok_or(Error::PolicyNotActive)?;
        Ok(Judgement {
            snapshot: self.compiled.read(stored.bytes)?,
            active: active.version,
            replaces,
            content,
            now: self.now(),
        })
    }

    /// Refuses a request that may have been decided and forgotten, so that none is decided twice.
    fn check_age(&self, request: &ReadRequest) -> Result<(), Error> {
        let created_at = request.request.created_at.instant();
        if created_at.plus_seconds(self.retention_seconds) <= self.now() {
            let refusal = Refusal::from(Code::RequestTooOld);
            return Err(Error::document("request")(InvalidBytes::Refused(refusal)));
        }
        Ok(())
    }

    fn decide(
        &self,
        submission: &Submission,
        judgement: &Judgement,
    ) -> Result<(Decided, NewDecision), Error> {
        let refused = |refusal| Error::document("request")(InvalidBytes::Refused(refusal));
        let inputs = Inputs {
            request: &submission.request,
            facts: &submission.facts,
            snapshot: &judgement.snapshot.snapshot,
            preflight: Preflight::Available,
            now: judgement.now,
        };
        let decided = inputs.decide().map_err(refused)?;
        let tenant = &submission.tenant;
        let names = SubjectNames::of(&inputs, tenant, &self.keys);
        let grant = grant(
            &inputs,
            &decided,
            tenant,
            &names,
            &self.keys,
            &self.audiences,
        )
        .map_err(refused)?;
        let decision = &decided.decision;
        let evidence = Evidence {
            operation: Operation::Decide,
            operation_id: &submission.operation_id,
            engine: self.own.as_str(),
            subject: &names.alias,
            about: Some((decision.request_ref.as_str(), decision.id.as_str())),
            policy: decision.policy_snapshot.digest,
            input: submission.request.digest(),
            output: decided.record.digest(),
            decision: Some(decided.state().as_str()),
            now: judgement.now,
        };
        let new = NewDecision {
            key: submission.key(),
            standing: Standing {
                state: State::after(decided.state()),
                request_digest: submission.request.digest(),
                decision: decided.state(),
                expires_at: decision.expires_at.instant(),
            },
            decision_id: decision.id.as_str().to_owned(),
            recorded: RecordedDecision {
                request: submission.request.bytes.clone(),
                facts: submission.facts.clone(),
                snapshot: decision.policy_snapshot.digest,
                preflight: inputs.preflight,
                now: judgement.now,
                decision: decided.record.text().as_bytes().to_vec(),
                grant,
            },
            active: judgement.active,
            replaces: judgement.replaces,
            kept_until: submission
                .request
                .request
                .created_at
                .instant()
                .max(decision.expires_at.instant())
                .max(judgement.now)
                .plus_seconds(self.retention_seconds),
            issue: self.issue_operation(&decided)?,
            operation: self.used_for(&submission.operation_id, judgement.content, judgement.now),
            entry: self.entry(tenant, &evidence, Some(names.tag))?,
        };
        Ok((decided, new))
    }

    /// The operation that is to issue a bundle, if the decision allows one and there is an issuer.
    fn issue_operation(&self, decided: &Decided) -> Result<Option<OperationId>, Error> {
        if self.issuing.is_none() || !decided.state().allows() {
            return Ok(None);
        }
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        let id = OperationId::parse(&format!("urn:cl:operation:{uuid}"));
        id.map(Some).ok_or(Error::Internal)
    }

    /// A request as it is stored; what has run out is first stored as expired.
    async fn current(&self, key: &RequestKey) -> Result<Option<StoredRequest>, Error> {
        let (key, now) = (key.clone(), self.now());
        let current = blocking(&self.store, move |store| {
            let stored = store.request(&key)?;
            match &stored {
                Some(read) if read.standing.has_run_out(now) => {
                    store.expire(&key, read)?;
                    store.request(&key)
                }
                Some(_) | None => Ok(stored),
            }
        });
        Ok(current.await?)
    }

    /// Where a request stands, once the receipt of its decision is durable.
    async fn answer(
        &self,
        key: &RequestKey,
        stored: StoredRequest,
    ) -> Result<RequestStatus, Error> {
        self.outbox
            .settle(&key.tenant, &stored.operation_id)
            .await?;
        let (tenant, decision_id) = (key.tenant.clone(), stored.decision_id);
        let recorded = blocking(&self.store, move |store| {
            store
                .decision(&tenant, &decision_id)?
                .ok_or(StoreError::Corrupt)
        });
        let state = stored.standing.state;
        Ok(RequestStatus {
            request_ref: key.id.as_str().to_owned(),
            state,
            conclusion: stored.conclusion,
            awaits_bundle: state == State::Decided && stored.issue.is_some(),
            decision: recorded.await?.decision,
        })
    }

    /// Whether the operation id was used for this content; other content is a conflict.
    async fn has_begun(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
        content: Digest,
    ) -> Result<bool, Error> {
        let is_forgotten = operation_id.is_forgotten(self.now(), self.retention_seconds);
        let (tenant, operation_id) = (tenant.clone(), operation_id.clone());
        let used = blocking(&self.store, move |store| {
            store.operation(&tenant, &operation_id)
        });
        match used.await? {
            None if is_forgotten => Err(Error::OperationTooOld),
            None => Ok(false),
            Some(used) if used == content => Ok(true),
            Some(_) => Err(Error::OperationConflict),
        }
    }

    /// What an operation id is used for.
    fn used_for(&self, operation_id: &OperationId, content: Digest, now: UnixTime) -> Use {
        Use {
            content,
            kept_until: operation_id.kept_until(now, self.retention_seconds),
        }
    }

    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), Error> {
        let answer = self.receipts.preflight(tenant, operation).await;
        answer.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "receipt preflight failed");
            Error::ReceiptStoreUnavailable
        })
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

    fn now(&self) -> UnixTime {
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
