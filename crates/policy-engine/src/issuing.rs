//! Bundles that are decided and not yet issued.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::life::Shutdown;
use cl_model::time::UnixTime;
use cl_wire::bundle::v1::IssueBundleRequest;
use cl_wire::grant::SignedGrant;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;

use crate::Deps;
use crate::core::state::State;
use crate::error::Error;
use crate::issuer::{Issuer, NotIssued};
use crate::outbox::Outbox;
use crate::store::{
    Conclusion, RecordedDecision, RequestKey, Store, StoreError, StoredRequest, blocking,
};
use crate::watching::Changes;

/// Time between two looks at what is outstanding.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause while the issuer is away.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// How many requests are read at a time.
const PAGE: usize = 64;

/// Longest time for one call to the issuer.
const MAX_CALL: Duration = Duration::from_secs(20);

/// What a submission keeps of its time for its own answer.
const MARGIN: Duration = Duration::from_millis(500);

/// Time between two looks whether another call still asks for the same bundle.
const TURN: Duration = Duration::from_millis(10);

/// How often a change is tried again after somebody else was first.
const ATTEMPTS: usize = 8;

/// Asks the issuer for the bundles that decisions allow, until it has them, is told that there never
/// will be one, or the decision has ended.
///
/// A request is outstanding from the batch that stores its decision. A crash at any point leaves it
/// so, and the issuer answers a repeat with the same bundle.
pub(crate) struct Issuing {
    store: Arc<dyn Store>,
    issuer: Arc<dyn Issuer>,
    outbox: Arc<Outbox>,
    clock: Arc<dyn Clock>,
    changes: Arc<Changes>,
    /// Requests that are asked for right now, so that a submission and a look do not meet.
    asked: Mutex<HashSet<String>>,
    calls: Counter<u64>,
}

impl Issuing {
    pub(crate) fn new(
        deps: &Deps,
        outbox: Arc<Outbox>,
        issuer: Arc<dyn Issuer>,
        changes: Arc<Changes>,
    ) -> Self {
        Self {
            store: Arc::clone(&deps.store),
            issuer,
            outbox,
            clock: Arc::clone(&deps.clock),
            changes,
            asked: Mutex::default(),
            calls: deps
                .meter
                .u64_counter("policy_issue_calls")
                .with_description("Calls to the bundle issuer, by how they ended.")
                .build(),
        }
    }

