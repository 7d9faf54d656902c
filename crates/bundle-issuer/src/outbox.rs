//! Receipts that are decided and not yet durable, and what follows once they are.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::{Reading, SettledClock};
use cl_host::identity::SpiffeId;
use cl_host::life::Shutdown;
use cl_model::operation::{OperationId, TenantName};
use cl_model::urn::ReceiptId;
use cl_wire::unconfirmed::Unconfirmed;
use opentelemetry::metrics::Counter;

use crate::core::bundle::{Bundle, State, Times};
use crate::core::evidence::Writer;
use crate::error::Error;
use crate::receipts::Receipts;
use crate::store::{Change, Follow, OutboxEntry, Store, StoreError, Use, blocking};

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
    time: Arc<SettledClock>,
    times: Times,
    own: SpiffeId,
    failures: Counter<u64>,
}

impl Outbox {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        receipts: Arc<dyn Receipts>,
        time: Arc<SettledClock>,
        times: Times,
        own: SpiffeId,
        failures: Counter<u64>,
    ) -> Self {
        Self {
            store,
            receipts,
            time,
            times,
            own,
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
        let written = self.receipts.append(&entry).await;
        if written.as_ref().is_err_and(Unconfirmed::is_erased) {
            // Whoever it was about was erased meanwhile: the bundle takes no further step, and ends by
            // its time.
            return Ok(blocking(&self.store, move |store| store.settle(&entry)).await?);
        }
        let receipt = written.map_err(|not_written| {
            self.failures.add(1, &[]);
            tracing::warn!(
                operation_id = %entry.operation_id,
                code = ?not_written.code,
                reason = not_written.reason,
                "receipt not confirmed"
            );
            Error::ReceiptStoreUnavailable
        })?;
        let following = Following {
            times: self.times,
            time: self.time.read(),
            own: self.own.clone(),
            receipt,
        };
        let followed = blocking(&self.store, move |store| {
            for _ in 0..ATTEMPTS {
                match following.store(store, &entry) {
                    Err(StoreError::Conflict) => {}
                    result => return result,
                }
            }
            Err(StoreError::Conflict)
        });
        match followed.await? {
            true => Ok(()),
            false => Err(Error::ClockUnsettled),
        }
    }
}

/// What follows from a receipt that is durable.
struct Following {
    times: Times,
    time: Reading,
    own: SpiffeId,
    receipt: ReceiptId,
}

impl Following {
    /// Takes a bundle its step and forgets the entry, or says that only a settled clock can tell
    /// which step.
    ///
    /// A bundle that has ended before this step is not handed out, and a second receipt takes back
    /// what the first one says. Once the step is stored, its bytes may leave.
    fn store(&self, store: &dyn Store, entry: &OutboxEntry) -> Result<bool, StoreError> {
        let (id, before, after) = match &entry.follow {
            Follow::Nothing => return store.settle(entry).map(|()| true),
            Follow::Live(id) => (id, State::Pending, State::Live),
            Follow::Redeemed(id) => (id, State::Redeeming, State::Redeemed),
        };
        let outstanding = store.outstanding(&entry.tenant, &entry.operation_id)?;
        let Some(read) = store
            .bundle(&entry.tenant, id)?
            .filter(|_| outstanding.is_some())
        else {
            return store.settle(entry).map(|()| true);
        };
        let has_ended = after == State::Redeemed && read.bundle.has_run_out(self.time.now);
        let next = if read.bundle.state != before {
            read.bundle.clone()
        } else if has_ended && !read.bundle.has_run_out(self.time.settled) {
            return Ok(false);
        } else {
            let state = if has_ended { State::Expired } else { after };
            read.bundle.turned(state, &self.times, self.time.now)
        };
        let redemption = next.redemption.as_ref();
        let is_withheld =
            after == State::Redeemed && redemption.is_some_and(|redemption| redemption.is_withheld);
        if read.bundle.state != before && !is_withheld {
            return store.settle(entry).map(|()| true);
        }
        let correction = is_withheld.then(|| self.correction(&next, entry));
        let correction = correction.transpose()?;
        store.change(&Change {
            wipes: !next.needs_content(&self.times, self.time.settled),
            read: &read,
            next: &next,
            announces: correction.as_ref().map(|(entry, used)| (entry, *used)),
            settles: Some(entry),
        })?;
        Ok(true)
    }

    /// The receipt that a bundle was not handed out after all.
    fn correction(
        &self,
        bundle: &Bundle,
        delivery: &OutboxEntry,
    ) -> Result<(OutboxEntry, Use), StoreError> {
        let now = self.time.now;
        let operation_id = delivery.operation_id.following("withheld");
        let writer = Writer {
            own: self.own.as_str(),
            operation_id: &operation_id,
            now,
        };
        let members = writer.withheld(bundle, &self.receipt);
        let used = Use {
            content: bundle.digest,
            kept_until: operation_id.kept_until(now, self.times.retention_seconds),
        };
        let entry = OutboxEntry {
            members: members.map_err(|_| StoreError::Corrupt)?,
            follow: Follow::Nothing,
            operation_id,
            ..delivery.clone()
        };
        Ok((entry, used))
    }
}
