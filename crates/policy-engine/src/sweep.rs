//! Forgets decisions with their inputs, and operation ids, once they have been kept long enough.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::{Clock, SettledClock};
use cl_host::life::Shutdown;
use cl_model::time::UnixTime;

use crate::store::{Store, StoreError, blocking};

/// How many records are forgotten at a time.
const PAGE: usize = 128;

/// Sweeps the store until told to end.
pub(crate) struct Sweep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) interval: Duration,
    pub(crate) max_clock_step: Duration,
}

impl Sweep {
    /// Waits before the first pass, so that a clock that is wrong at the start can be set.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let settled = SettledClock::new(Arc::clone(&self.clock), None, self.max_clock_step);
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(self.interval) => {}
            }
            // The earlier of the two: what is forgotten cannot be had back.
            let clock = UnixTime::from_milliseconds(self.clock.now_unix_ms());
            let now = settled.read().settled.min(clock);
            if let Err(error) = self.pass(now).await {
                tracing::error!(%error, "what was kept long enough is not forgotten");
            }
        }
    }

    async fn pass(&self, now: UnixTime) -> Result<(), StoreError> {
        let swept = blocking(&self.store, move |store| {
            while store.sweep(now, PAGE)? == PAGE {}
            Ok(())
        });
        match swept.await {
            // Another replica was first; the next pass goes on.
            Err(StoreError::Conflict) => Ok(()),
            result => result,
        }
    }
}