    /// Asks for a bundle within the time that a submission has left. Whatever goes wrong is tried
    /// again later.
    pub(crate) async fn ask_now(&self, key: &RequestKey, deadline: Option<Deadline>) {
        let left = deadline.map_or(MAX_CALL, |deadline| deadline.remaining());
        let time = left.saturating_sub(MARGIN).min(MAX_CALL);
        if time.is_zero() {
            return;
        }
        let ask = async {
            // A look of `run` may be asking for it this moment: its answer is this one's too.
            while !self.ask(key, time).await? {
                tokio::time::sleep(TURN).await;
            }
            Ok::<(), Error>(())
        };
        match tokio::time::timeout(time, ask).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a bundle is not issued yet"),
            Err(_) => tracing::warn!("a bundle is not issued yet: no time is left"),
        }
    }

    /// Asks for what is outstanding, now and from time to time, until told to end.
    pub(crate) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let mut pause = PAUSE;
        while !shutdown.is_requested() {
            pause = match self.ask_for_all().await {
                Ok(()) => PAUSE,
                Err(error) => {
                    if error.is_fault() {
                        tracing::error!(%error, "what is to be issued cannot be read or stored");
                    }
                    (pause * 2).min(MAX_PAUSE)
                }
            };
            tokio::select! {
                () = shutdown.requested() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Tries each request once; one that fails does not keep the others back.
    async fn ask_for_all(&self) -> Result<(), Error> {
        let mut after = None;
        let mut outcome = Ok(());
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.unissued(from, PAGE)).await?;
            for key in page.keys {
                if let Err(error) = self.ask(&key, MAX_CALL).await {
                    outcome = Err(error);
                }
            }
            after = page.next;
            if after.is_none() {
                return outcome;
            }
        }
    }

    /// Asks for a bundle; false if another call asks for it right now.
    async fn ask(&self, key: &RequestKey, time: Duration) -> Result<bool, Error> {
        let Some(_asking) = Asking::start(&self.asked, key) else {
            return Ok(false);
        };
        let Some((stored, recorded)) = self.outstanding(key).await? else {
            return Ok(true);
        };
        // Nobody learns of a bundle whose decision, or the answer it rests on, has no receipt.
        self.outbox
            .settle(&key.tenant, &stored.operation_id)
            .await?;
        if recorded.approval.is_some() {
            let decision_id = &stored.decision_id;
            self.outbox
                .settle_decision(&key.tenant, decision_id)
                .await?;
        }
        let request = message(key, &stored, recorded).ok_or(StoreError::Corrupt)?;
        let conclusion = match self.issuer.issue(request, time).await {
            Ok(id) => Conclusion::Issued(id),
            Err(NotIssued::Never(code)) => Conclusion::Failed(code),
            Err(NotIssued::NotYet { code, reason }) => {
                self.count("not_yet");
                tracing::warn!(?code, reason, "no bundle yet");
                return Err(Error::Unsettled);
            }
        };
        self.count(match &conclusion {
            Conclusion::Issued(_) => "issued",
            Conclusion::Failed(_) => "failed",
        });
        self.conclude(key, stored, conclusion).await?;
        Ok(true)
    }

    /// A request that a bundle is to be issued for now, with its decision.
    async fn outstanding(
        &self,
        key: &RequestKey,
    ) -> Result<Option<(StoredRequest, RecordedDecision)>, Error> {
        let (key, now) = (key.clone(), self.now());
        let found = blocking(&self.store, move |store| {
            let stored = store
                .request(&key)?
                .filter(|stored| stored.standing.state == State::Decided && stored.issue.is_some());
            let Some(stored) = stored else {
                store.forget_issue(&key)?;
                return Ok(None);
            };
            if stored.standing.has_run_out(now) {
                store.expire(&key, &stored)?;
                return Ok(None);
            }
            let recorded = store.decision(&key.tenant, &stored.decision_id)?;
            Ok(Some((stored, recorded.ok_or(StoreError::Corrupt)?)))
        });
        match found.await {
            // Whoever was first has said what becomes of it.
            Err(StoreError::Conflict) => Ok(None),
            result => Ok(result?),
        }
    }

    async fn conclude(
        &self,
        key: &RequestKey,
        stored: StoredRequest,
        conclusion: Conclusion,
    ) -> Result<(), Error> {
        let of = key.clone();
        blocking(&self.store, move |store| {
            let mut read = stored;
            for _ in 0..ATTEMPTS {
                match store.conclude(&of, &read, &conclusion) {
                    Err(StoreError::Conflict) => {}
                    result => return result,
                }
                // Somebody stored the end of the decision, or the same conclusion.
                match store.request(&of)? {
                    Some(again) if again.standing.state == State::Decided => read = again,
                    Some(_) | None => return Ok(()),
                }
            }
            Err(StoreError::Conflict)
        })
        .await?;
        self.changes.announce(key);
        Ok(())
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }

    fn count(&self, result: &'static str) {
        self.calls.add(1, &[KeyValue::new("result", result)]);
    }
}

/// One call at a time for one request.
struct Asking<'a> {
    asked: &'a Mutex<HashSet<String>>,
    name: String,
}

impl<'a> Asking<'a> {
    fn start(asked: &'a Mutex<HashSet<String>>, key: &RequestKey) -> Option<Self> {
        let parts = [key.tenant.as_str(), key.principal.as_str(), key.id.as_str()];
        let name = parts.join("\0");
        let mut names = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = names.insert(name.clone());
        drop(names);
        // Not made in vain: the end of one forgets the name.
        is_first.then(|| Self { asked, name })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut names = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&self.name);
    }
}

fn message(
    key: &RequestKey,
    stored: &StoredRequest,
    recorded: RecordedDecision,
) -> Option<IssueBundleRequest> {
    let grant = recorded.grant?;
    let grant = SignedGrant {
        scope: grant.scope,
        plan: grant.plan,
    };
    Some(IssueBundleRequest {
        tenant: key.tenant.as_str().to_owned(),
        request: recorded.request,
        grant: Some(grant.to_message()),
        operation_id: stored.issue.as_ref()?.as_str().to_owned(),
    })
}
