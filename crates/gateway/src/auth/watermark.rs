//! Time that never runs back for tokens.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A step back of less than this is ordinary clock discipline and not worth a line in the log.
const STEP_MS: i64 = 1_000;

/// The moment by which tokens are judged, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

impl Moment {
    /// The moment this many milliseconds after the epoch.
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Self(unix_ms)
    }

    /// Milliseconds since the epoch.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }
}

/// Remembers the latest time that was seen, so that a clock that steps back does not revive what
/// was refused as expired. Shared by all calls; a restart forgets it.
#[derive(Debug)]
pub struct Watermark {
    highest_unix_ms: AtomicI64,
    is_behind: AtomicBool,
}

impl Watermark {
    /// Has seen nothing yet.
    pub const fn new() -> Self {
        Self {
            highest_unix_ms: AtomicI64::new(i64::MIN),
            is_behind: AtomicBool::new(false),
        }
    }

    /// Takes note of the clock, and tells the moment to judge by, and whether the clock just
    /// stepped back: once for each step, however many calls see it.
    pub fn observe(&self, now_unix_ms: i64) -> (Moment, bool) {
        let before = self
            .highest_unix_ms
            .fetch_max(now_unix_ms, Ordering::SeqCst);
        let highest = before.max(now_unix_ms);
        let is_behind = highest.saturating_sub(now_unix_ms) > STEP_MS;
        let was_behind = self.is_behind.swap(is_behind, Ordering::SeqCst);
        (Moment(highest), is_behind && !was_behind)
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_back_is_reported_once_and_changes_nothing() {
        let watermark = Watermark::new();
        assert_eq!(watermark.observe(10_000), (Moment(10_000), false));
        assert_eq!(watermark.observe(9_500), (Moment(10_000), false));
        assert_eq!(watermark.observe(1_000), (Moment(10_000), true));
        assert_eq!(watermark.observe(1_001), (Moment(10_000), false));
        assert_eq!(watermark.observe(12_000), (Moment(12_000), false));
        assert_eq!(watermark.observe(2_000), (Moment(12_000), true));
    }
}
