//! Time, injected so that tests decide what "now" is.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use cl_model::time::UnixTime;

/// A source of wall-clock time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> UnixTime;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixTime {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where time enters the library"
        )]
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        // A clock before 1970 is as wrong as one at the end of time, and the latter fails closed.
        let milliseconds = since_epoch.map_or(i64::MAX, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        });
        UnixTime::from_milliseconds(milliseconds)
    }
}
