//! A time that never goes back, and that does not believe a jump ahead until it has lasted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cl_model::time::UnixTime;
use tokio::time::Instant;

use super::Clock;

/// A clock for what ends by its time, and for what is deleted after it.
///
/// Backwards: the latest settled time is kept, so that nothing that ended is alive again; a clock
/// that steps back stands still. A service that stores [`Reading::settled`] and begins with what it
/// stored is safe across a restart too.
///
/// Forwards: a reading that is more than `max_step` ahead of the time that has passed in this
/// process is a jump. It counts once the clock has run on from there for as long as `max_step`;
/// until then [`Reading::settled`] goes on as if it had not happened. A jump that is taken back
/// leaves no trace. At a start, the time since the stored one is a jump too, but for
/// [`Reading::is_believed`]: how long a process was away, the clock alone knows.
#[derive(Debug)]
pub struct SettledClock {
    clock: Arc<dyn Clock>,
    max_step: Duration,
    state: Mutex<State>,
}

/// One look at a [`SettledClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// By the clock, never before `settled`.
    pub now: UnixTime,
    /// What counts for good: all of it has passed.
    pub settled: UnixTime,
    /// Whether `now` is good for what is made and can be taken back: both times are the same, or
    /// differ by the time before the start.
    pub is_believed: bool,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The latest settled time.
    latest_ms: i64,
    /// When that was.
    seen: Instant,
    /// A jump that has not lasted yet.
    jump: Option<Jump>,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    to_ms: i64,
    seen: Instant,
    /// It happened before the start.
    is_first: bool,
}

impl SettledClock {
    /// Begins at the time that was stored last, or else at the clock's.
    pub fn new(clock: Arc<dyn Clock>, stored: Option<UnixTime>, max_step: Duration) -> Self {
        let now_ms = clock.now_unix_ms();
        let seen = Instant::now();
        let state = State {
            latest_ms: stored.map_or(now_ms, UnixTime::milliseconds),
            seen,
            jump: Some(Jump {
                to_ms: now_ms,
                seen,
                is_first: true,
            }),
        };
        Self {
            clock,
            max_step,
            state: Mutex::new(state),
        }
    }

    /// Reads the clock.
    pub fn read(&self) -> Reading {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock_ms, instant) = (self.clock.now_unix_ms(), Instant::now());
        let (now_ms, settled_ms) = state.step(clock_ms, instant, self.max_step);
        Reading {
            now: UnixTime::from_milliseconds(now_ms),
            settled: UnixTime::from_milliseconds(settled_ms),
            is_believed: state.jump.is_none_or(|jump| jump.is_first),
        }
    }
}

impl State {
    fn step(&mut self, clock_ms: i64, instant: Instant, max_step: Duration) -> (i64, i64) {
        let step_ms = milliseconds(max_step);
        let expected_ms = self.latest_ms.saturating_add(since(self.seen, instant));
        if clock_ms > expected_ms.saturating_add(step_ms) {
            let jump = self.jump.filter(|jump| {
                let runs_on_ms = jump.to_ms.saturating_add(since(jump.seen, instant));
                clock_ms.abs_diff(runs_on_ms) <= step_ms.unsigned_abs()
            });
            let jump = *self.jump.insert(jump.unwrap_or(Jump {
                to_ms: clock_ms,
                seen: instant,
                is_first: false,
            }));
            if since(jump.seen, instant) < step_ms {
                (self.latest_ms, self.seen) = (expected_ms, instant);
                return (clock_ms, expected_ms);
            }
        }
        let latest_ms = self.latest_ms.max(clock_ms);
        *self = Self {
            latest_ms,
            seen: instant,
            jump: None,
        };
        (latest_ms, latest_ms)
    }
}

fn since(before: Instant, now: Instant) -> i64 {
    milliseconds(now.saturating_duration_since(before))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::ManualClock;
    use super::*;

    const STEP: Duration = Duration::from_secs(60);
    const HOUR_MS: i64 = 3_600_000;

    fn clocks(now_ms: i64, stored: Option<i64>) -> (ManualClock, SettledClock) {
        let clock = ManualClock::new(now_ms);
        let stored = stored.map(UnixTime::from_milliseconds);
        let settled = SettledClock::new(Arc::new(clock.clone()), stored, STEP);
        (clock, settled)
    }

    fn read(settled: &SettledClock) -> (i64, i64) {
        let reading = settled.read();
        (reading.now.milliseconds(), reading.settled.milliseconds())
    }

    /// Lets time pass, for the clock too.
    async fn pass(clock: &ManualClock, seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        clock.advance(i64::try_from(seconds).unwrap() * 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn stands_still_when_the_clock_steps_back() {
        let (clock, settled) = clocks(HOUR_MS, None);
        assert_eq!(read(&settled), (HOUR_MS, HOUR_MS));
        clock.set(400);
        assert_eq!(read(&settled), (HOUR_MS, HOUR_MS));
        clock.set(HOUR_MS + 1);
        assert_eq!(read(&settled), (HOUR_MS + 1, HOUR_MS + 1));
    }

    #[tokio::test(start_paused = true)]
    async fn small_steps_and_passing_time_settle_at_once() {
        let (clock, settled) = clocks(0, None);
        read(&settled);
        clock.advance(60_000);
        assert_eq!(read(&settled), (60_000, 60_000));
        pass(&clock, 7200).await;
        assert_eq!(read(&settled), (7_260_000, 7_260_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_that_is_taken_back_leaves_no_trace() {
        let (clock, settled) = clocks(0, None);
        read(&settled);
        clock.advance(HOUR_MS);
        assert_eq!(read(&settled), (HOUR_MS, 0));
        pass(&clock, 59).await;
        assert_eq!(read(&settled), (HOUR_MS + 59_000, 59_000));
        clock.advance(-HOUR_MS - 50_000);
        assert_eq!(read(&settled), (59_000, 59_000));
        clock.advance(50_000);
        // Another jump has to last from its own beginning.
        clock.advance(HOUR_MS);
        pass(&clock, 2).await;
        assert_eq!(read(&settled).1, 61_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_that_lasts_settles() {
        let (clock, settled) = clocks(0, None);
        read(&settled);
        clock.advance(HOUR_MS);
        read(&settled);
        pass(&clock, 30).await;
        // A second jump on top of it begins anew.
        clock.advance(HOUR_MS);
        assert_eq!(read(&settled).1, 30_000);
        pass(&clock, 59).await;
        assert!(!settled.read().is_believed);
        pass(&clock, 1).await;
        let now = 2 * HOUR_MS + 90_000;
        assert_eq!(read(&settled), (now, now));
        clock.set(0);
        assert_eq!(read(&settled), (now, now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_believes_the_clock_for_what_is_made_and_ends_nothing_at_once() {
        let (clock, settled) = clocks(HOUR_MS, Some(1000));
        assert_eq!(read(&settled), (HOUR_MS, 1000));
        assert!(settled.read().is_believed);
        clock.advance(HOUR_MS);
        assert!(!settled.read().is_believed);
        clock.advance(-HOUR_MS);
        pass(&clock, 60).await;
        assert_eq!(read(&settled).1, 61_000);
        pass(&clock, 60).await;
        let now = HOUR_MS + 120_000;
        assert_eq!(read(&settled), (now, now));

        let (_, settled) = clocks(1000, Some(HOUR_MS));
        assert_eq!(read(&settled), (HOUR_MS, HOUR_MS));
    }
}
