//! Identifiers and random bytes, injected so that tests can repeat a run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::HEXLOWER;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use crate::clock::Clock;

/// A source of identifiers and random bytes.
pub trait Ids: fmt::Debug + Send + Sync {
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness>;

    /// A fresh UUIDv7 (RFC 9562). Each one sorts after every earlier one of the same source, also
    /// within a millisecond and when the clock steps back.
    fn uuid(&self) -> Result<Uuid, NoRandomness>;
}

/// The operating system gave no random bytes: nothing that needs an identifier may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes available")]
pub struct NoRandomness;

/// A UUID; prints in lower case with hyphens, ready for a URN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The sixteen bytes in network order.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e] = [
            &self.0[0..4],
            &self.0[4..6],
            &self.0[6..8],
            &self.0[8..10],
            &self.0[10..16],
        ]
        .map(|part| HEXLOWER.encode(part));
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

/// Identifiers from the operating system's randomness and a clock.
#[derive(Debug)]
pub struct SystemIds {
    random: SystemRandom,
    clock: Arc<dyn Clock>,
    sequence: Sequence,
}

impl SystemIds {
    /// Takes time from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            random: SystemRandom::new(),
            clock,
            sequence: Sequence::default(),
        }
    }
}

impl Ids for SystemIds {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.random.fill(bytes).map_err(|_| NoRandomness)
    }

    fn uuid(&self) -> Result<Uuid, NoRandomness> {
        let mut random = [0; 10];
        self.fill(&mut random)?;
        Ok(self.sequence.next(self.clock.now_unix_ms(), random))
    }
}

/// Repeatable identifiers for tests. **Predictable: never for a process that serves.**
#[derive(Debug)]
pub struct SeededIds {
    seed: u64,
    clock: Arc<dyn Clock>,
    drawn_blocks: Mutex<u64>,
    sequence: Sequence,
}

impl SeededIds {
    /// The same seed, clock and order of calls give the same values.
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            seed,
            clock,
            drawn_blocks: Mutex::new(0),
            sequence: Sequence::default(),
        }
    }
}

impl Ids for SeededIds {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        let mut drawn = self
            .drawn_blocks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(digest::SHA256_OUTPUT_LEN) {
            let mut context = digest::Context::new(&digest::SHA256);
            context.update(&self.seed.to_be_bytes());
            context.update(&drawn.to_be_bytes());
            *drawn += 1;
            let block = context.finish();
            chunk.copy_from_slice(&block.as_ref()[..chunk.len()]);
        }
        Ok(())
    }

    fn uuid(&self) -> Result<Uuid, NoRandomness> {
        let mut random = [0; 10];
        self.fill(&mut random)?;
        Ok(self.sequence.next(self.clock.now_unix_ms(), random))
    }
}

/// RFC 9562 section 6.2, method 1: `rand_a` is a counter that starts at a random value below half
/// of its range in every new millisecond, and borrows from the future when it is used up.
#[derive(Debug, Default)]
struct Sequence {
    last: Mutex<Option<(u64, u16)>>,
}

impl Sequence {
    fn next(&self, now_unix_ms: i64, random: [u8; 10]) -> Uuid {
        let now = u64::try_from(now_unix_ms).unwrap_or(0);
        let start = u16::from_be_bytes([random[0], random[1]]) & 0x07ff;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (ms, counter) = match *last {
            Some((ms, counter)) if now <= ms && counter < 0x0fff => (ms, counter + 1),
            Some((ms, _)) if now <= ms => (ms + 1, start),
            Some(_) | None => (now, start),
        };
        *last = Some((ms, counter));

        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(0x7000 | counter).to_be_bytes());
        bytes[8..].copy_from_slice(&random[2..]);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        Uuid(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::clock::{ManualClock, SystemClock};

    #[test]
    fn has_version_variant_and_time() {
        let ids = SeededIds::new(1, Arc::new(ManualClock::new(0x0123_4567_89ab)));
        let text = ids.uuid().unwrap().to_string();
        assert_eq!(&text[..15], "01234567-89ab-7");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
        assert_eq!(text.len(), 36);
    }

    #[test]
    fn stays_ordered_when_the_clock_stands_still_or_steps_back() {
        let clock = ManualClock::new(1_700_000_000_000);
        let ids = SeededIds::new(7, Arc::new(clock.clone()));
        let mut previous = ids.uuid().unwrap();
        for round in 0..20_000 {
            if round == 10_000 {
                clock.advance(-60_000);
            }
            let next = ids.uuid().unwrap();
            assert!(next > previous, "{next} after {previous}");
            previous = next;
        }
    }

    #[test]
    fn same_seed_repeats_and_another_differs() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(5));
        let draw = |seed| {
            let ids = SeededIds::new(seed, Arc::clone(&clock));
            let mut bytes = [0; 70];
            ids.fill(&mut bytes).unwrap();
            (bytes, ids.uuid().unwrap())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn threads_never_share_a_system_id() {
        let ids = SystemIds::new(Arc::new(SystemClock));
        let all: Vec<Uuid> = std::thread::scope(|scope| {
            let draws: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| (0..2_000).map(|_| ids.uuid().unwrap()).collect::<Vec<_>>())
                })
                .collect();
            draws
                .into_iter()
                .flat_map(|draw| draw.join().unwrap())
                .collect()
        });
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 8_000);
    }
}
