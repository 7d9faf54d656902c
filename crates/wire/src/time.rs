//! Times between messages and the core.

use cl_model::time::UnixTime;
use prost_types::Timestamp;

const NANOS_PER_MILLISECOND: i32 = 1_000_000;
const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// The message of a time.
pub fn to_message(time: UnixTime) -> Timestamp {
    let milliseconds = time.milliseconds();
    // Below 1,000, so that it fits and the product does too.
    let rest = i32::try_from(milliseconds.rem_euclid(1000)).unwrap_or(0);
    Timestamp {
        seconds: milliseconds.div_euclid(1000),
        nanos: rest * NANOS_PER_MILLISECOND,
    }
}

/// The time of a message, cut to milliseconds; `None` if it is malformed.
pub fn read(message: &Timestamp) -> Option<UnixTime> {
    let is_within_second = (0..NANOS_PER_SECOND).contains(&message.nanos);
    let rest = i64::from(message.nanos / NANOS_PER_MILLISECOND);
    let milliseconds = message.seconds.saturating_mul(1000).saturating_add(rest);
    is_within_second.then(|| UnixTime::from_milliseconds(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        for milliseconds in [0, 1, -1, 999, -1000, 1_893_499_200_123] {
            let time = UnixTime::from_milliseconds(milliseconds);
            assert_eq!(read(&to_message(time)), Some(time));
        }
        for nanos in [-1, NANOS_PER_SECOND] {
            assert_eq!(read(&Timestamp { seconds: 0, nanos }), None);
        }
        let far = Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        };
        assert!(read(&far).is_some());
    }
}
