//! What operators see of an engine.

use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::engine::{Batch, Engine, Entry, Scan, Stored, Write};
use crate::error::Error;

/// Seconds; a sync takes from a tenth of a millisecond to a stalled disk's ten seconds.
const DURATION_BOUNDS: [f64; 12] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0,
];

/// An engine whose commits are counted and timed; of keys and values only sizes are seen.
#[derive(Debug)]
pub struct Metered<E> {
    engine: E,
    batches: Counter<u64>,
    bytes: Counter<u64>,
    failures: Counter<u64>,
    duration: Histogram<f64>,
}

impl<E: Engine> Metered<E> {
    /// Measures an engine.
    pub fn new(engine: E, meter: &Meter) -> Self {
        Self {
            engine,
            batches: meter
                .u64_counter("storage_batches")
                .with_description(
                    "Batches that were stored, by whether they had to be on the disk.",
                )
                .build(),
            bytes: meter
                .u64_counter("storage_written")
                .with_unit("By")
                .with_description("Keys and values in the batches that were stored.")
                .build(),
            failures: meter
                .u64_counter("storage_failures")
                .with_description("Batches that were not stored for a fault of the store.")
                .build(),
            duration: meter
                .f64_histogram("storage_commit_duration")
                .with_unit("s")
                .with_description("Time that callers waited for a commit.")
                .with_boundaries(DURATION_BOUNDS.to_vec())
                .build(),
        }
    }

    fn count(&self, seen: Seen, result: &Result<(), Error>) {
        match result {
            Ok(()) => {
                let labels = [KeyValue::new("synced", seen.is_synced)];
                self.batches.add(1, &labels);
                self.bytes.add(seen.bytes, &labels);
            }
            Err(Error::Conflict { .. } | Error::TooLarge(_)) => {}
            Err(_) => self.failures.add(1, &[]),
        }
    }
}

/// What is known of a batch before it is handed on.
#[derive(Clone, Copy)]
struct Seen {
    is_synced: bool,
    bytes: u64,
}

impl Seen {
    fn of(batch: &Batch) -> Self {
        Self {
            is_synced: batch.is_synced(),
            bytes: batch.writes().iter().map(Write::bytes).sum::<usize>() as u64,
        }
    }
}

impl<E: Engine> Engine for Metered<E> {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        self.engine.scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.apply_many(vec![batch]).into_iter().collect()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "measures a duration; nothing is decided by it"
    )]
    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        let seen: Vec<_> = batches.iter().map(Seen::of).collect();
        let start = Instant::now();
        let results = self.engine.apply_many(batches);
        self.duration.record(start.elapsed().as_secs_f64(), &[]);
        for (seen, result) in seen.into_iter().zip(&results) {
            self.count(seen, result);
        }
        results
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;
    use prometheus::{Registry, TextEncoder};

    use super::*;
    use crate::{Durability, Fault, MemoryEngine, Precondition, Version};

    const CANARY: &str = "canary-4711";

    #[test]
    fn counts_what_was_stored_and_shows_sizes_only() {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone());
        let provider = SdkMeterProvider::builder()
            .with_reader(exporter.build().unwrap())
            .build();
        let engine = Metered::new(MemoryEngine::new(), &provider.meter("test"));
        let put = || {
            let stored = Stored {
                version: Version::new([1; 16]),
                value: CANARY.into(),
            };
            Batch::new().put(CANARY, stored)
        };
        engine.apply(put()).unwrap();
        engine.apply(put().durability(Durability::Relaxed)).unwrap();
        engine
            .apply(put().require(CANARY, Precondition::Absent))
            .unwrap_err();
        engine.engine.plan(Fault::BeforePersist);
        engine.apply(put()).unwrap_err();
        engine.apply(put()).unwrap();

        let seen = TextEncoder::new()
            .encode_to_string(&registry.gather())
            .unwrap();
        let has = |name: &str, labels: &[&str], value: &str| {
            let mut lines = seen.lines().filter(|line| line.starts_with(name));
            let fits = |line: &str| {
                labels.iter().all(|label| line.contains(label)) && line.ends_with(value)
            };
            assert!(lines.any(fits), "{name} {labels:?} {value}: {seen}");
        };
        has("storage_batches_total", &[r#"synced="true""#], " 2");
        has("storage_batches_total", &[r#"synced="false""#], " 1");
        has("storage_written_bytes_total", &[r#"synced="true""#], " 44");
        has("storage_failures_total", &[], " 1");
        has("storage_commit_duration_seconds_count", &[], " 5");
        assert!(!seen.contains(CANARY));
    }
}
