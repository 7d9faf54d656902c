//! The contract of [`cl_kv::Engine`], as one suite that every engine passes.
#![cfg(test)]

mod concurrency;
mod laws;
mod model;

use cl_kv::{Batch, Engine, Error, MemoryEngine, Precondition, RocksEngine, Stored, Version};
use tempfile::TempDir;

/// An engine under test, and how it is started again on what it left.
trait Subject {
    type Engine: Engine;
    /// Cases of the model test: what the engine's speed allows.
    const CASES: u32;

    fn fresh() -> Self;
    fn engine(&self) -> &Self::Engine;
    fn reopen(self) -> Self;
}

struct Memory(MemoryEngine);

impl Subject for Memory {
    type Engine = MemoryEngine;
    const CASES: u32 = 256;

    fn fresh() -> Self {
        Self(MemoryEngine::new())
    }

    fn engine(&self) -> &MemoryEngine {
        &self.0
    }

    fn reopen(self) -> Self {
        self.0.crash();
        self
    }
}

struct Rocks {
    engine: RocksEngine,
    folder: TempDir,
}

impl Subject for Rocks {
    type Engine = RocksEngine;
    const CASES: u32 = 32;

    fn fresh() -> Self {
        let folder = TempDir::new().unwrap();
        let engine = RocksEngine::open(folder.path()).unwrap();
        Self { engine, folder }
    }

    fn engine(&self) -> &RocksEngine {
        &self.engine
    }

    fn reopen(self) -> Self {
        let Self { engine, folder } = self;
        drop(engine);
        let engine = RocksEngine::open(folder.path()).unwrap();
        Self { engine, folder }
    }
}

macro_rules! contract {
    ($engine:ident, $subject:ty) => {
        mod $engine {
            contract!(@laws $subject, laws:
                absent_keys_read_as_none_and_delete_as_ok,
                stores_values_of_every_size,
                absent_holds_only_for_absent_keys,
                unchanged_holds_only_for_the_same_version,
                a_conflict_names_the_lowest_and_stores_nothing,
                preconditions_judge_the_state_before_the_batch,
                the_last_write_to_a_key_counts,
                scans_are_ordered_and_keep_to_their_prefix,
                scans_start_where_asked_and_stop_at_their_limit,
                scans_of_extreme_prefixes_and_starts,
                refuses_what_is_over_a_limit,
                batches_sent_together_are_independent,
                batches_sent_together_see_earlier_ones,
                synced_batches_survive,
                relaxed_batches_survive_with_a_later_synced_one,
                a_purge_keeps_what_is_stored,
            );
            contract!(@laws $subject, concurrency:
                every_increment_counts_once,
                one_of_many_creators_wins,
                preconditions_on_keys_not_written_exclude,
                readers_see_whole_batches,
                groups_of_batches_keep_their_own_results,
            );
            contract!(@laws $subject, model: behaves_like_a_map,);
        }
    };
    (@laws $subject:ty, $module:ident: $($law:ident,)+) => {
        mod $module {
            $(
                #[test]
                fn $law() {
                    crate::$module::$law::<$subject>();
                }
            )+
        }
    };
}

contract!(memory, crate::Memory);
contract!(rocks, crate::Rocks);

fn version(number: u64) -> Version {
    Version::new(u128::from(number).to_be_bytes())
}

fn stored(number: u64, value: impl Into<Vec<u8>>) -> Stored {
    Stored {
        version: version(number),
        value: value.into(),
    }
}

fn unchanged(number: u64) -> Precondition {
    Precondition::Unchanged(version(number))
}

fn put(engine: &impl Engine, key: &str, number: u64) {
    engine
        .apply(Batch::new().put(key, stored(number, key)))
        .unwrap();
}

fn conflict(result: Result<(), Error>) -> usize {
    match result {
        Err(Error::Conflict { index }) => index,
        other => panic!("no conflict: {other:?}"),
    }
}
