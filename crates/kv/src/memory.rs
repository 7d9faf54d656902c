use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::{Batch, Engine, Entry, Scan, Stored, Write};
use crate::error::Error;

/// An engine in memory, for tests of what is built on [`Engine`].
///
/// It keeps the whole contract, and fails on request. Clones are handles to the same store, so that
/// a test can drop a service and start it again on what it left.
#[derive(Clone, Debug, Default)]
pub struct MemoryEngine {
    state: Arc<Mutex<State>>,
}

/// How a batch of a [`MemoryEngine`] is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is stored, and the caller sees [`Error::Full`].
    Full,
    /// Nothing is stored, and the caller sees [`Error::Unavailable`].
    BeforePersist,
    /// The batch is stored, but the caller sees [`Error::Unavailable`].
    AfterPersist,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Vec<u8>, Stored>,
    /// What relaxed batches replaced since the last synced one, oldest first.
    undo: Vec<(Vec<u8>, Option<Stored>)>,
    faults: VecDeque<Fault>,
}

impl MemoryEngine {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a later batch fail: the next one whose preconditions hold, or the one after those for
    /// which a fault is already planned.
    pub fn plan(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// Stops the machine: relaxed batches that no synced one followed are gone.
    pub fn crash(&self) {
        let mut state = self.state();
        while let Some((key, before)) = state.undo.pop() {
            state.replace(key, before);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code of this module can panic between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        Ok(self.state().entries.get(key).cloned())
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        let state = self.state();
        Ok(keys
            .iter()
            .map(|key| state.entries.get(*key).cloned())
            .collect())
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        let (lower, upper) = (scan.lower(), scan.upper());
        if upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return Ok(Vec::new());
        }
        let range = (
            Bound::Included(lower),
            upper.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let state = self.state();
        let entries = state.entries.range(range).take(scan.limit());
        Ok(entries
            .map(|(key, stored)| Entry {
                key: key.clone(),
                stored: stored.clone(),
            })
            .collect())
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        batch.check_limits()?;
        let mut state = self.state();
        batch.check_requirements(|key| Ok(state.entries.get(key).map(|stored| stored.version)))?;
        match state.faults.pop_front() {
            None => state.persist(batch),
            Some(Fault::Full) => return Err(Error::Full),
            Some(Fault::BeforePersist) => return Err(injected()),
            Some(Fault::AfterPersist) => {
                state.persist(batch);
                return Err(injected());
            }
        }
        Ok(())
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        batches.into_iter().map(|batch| self.apply(batch)).collect()
    }

    /// Relaxed batches move to the files with it, as they do elsewhere.
    fn purge(&self) -> Result<(), Error> {
        self.state().undo.clear();
        Ok(())
    }
}

impl State {
    fn persist(&mut self, batch: Batch) {
        let synced = batch.is_synced();
        for write in batch.into_writes() {
            let (key, after) = match write {
                Write::Put { key, stored } => (key, Some(stored)),
                Write::Delete { key } => (key, None),
            };
            let before = self.replace(key.clone(), after);
            self.undo.push((key, before));
        }
        if synced {
            self.undo.clear();
        }
    }

    fn replace(&mut self, key: Vec<u8>, stored: Option<Stored>) -> Option<Stored> {
        match stored {
            Some(stored) => self.entries.insert(key, stored),
            None => self.entries.remove(&key),
        }
    }
}

fn injected() -> Error {
    Error::unavailable(io::Error::other("injected fault"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Durability, Version};

    #[test]
    fn a_crash_takes_what_was_relaxed_and_not_synced_since() {
        let engine = MemoryEngine::new();
        let put = |key: &str, number, durability| {
            let stored = Stored {
                version: Version::new([number; 16]),
                value: vec![number],
            };
            engine
                .apply(Batch::new().put(key, stored).durability(durability))
                .unwrap();
        };
        put("a", 1, Durability::Relaxed);
        put("b", 2, Durability::Synced);
        put("b", 3, Durability::Relaxed);
        put("b", 4, Durability::Relaxed);
        put("c", 5, Durability::Relaxed);
        engine.crash();
        let left = engine.scan(&Scan::new([], 9)).unwrap();
        let left: Vec<_> = left.iter().map(|entry| entry.stored.value[0]).collect();
        assert_eq!(left, [1, 2]);
    }
}
