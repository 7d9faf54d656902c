//! A candidate snapshot beside the active one: what it would have decided otherwise.
//!
//! A decision that is stored is looked at afterwards, by one task of the process, one decision after
//! the other. While that task is behind, decisions are passed over rather than kept waiting. Nothing
//! here can change, fail or delay an answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl_host::life::Shutdown;
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use tokio::sync::mpsc;

use crate::core::difference::Difference;
use crate::core::operation::TenantName;
use crate::error::Error;
use crate::service::PolicyEngine;
use crate::store::settings::Shadow;

/// How many decisions may wait to be looked at.
const QUEUE: usize = 256;

/// How many differences of a tenant are kept, the newest.
const MAX_DIFFERENCES: usize = 128;

/// Of how many tenants anything is kept.
const MAX_TENANTS: usize = 64;

/// A decision to look at.
pub(crate) struct Stored {
    tenant: TenantName,
    decision: DecisionId,
    shadow: Shadow,
}

/// Takes decisions in, and remembers what came of them.
pub(crate) struct Shadowing {
    queue: mpsc::Sender<Stored>,
    /// By tenant.
    seen: Mutex<BTreeMap<String, Seen>>,
    evaluations: Counter<u64>,
}

/// What this process has seen of one shadow.
#[derive(Clone)]
pub(crate) struct Seen {
    shadow: Shadow,
    /// Decisions that came out the same.
    pub(crate) equal: u64,
    /// Decisions that would be different.
    pub(crate) different: u64,
    /// The newest of those, newest first.
    pub(crate) differences: VecDeque<(DecisionId, UnixTime, Difference)>,
}

/// How looking at a decision ended.
#[derive(Clone, Copy)]
enum Outcome {
    Equal,
    Different,
    Failed,
    PassedOver,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Different => "different",
            Self::Failed => "failed",
            Self::PassedOver => "passed_over",
        }
    }
}

impl Shadowing {
    /// The one end, and the other one for [`run`].
    pub(crate) fn new(meter: &Meter) -> (Self, mpsc::Receiver<Stored>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let shadowing = Self {
            queue,
            seen: Mutex::new(BTreeMap::new()),
            evaluations: meter
                .u64_counter("policy_shadow_evaluations")
                .with_description("Decisions that a shadow looked at, by what came of it.")
                .build(),
        };
        (shadowing, waiting)
    }

    /// Has a decision looked at, if there is room for it.
    pub(crate) fn look(&self, tenant: &TenantName, decision: &DecisionId, shadow: &Shadow) {
        let stored = Stored {
            tenant: tenant.clone(),
            decision: decision.clone(),
            shadow: shadow.clone(),
        };
        if self.queue.try_send(stored).is_err() {
            self.count(Outcome::PassedOver);
        }
    }

    /// What was seen of a shadow since it was set, or since the process started.
    pub(crate) fn seen(&self, tenant: &TenantName, shadow: &Shadow) -> Seen {
        let seen = self.locked();
        let seen = seen.get(tenant.as_str());
        let seen = seen.filter(|seen| seen.shadow == *shadow);
        seen.cloned().unwrap_or_else(|| Seen::of(shadow))
    }

    fn count(&self, outcome: Outcome) {
        let outcome = KeyValue::new("outcome", outcome.as_str());
        self.evaluations.add(1, &[outcome]);
    }

    fn note(
        &self,
        tenant: &TenantName,
        shadow: &Shadow,
        difference: Option<(DecisionId, UnixTime, Difference)>,
    ) {
        let mut all = self.locked();
        if !all.contains_key(tenant.as_str()) && all.len() >= MAX_TENANTS {
            // The one that was set first has been looked through for the longest.
            let first = all.iter().min_by_key(|(_, seen)| seen.shadow.set_at);
            let first = first.map(|(tenant, _)| tenant.clone());
            first.and_then(|tenant| all.remove(&tenant));
        }
        let seen = all.entry(tenant.as_str().to_owned());
        let seen = seen.or_insert_with(|| Seen::of(shadow));
        if seen.shadow != *shadow {
            *seen = Seen::of(shadow);
        }
        match difference {
            None => seen.equal += 1,
            Some(difference) => {
                seen.different += 1;
                seen.differences.push_front(difference);
                seen.differences.truncate(MAX_DIFFERENCES);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        // Every change of it is whole.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn of(shadow: &Shadow) -> Self {
        Self {
            shadow: shadow.clone(),
            equal: 0,
            different: 0,
            differences: VecDeque::new(),
        }
    }
}

/// Looks at stored decisions until told to end.
pub(crate) async fn run(
    engine: Arc<PolicyEngine>,
    mut waiting: mpsc::Receiver<Stored>,
    shutdown: Shutdown,
) {
    loop {
        let stored = tokio::select! {
            () = shutdown.requested() => return,
            stored = waiting.recv() => stored,
        };
        let Some(stored) = stored else {
            return;
        };
        tokio::select! {
            () = shutdown.requested() => return,
            () = look_at(&engine, stored) => {}
        }
    }
}

async fn look_at(engine: &PolicyEngine, stored: Stored) {
    let shadowing = engine.shadowing();
    let Stored {
        tenant,
        decision,
        shadow,
    } = stored;
    match engine.beside(&tenant, &decision, &shadow).await {
        // The decision is forgotten already.
        Ok(None) => {}
        Ok(Some((_, None))) => {
            shadowing.count(Outcome::Equal);
            shadowing.note(&tenant, &shadow, None);
        }
        Ok(Some((decided_at, Some(difference)))) => {
            shadowing.count(Outcome::Different);
            tracing::info!(
                decision = decision.as_str(),
                active = difference.recorded.as_str(),
                shadow = difference.other.map(|state| state.as_str()),
                "the shadow decides otherwise"
            );
            let difference = (decision, decided_at, difference);
            shadowing.note(&tenant, &shadow, Some(difference));
        }
        Err(error) => {
            shadowing.count(Outcome::Failed);
            log_failure(&error);
        }
    }
}

fn log_failure(error: &Error) {
    if error.is_fault() {
        tracing::error!(%error, "a shadow could not look at a decision");
    } else {
        tracing::warn!(%error, "a shadow could not look at a decision");
    }
}
