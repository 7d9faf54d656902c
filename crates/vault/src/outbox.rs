//! What is decided and not done everywhere: receipts, notices of deletions, erasures, sweeps.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::Clock;
use cl_host::life::Shutdown;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;

use crate::Deps;
use crate::error::Error;
use crate::notices::Notices;
use crate::receipts::Receipts;
use crate::service::erase::Eraser;
use crate::store::{Notice, OutboxEntry, Party, Store, StoreError, blocking};

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause while something is away.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How many entries are read at a time.
const PAGE: usize = 64;

/// Does what the store holds entries of, and then forgets the entries.
///
/// A crash at any point leaves the entry or nothing: what was not done is done later, what was done
/// and not forgotten is done again, which everybody here takes for the same.
pub(crate) struct Outbox {
    store: Arc<Store>,
    receipts: Arc<dyn Receipts>,
    notices: Arc<dyn Notices>,
    clock: Arc<dyn Clock>,
    receipt_failures: Counter<u64>,
    notice_failures: Counter<u64>,
}

impl Outbox {
    pub(crate) fn new(deps: &Deps) -> Self {
        let counter = |name: &'static str, description: &'static str| {
            deps.meter
                .u64_counter(name)
                .with_description(description)
                .build()
        };
        Self {
            store: Arc::clone(&deps.store),
            receipts: Arc::clone(&deps.receipts),
            notices: Arc::clone(&deps.notices),
            clock: Arc::clone(&deps.clock),
            receipt_failures: counter(
                "vault_receipt_failures",
                "Receipts that the receipt store did not confirm at once.",
            ),
            notice_failures: counter(
                "vault_notice_failures",
                "Notices of deletions that were not confirmed at once.",
            ),
        }
    }

    /// Makes sure that an operation's receipt is durable.
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
            Some(entry) => self.write(entry).await,
        }
    }

    /// Does what is left over, now and from time to time, until told to end.
    pub(crate) async fn run(self: Arc<Self>, eraser: Arc<Eraser>, shutdown: Shutdown) {
        let mut pause = PAUSE;
        while !shutdown.is_requested() {
            let outcomes = [
                eraser.finish_all().await,
                self.write_all().await,
                self.deliver_all().await,
                self.sweep_all().await,
            ];
            let mut is_done = true;
            for error in outcomes.into_iter().filter_map(Result::err) {
                is_done = false;
                if error.is_fault() {
                    tracing::error!(%error, "what is left over cannot be done");
                }
            }
            pause = if is_done {
                PAUSE
            } else {
                (pause * 2).min(MAX_PAUSE)
            };
            tokio::select! {
                () = shutdown.requested() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Tries each receipt once; one that fails does not keep the others back.
    async fn write_all(&self) -> Result<(), Error> {
        let mut after = None;
        let mut outcome = Ok(());
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.outbox(from, PAGE)).await?;
            for entry in page.entries {
                if let Err(error) = self.write(entry).await {
                    outcome = Err(error);
                }
            }
            after = page.next;
            if after.is_none() {
                return outcome;
            }
        }
    }

    async fn write(&self, entry: OutboxEntry) -> Result<(), Error> {
        if let Err(not_taken) = self.receipts.append(&entry).await
            && !not_taken.is_erased()
        {
            self.receipt_failures.add(1, &[]);
            tracing::warn!(
                operation_id = %entry.operation_id,
                code = ?not_taken.code,
                reason = not_taken.reason,
                "receipt not confirmed"
            );
            return Err(Error::Unsettled);
        }
        blocking(&self.store, move |store| store.settle(&entry)).await?;
        Ok(())
    }

    async fn deliver_all(&self) -> Result<(), Error> {
        let mut outcome = Ok(());
        let parties = Party::ALL.into_iter();
        for party in parties.filter(|party| self.notices.reaches(*party)) {
            if let Err(error) = self.deliver_to(party).await {
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn deliver_to(&self, party: Party) -> Result<(), Error> {
        let mut after = None;
        let mut outcome = Ok(());
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.notices(party, from, PAGE)).await?;
            for notice in page.notices {
                if let Err(error) = self.deliver(notice).await {
                    outcome = Err(error);
                }
            }
            after = page.next;
            if after.is_none() {
                return outcome;
            }
        }
    }

    async fn deliver(&self, notice: Notice) -> Result<(), Error> {
        if let Err(not_taken) = self.notices.deliver(&notice).await {
            let party = KeyValue::new("party", notice.party.as_str());
            self.notice_failures.add(1, &[party]);
            tracing::warn!(
                party = notice.party.as_str(),
                notice = notice.id,
                code = ?not_taken.code,
                reason = not_taken.reason,
                "notice of a deletion not confirmed"
            );
            return Err(Error::Unsettled);
        }
        blocking(&self.store, move |store| store.acknowledge(&notice)).await?;
        Ok(())
    }

    /// Drops what is due. What somebody else changes at the same time is tried again later.
    async fn sweep_all(&self) -> Result<(), Error> {
        let now = UnixTime::from_milliseconds(self.clock.now_unix_ms());
        loop {
            let due = blocking(&self.store, move |store| store.due(now, PAGE)).await?;
            if due.is_empty() {
                return Ok(());
            }
            for item in due {
                let swept = blocking(&self.store, move |store| store.sweep(&item)).await;
                match swept {
                    Err(Error::Store(StoreError::Conflict)) => return Ok(()),
                    result => result?,
                }
            }
        }
    }
}
