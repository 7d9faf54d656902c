//! What time does: bundles expire, their content goes, and at last all records.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::SettledClock;
use cl_host::life::Shutdown;
use cl_model::time::UnixTime;

use crate::core::bundle::{State, Times};
use crate::store::{Change, Due, Store, StoreError, StoredBundle, blocking};

/// How many records are looked at at a time.
const PAGE: usize = 128;

/// When a bundle is looked at again that its outbox still needs.
const PUT_OFF_SECONDS: u64 = 3600;

/// Looks at the bundles that are due, and stores the time, until told to end.
pub(crate) struct Sweep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<SettledClock>,
    pub(crate) times: Times,
    pub(crate) interval: Duration,
}

impl Sweep {
    pub(crate) async fn run(self, shutdown: Shutdown) {
        while !shutdown.is_requested() {
            if let Err(error) = self.pass().await {
                tracing::error!(%error, "bundles cannot be swept");
            }
            tokio::select! {
                () = shutdown.requested() => {}
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    /// Only by the settled time: what is forgotten cannot be had back.
    async fn pass(&self) -> Result<(), StoreError> {
        let (now, times) = (self.time.read().settled, self.times);
        blocking(&self.store, move |store| {
            store.raise(now)?;
            loop {
                let due = store.due(now, PAGE)?;
                for due in &due {
                    match look(store, due, &times, now) {
                        // Whoever was first has stored when the bundle is due next.
                        Ok(()) | Err(StoreError::Conflict) => {}
                        Err(error) => return Err(error),
                    }
                }
                if due.len() < PAGE {
                    break;
                }
            }
            while store.sweep(now, PAGE)? == PAGE {}
            Ok(())
        })
        .await
    }
}

fn look(store: &dyn Store, due: &Due, times: &Times, now: UnixTime) -> Result<(), StoreError> {
    match store.bundle(&due.tenant, &due.id)? {
        None => store.forget(due),
        Some(read) if read.bundle.has_run_out(now) => expire(store, &read, times, now),
        Some(read) if read.bundle.state.is_final() => {
            if read.bundle.removable_at(times) > now {
                return store_next(store, &read, read.bundle.state, times, now);
            }
            if is_delivery_outstanding(store, &read)? {
                // What its receipt says has to be taken back first, and only the bundle tells how.
                return put_off(store, &read, now);
            }
            store.remove(&read)
        }
        Some(read) => store_next(store, &read, read.bundle.state, times, now),
    }
}

fn is_delivery_outstanding(store: &dyn Store, read: &StoredBundle) -> Result<bool, StoreError> {
    let Some(redemption) = &read.bundle.redemption else {
        return Ok(false);
    };
    let outstanding = store.outstanding(&read.bundle.tenant, &redemption.operation_id)?;
    Ok(outstanding.is_some())
}

fn put_off(store: &dyn Store, read: &StoredBundle, now: UnixTime) -> Result<(), StoreError> {
    let mut next = read.bundle.clone();
    next.due = now.plus_seconds(PUT_OFF_SECONDS);
    store.change(&Change {
        wipes: true,
        read,
        next: &next,
        announces: None,
        settles: None,
    })
}

/// Stores that a bundle's time is over, and wipes its content.
pub(crate) fn expire(
    store: &dyn Store,
    read: &StoredBundle,
    times: &Times,
    now: UnixTime,
) -> Result<(), StoreError> {
    store_next(store, read, State::Expired, times, now)
}

fn store_next(
    store: &dyn Store,
    read: &StoredBundle,
    state: State,
    times: &Times,
    now: UnixTime,
) -> Result<(), StoreError> {
    let next = read.bundle.turned(state, times, now);
    store.change(&Change {
        wipes: !next.needs_content(times, now),
        read,
        next: &next,
        announces: None,
        settles: None,
    })
}
