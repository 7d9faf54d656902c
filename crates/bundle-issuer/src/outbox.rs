//! Receipts that are decided and not yet durable, and what follows once they are.

use std::sync::Arc;
use std::time::Duration;

use cl_host::life::Shutdown;
use cl_model::operation::{OperationId, TenantName};
use cl_model::urn::BundleId;
use opentelemetry::metrics::Counter;

use crate::clock::HighWater;
use crate::core::bundle::{State, Times};
use crate::error::Error;
use crate::receipts::Receipts;
use crate::store::{Change, Follow, OutboxEntry, Store, StoreError, blocking};

/// Time between two looks at the outbox.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause while the receipt store is away.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How many entries are read at a time.
const PAGE: usize = 64;

/// How often a change is tried again after somebody else was first.
const ATTEMPTS: usize = 8;

/// Writes the receipts that the store holds entries of, then stores what follows.
///
/// A crash at any point leaves the entry or nothing: before the append it is written later, after
/// the append it is written again, which the receipt store takes for the same.
pub(crate) struct Outbox {
    store: Arc<dyn Store>,
    receipts: Arc<dyn Receipts>,
    time: Arc<HighWater>,
    times: Times,
    failures: Counter<u64>,
}

impl Outbox {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        receipts: Arc<dyn Receipts>,
        time: Arc<HighWater>,
        times: Times,
        failures: Counter<u64>,
    ) -> Self {
        Self {
            store,
            receipts,
            time,
            times,
            failures,
        }
    }

    /// Makes sure that an operation's receipt is durable and that what follows is stored.
    pub(crate) async fn settle(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        let (tenant, operation_id) = (tenant.clone(), operation_id.clone());
        let outstanding = blocking(&self.store, move |store| {
            store.outstanding(&tenant, &operation_id)
        });
        match outstanding.await? {
            None => Ok(()),
            Some(entry) => self.deliver(entry).await,
        }
    }

    /// Settles what is left over, now and from time to time, until told to end.
    pub(crate) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let mut pause = PAUSE;
        while !shutdown.is_requested() {
            pause = match self.deliver_all().await {
                Ok(()) => PAUSE,
                Err(error) => {
                    if error.is_fault() {
                        tracing::error!(%error, "the outbox cannot be read or settled");
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

    /// Tries each entry once; one that fails does not keep the others back.
    async fn deliver_all(&self) -> Result<(), Error> {
        let mut after = None;
        let mut outcome = Ok(());
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.outbox(from, PAGE)).await?;
            for entry in page.entries {
                if let Err(error) = self.deliver(entry).await {
                    outcome = Err(error);
                }
            }
            after = page.next;
            if after.is_none() {
                return outcome;
            }
        }
    }

    async fn deliver(&self, entry: OutboxEntry) -> Result<(), Error> {
        if let Err(not_written) = self.receipts.append(&entry).await {
            self.failures.add(1, &[]);
            tracing::warn!(
                operation_id = %entry.operation_id,
                code = ?not_written.code,
                reason = not_written.reason,
                "receipt not confirmed"
            );
            return Err(Error::ReceiptStoreUnavailable);
        }
        let (times, now) = (self.times, self.time.now());
        blocking(&self.store, move |store| {
            for _ in 0..ATTEMPTS {
                let followed = match &entry.follow {
                    Follow::Nothing => store.settle(&entry),
                    Follow::Live(id) => {
                        let step = (State::Pending, State::Live);
                        follow(store, &entry, id, step, &times, now)
                    }
                    Follow::Redeemed(id) => {
                        let step = (State::Redeeming, State::Redeemed);
                        follow(store, &entry, id, step, &times, now)
                    }
                };
                match followed {
                    Err(StoreError::Conflict) => {}
                    result => return result,
                }
            }
            Err(StoreError::Conflict)
        })
        .await
    }
}

/// Takes a bundle its step, unless something else has happened to it meanwhile, and forgets the
/// entry.
fn follow(
    store: &dyn Store,
    entry: &OutboxEntry,
    id: &BundleId,
    (before, after): (State, State),
    times: &Times,
    now: cl_model::time::UnixTime,
) -> Result<(), StoreError> {
    let read = store.bundle(&entry.tenant, id)?;
    let Some(read) = read.filter(|read| read.bundle.state == before) else {
        return store.settle(entry);
    };
    let next = read.bundle.turned(after, times, now);
    store.change(&Change {
        wipes: !next.needs_content(times, now),
        read: &read,
        next: &next,
        announces: None,
        settles: Some(entry),
    })
}
