//! What time does: receipts whose retention has ended are erased, in bounded batches.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::SettledClock;
use cl_host::life::Shutdown;

use crate::committer::Commits;
use crate::core::command::{Answer, Command};
use crate::core::retention::Retention;
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::store::Store;

/// Looks for receipts whose retention has ended, until told to end.
pub(crate) struct Sweep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) commits: Commits,
    /// Only the settled time erases: what is gone cannot be had back.
    pub(crate) time: SettledClock,
    pub(crate) retention: Arc<Retention>,
    pub(crate) interval: Duration,
}

impl Sweep {
    pub(crate) async fn run(self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(self.interval) => {}
            }
            if let Err(error) = self.pass(&shutdown).await {
                tracing::error!(%error, "tenants cannot be listed, nothing is erased");
            }
        }
    }

    async fn pass(&self, shutdown: &Shutdown) -> Result<(), Error> {
        let settled = self.time.read().settled.milliseconds();
        let settled_ms = u64::try_from(settled).unwrap_or(0);
        let store = Arc::clone(&self.store);
        let tenants = tokio::task::spawn_blocking(move || store.tenants()).await;
        let tenants = tenants.unwrap_or(Err(Error::Internal("a read panicked")))?;
        for tenant in tenants {
            if shutdown.is_requested() {
                break;
            }
            // One that fails does not hold up the others, and is tried again in the next pass.
            if let Err(error) = self.sweep(tenant, settled_ms).await {
                tracing::warn!(%error, "receipts of a tenant are not erased");
            }
        }
        Ok(())
    }

    async fn sweep(&self, tenant: Tenant, settled_ms: u64) -> Result<(), Error> {
        loop {
            let command = Command::Sweep {
                tenant: tenant.clone(),
                settled_ms,
                retention: Arc::clone(&self.retention),
            };
            let answer = self.commits.submit(command).await?;
            if !matches!(answer, Answer::Erased(erased) if erased.next.is_some()) {
                return Ok(());
            }
        }
    }
}
