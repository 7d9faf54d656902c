//! Receipts that are decided and not yet durable.

use std::sync::Arc;
use std::time::Duration;

use cl_host::life::Shutdown;
use cl_model::urn::CredentialId;
use opentelemetry::metrics::Counter;
use serde_json::Value;

use crate::Deps;
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::receipts::Receipts;
use crate::store::{OutboxEntry, Store, StoreError, blocking};

/// Time between two looks at the outbox.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause while the receipt store is away.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How many entries are read at a time.
const PAGE: usize = 64;

/// Writes the receipts that the store holds entries of, and then forgets the entries.
///
/// A crash at any point leaves the entry or nothing: before the append it is written later, after
/// the append it is written again, which the receipt store takes for the same.
pub(crate) struct Outbox {
    store: Arc<dyn Store>,
    receipts: Arc<dyn Receipts>,
    failures: Counter<u64>,
}

impl Outbox {
    pub(crate) fn new(deps: &Deps) -> Self {
        Self {
            store: Arc::clone(&deps.store),
            receipts: Arc::clone(&deps.receipts),
            failures: deps
                .meter
                .u64_counter("policy_receipt_failures")
                .with_description("Receipts that the receipt store did not confirm at once.")
                .build(),
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
            Some(entry) => self.deliver(entry).await,
        }
    }

    /// Makes sure that the receipts of everything that was done about a decision are durable.
    pub(crate) async fn settle_decision(
        &self,
        tenant: &TenantName,
        decision_id: &str,
    ) -> Result<(), Error> {
        self.settle_all(tenant, "/decision_ref", decision_id).await
    }

    /// Makes sure that the receipts of everything that was done about a credential are durable.
    pub(crate) async fn settle_credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
    ) -> Result<(), Error> {
        let member = "/metadata/credential_ref";
        self.settle_all(tenant, member, reference.as_str()).await
    }

    /// Settles the entries of a tenant whose members have a text at a place.
    async fn settle_all(&self, tenant: &TenantName, member: &str, text: &str) -> Result<(), Error> {
        let mut after = None;
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.outbox(from, PAGE)).await?;
            let ours = page.entries.into_iter();
            for entry in ours.filter(|entry| entry.tenant == *tenant) {
                let members: Value =
                    serde_json::from_slice(&entry.members).map_err(|_| StoreError::Corrupt)?;
                if members.pointer(member).and_then(Value::as_str) == Some(text) {
                    self.deliver(entry).await?;
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
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

    /// Writes a receipt and forgets its entry.
    pub(crate) async fn deliver(&self, entry: OutboxEntry) -> Result<(), Error> {
        if let Err(not_written) = self.receipts.append(&entry).await
            && !not_written.is_erased()
        {
            self.failures.add(1, &[]);
            tracing::warn!(
                operation_id = %entry.operation_id,
                code = ?not_written.code,
                reason = not_written.reason,
                "receipt not confirmed"
            );
            return Err(Error::Unsettled);
        }
        blocking(&self.store, move |store| store.settle(&entry)).await?;
        Ok(())
    }
}
