//! How old the policies in force are: for metrics and for probes of readiness.
//!
//! What is shown is of all tenants together and names none of them. A snapshot that has ended does
//! not make the process unready: every request of its tenant is denied for that reason, and those of
//! others are none of its business.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cl_host::admin::Detail;
use cl_host::clock::Clock;
use cl_host::life::Shutdown;
use cl_model::time::UnixTime;
use opentelemetry::metrics::Meter;
use tokio::sync::Notify;

use crate::store::settings::InForce;
use crate::store::{Store, StoreError, blocking};

/// How many activations are read at a time.
const PAGE: usize = 256;

/// The times of all snapshots in force, as this process has read them last.
pub(crate) struct Ages {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    read: Mutex<Vec<InForce>>,
    has_changed: Notify,
}

/// The ages at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// How many tenants have an active snapshot.
    active: u64,
    /// Those whose snapshot has ended.
    expired: u64,
    /// Seconds since the earliest activation that is in force.
    age_seconds: Option<u64>,
    /// Seconds until the next of the snapshots ends.
    ends_in_seconds: Option<u64>,
}

impl Summary {
    fn of(in_force: &[InForce], now: UnixTime) -> Self {
        let left = in_force.iter().filter_map(|times| times.until);
        let (ended, left): (Vec<_>, Vec<_>) = left.partition(|until| *until <= now);
        let since = in_force.iter().map(|times| times.since).min();
        let seconds = |from: UnixTime, to: UnixTime| {
            let span = to.milliseconds().saturating_sub(from.milliseconds());
            u64::try_from(span).unwrap_or(0) / 1000
        };
        Self {
            active: u64::try_from(in_force.len()).unwrap_or(u64::MAX),
            expired: u64::try_from(ended.len()).unwrap_or(u64::MAX),
            age_seconds: since.map(|since| seconds(since, now)),
            ends_in_seconds: left.into_iter().min().map(|until| seconds(now, until)),
        }
    }

    /// In one line.
    fn line(self) -> String {
        let Self {
            active, expired, ..
        } = self;
        let age = self.age_seconds;
        let age = age.map_or_else(String::new, |age| format!(", oldest active for {age} s"));
        let ends = self.ends_in_seconds;
        let ends = ends.map_or_else(String::new, |ends| format!(", next ends in {ends} s"));
        format!("policy snapshots: {active} active, {expired} expired{age}{ends}")
    }
}

impl Ages {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            read: Mutex::new(Vec::new()),
            has_changed: Notify::new(),
        })
    }

    /// Has the times read again soon.
    pub(crate) fn changed(&self) {
        self.has_changed.notify_one();
    }

    /// Reads the times now, after each change, and from time to time, until told to end.
    pub(crate) async fn run(self: Arc<Self>, interval: Duration, shutdown: Shutdown) {
        loop {
            if let Err(error) = self.pass().await {
                tracing::error!(%error, "the ages of policies are not read");
            }
            tokio::select! {
                () = shutdown.requested() => return,
                () = self.has_changed.notified() => {}
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    async fn pass(&self) -> Result<(), StoreError> {
        let read = blocking(&self.store, |store| {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let (page, next) = store.activations(after, PAGE)?;
                all.extend(page.into_iter().map(|active| active.times));
                after = next;
                if after.is_none() {
                    return Ok(all);
                }
            }
        });
        let read = read.await?;
        // Every change of it is whole.
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    fn summary(&self) -> Summary {
        let now = UnixTime::from_milliseconds(self.clock.now_unix_ms());
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        Summary::of(&read, now)
    }

    /// What probes of readiness are told.
    pub(crate) fn detail(self: &Arc<Self>) -> Detail {
        let ages = Arc::clone(self);
        Detail::new(move || ages.summary().line())
    }

    /// Has the ages measured.
    pub(crate) fn observe(self: &Arc<Self>, meter: &Meter) {
        type Value = fn(Summary) -> Option<u64>;
        let gauges: [(&'static str, &'static str, &'static str, Value); 4] = [
            (
                "policy_snapshots_active",
                "",
                "Tenants that have an active policy snapshot.",
                |summary| Some(summary.active),
            ),
            (
                "policy_snapshots_expired",
                "",
                "Tenants whose active policy snapshot has ended, so that all is denied.",
                |summary| Some(summary.expired),
            ),
            (
                "policy_snapshot_age",
                "s",
                "Time since the earliest activation that is in force.",
                |summary| summary.age_seconds,
            ),
            (
                "policy_snapshot_expires_in",
                "s",
                "Time until the next of the active policy snapshots ends.",
                |summary| summary.ends_in_seconds,
            ),
        ];
        for (name, unit, description, value) in gauges {
            let ages = Arc::clone(self);
            meter
                .u64_observable_gauge(name)
                .with_unit(unit)
                .with_description(description)
                .with_callback(move |gauge| {
                    if let Some(value) = value(ages.summary()) {
                        gauge.observe(value, &[]);
                    }
                })
                .build();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(since: i64, until: Option<i64>) -> InForce {
        InForce {
            since: UnixTime::from_milliseconds(since),
            until: until.map(UnixTime::from_milliseconds),
        }
    }

    #[test]
    fn ages_are_those_of_the_oldest_and_the_next_to_end() {
        let now = UnixTime::from_milliseconds(100_000);
        assert_eq!(Summary::of(&[], now), Summary::default());
        assert_eq!(
            Summary::default().line(),
            "policy snapshots: 0 active, 0 expired"
        );
        let all = [
            times(40_000, None),
            times(10_999, Some(130_000)),
            times(90_000, Some(120_000)),
            times(20_000, Some(100_000)),
        ];
        let summary = Summary::of(&all, now);
        assert_eq!((summary.active, summary.expired), (4, 1));
        assert_eq!(summary.age_seconds, Some(89));
        assert_eq!(summary.ends_in_seconds, Some(20));
        assert_eq!(
            summary.line(),
            "policy snapshots: 4 active, 1 expired, oldest active for 89 s, next ends in 20 s"
        );
        // A clock that has stepped back.
        let early = Summary::of(&all[..1], UnixTime::from_milliseconds(0));
        assert_eq!(early.age_seconds, Some(0));
    }
}
