//! A time that never goes back, also across a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cl_host::clock::Clock;
use cl_model::time::UnixTime;

/// The latest time that was seen. A clock that steps back stands still here, so that nothing that
/// ended by its time is alive again.
#[derive(Debug)]
pub(crate) struct HighWater {
    clock: Arc<dyn Clock>,
    latest_ms: AtomicI64,
}

impl HighWater {
    /// Starts at the time that was stored last.
    pub(crate) fn new(clock: Arc<dyn Clock>, stored: Option<UnixTime>) -> Self {
        let stored = stored.map_or(i64::MIN, UnixTime::milliseconds);
        Self {
            clock,
            latest_ms: AtomicI64::new(stored),
        }
    }

    pub(crate) fn now(&self) -> UnixTime {
        let now = self.clock.now_unix_ms();
        let before = self.latest_ms.fetch_max(now, Ordering::SeqCst);
        UnixTime::from_milliseconds(before.max(now))
    }
}

#[cfg(test)]
mod tests {
    use cl_host::clock::ManualClock;

    use super::*;

    #[test]
    fn stands_still_when_the_clock_steps_back() {
        let clock = ManualClock::new(1_000);
        let time = HighWater::new(Arc::new(clock.clone()), None);
        assert_eq!(time.now().milliseconds(), 1_000);
        clock.set(400);
        assert_eq!(time.now().milliseconds(), 1_000);
        clock.set(1_001);
        assert_eq!(time.now().milliseconds(), 1_001);
        let stored = Some(UnixTime::from_milliseconds(5_000));
        let restarted = HighWater::new(Arc::new(clock), stored);
        assert_eq!(restarted.now().milliseconds(), 5_000);
    }
}
