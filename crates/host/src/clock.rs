//! Wall-clock time, injected so that tests decide what "now" is.

mod settled;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use self::settled::{Reading, SettledClock};

/// A source of wall-clock time.
///
/// Cores take `now` as an argument; only the shell of a process holds a `Clock`. Durations inside
/// one process are measured with `tokio::time`, never with this.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_unix_ms(&self) -> i64;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_unix_ms(&self) -> i64 {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where time enters the process"
        )]
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(after) => saturating_ms(after.as_millis()),
            Err(before) => -saturating_ms(before.duration().as_millis()),
        }
    }
}

fn saturating_ms(ms: u128) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A clock that moves only when told. Clones share the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now_unix_ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// Starts at `now_unix_ms`.
    pub fn new(now_unix_ms: i64) -> Self {
        Self {
            now_unix_ms: Arc::new(AtomicI64::new(now_unix_ms)),
        }
    }

    /// Jumps to `now_unix_ms`, also backwards.
    pub fn set(&self, now_unix_ms: i64) {
        self.now_unix_ms.store(now_unix_ms, Ordering::SeqCst);
    }

    /// Moves by `ms`, also backwards.
    pub fn advance(&self, ms: i64) {
        self.now_unix_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_unix_ms(&self) -> i64 {
        self.now_unix_ms.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_share_time() {
        let clock = ManualClock::new(1_000);
        let copy = clock.clone();
        clock.advance(500);
        assert_eq!(copy.now_unix_ms(), 1_500);
        copy.set(-1);
        assert_eq!(clock.now_unix_ms(), -1);
    }

    #[test]
    fn system_clock_is_past_2020() {
        assert!(SystemClock.now_unix_ms() > 1_577_836_800_000);
    }
}
