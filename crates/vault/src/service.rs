//! The vault's calls, in order: what is read, what is checked, what is stored, what is receipted.

pub(crate) mod capture;
pub(crate) mod erase;
pub(crate) mod memory;
pub(crate) mod owner;
pub(crate) mod payload;
pub(crate) mod resolve;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_host::trust::Trust;
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::vocabulary::Vocabulary;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use tokio::sync::{Mutex, MutexGuard};

use crate::Deps;
use crate::core::content::Extractor;
use crate::core::evidence::Operation;
use crate::core::keys::Keys;
use crate::error::Error;
use crate::outbox::Outbox;
use crate::receipts::Receipts;
use crate::store::{Store, StoreError, StoredOperation, SubjectName, blocking};
use erase::Eraser;

/// How often a call reads again after somebody else was first.
const ATTEMPTS: usize = 8;

/// The vault.
pub(crate) struct Vault {
    store: Arc<Store>,
    receipts: Arc<dyn Receipts>,
    outbox: Arc<Outbox>,
    eraser: Arc<Eraser>,
    keys: Arc<Keys>,
    trust: Arc<Trust>,
    extractor: Arc<dyn Extractor>,
    vocabulary: Arc<Vocabulary>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    own: SpiffeId,
    turns: Turns,
    items: Counter<u64>,
    claims: Counter<u64>,
}

impl Vault {
    pub(crate) fn new(deps: Deps, outbox: Arc<Outbox>, eraser: Arc<Eraser>) -> Self {
        let counter = |name: &'static str, description: &'static str| {
            deps.meter
                .u64_counter(name)
                .with_description(description)
                .build()
        };
        Self {
            items: counter("vault_items", "Captured items, by what became of them."),
            claims: counter("vault_resolved_claims", "Claims that left under a grant."),
            store: deps.store,
            receipts: deps.receipts,
            outbox,
            eraser,
            keys: deps.keys,
            trust: deps.trust,
            extractor: deps.extractor,
            vocabulary: Arc::new(deps.vocabulary),
            clock: deps.clock,
            ids: deps.ids,
            own: deps.own,
            turns: Turns::default(),
        }
    }

    /// What an operation id was used for, once the receipt of that is durable. Other content under
    /// the same id is a conflict.
    async fn begun(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
        content: Digest,
    ) -> Result<Option<StoredOperation>, Error> {
        let (of_tenant, id) = (tenant.clone(), operation_id.clone());
        let used = blocking(&self.store, move |store| store.operation(&of_tenant, &id));
        match used.await? {
            None => Ok(None),
            Some(used) if used.content == content => {
                self.outbox.settle(tenant, operation_id).await?;
                Ok(Some(used))
            }
            Some(_) => Err(Error::OperationConflict),
        }
    }

    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), Error> {
        let answer = self.receipts.preflight(tenant, operation).await;
        answer.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "receipt preflight failed");
            Error::ReceiptStoreUnavailable
        })
    }

    /// Runs a change of one subject until nobody else was first.
    async fn change<T, F>(&self, name: &SubjectName, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&Store) -> Result<T, Error> + Send + Sync + 'static,
    {
        let _turn = self.turns.take(name).await;
        let change = Arc::new(change);
        for _ in 0..ATTEMPTS {
            let change = Arc::clone(&change);
            let attempt = blocking(&self.store, move |store| Ok(change(store)));
            match attempt.await? {
                Err(Error::Store(StoreError::Conflict)) => {}
                result => return result,
            }
        }
        Err(Error::InProgress)
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }

    fn count_items(&self, outcome: &'static str, number: usize) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        self.items.add(number, &[KeyValue::new("outcome", outcome)]);
    }
}

/// Lets writers to one subject come one after the other, so that they do not make each other
/// repeat their work. What is right does not depend on it: other processes know nothing of it.
struct Turns([Mutex<()>; Self::LANES]);

impl Turns {
    const LANES: usize = 64;

    async fn take(&self, name: &SubjectName) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let lanes = u64::try_from(Self::LANES).unwrap_or(1);
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or(0);
        match self.0.get(lane) {
            Some(lane) => Some(lane.lock().await),
            None => None,
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}
