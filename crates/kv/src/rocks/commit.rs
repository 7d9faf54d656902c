//! Group commit, and recovery from a failed write.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rocksdb::{DB, ErrorKind, WriteBatch, WriteOptions};

use super::files::Folder;
use super::{RocksEngine, classify, decode, encode};
use crate::engine::{Batch, Version, Write};
use crate::error::Error;

/// What only the committing thread may touch.
#[derive(Debug, Default)]
pub(super) struct Committer {
    /// A write failed: the database takes no further one until it is opened again.
    failed: bool,
}

/// Batches of one caller, and where their results go.
#[derive(Debug)]
pub(super) struct Job {
    batches: Vec<Batch>,
    outcome: Arc<Outcome>,
}

type Outcome = Mutex<Option<Vec<Result<(), Error>>>>;

/// For each caller, the results of its batches.
type Verdicts = Vec<Vec<Result<(), Error>>>;

/// The database is closed because it could not be opened again.
#[derive(Debug, thiserror::Error)]
#[error("the database is closed")]
pub(super) struct Closed;

/// Tables were not written in time to make room in memory.
#[derive(Debug, thiserror::Error)]
#[error("writes stall")]
struct Stalled;

/// How often, and with which pause, a write is tried while RocksDB is behind: 10 seconds in all.
const STALL_ATTEMPTS: u32 = 5000;
const STALL_PAUSE: Duration = Duration::from_millis(2);
const STALL_ATTEMPTS_PER_PROBE: u32 = 250;

impl RocksEngine {
    /// Queues batches, and commits the queue unless another thread already did.
    pub(super) fn submit(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        let count = batches.len();
        let outcome = Arc::new(Outcome::default());
        let job = Job {
            batches,
            outcome: Arc::clone(&outcome),
        };
        lock(&self.waiting).push(job);

        let mut committer = lock(&self.committer);
        if let Some(results) = lock(&outcome).take() {
            return results;
        }
        let jobs = mem::take(&mut *lock(&self.waiting));
        self.commit(&mut committer, jobs);
        // Only a committer that died on the way leaves no results.
        let results = lock(&outcome).take();
        results.unwrap_or_else(|| vec![Err(Error::unavailable(Closed)); count])
    }

    fn commit(&self, committer: &mut Committer, jobs: Vec<Job>) {
        let (outcomes, callers): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .map(|job| (job.outcome, job.batches))
            .unzip();
        let counts: Vec<_> = callers.iter().map(Vec::len).collect();
        let results = match self.write(committer, callers) {
            Ok(results) => results,
            Err(error) => (counts.into_iter())
                .map(|count| vec![Err(error.clone()); count])
                .collect(),
        };
        for (outcome, results) in outcomes.iter().zip(results) {
            *lock(outcome) = Some(results);
        }
    }

    /// Writes what its preconditions allow of every caller's batches.
    ///
    /// An error is the result of all of them. Also of those in conflict: it may have been with a
    /// batch of the group that is not stored now.
    fn write(
        &self,
        committer: &mut Committer,
        callers: Vec<Vec<Batch>>,
    ) -> Result<Verdicts, Error> {
        self.recover(committer)?;
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database
            .as_ref()
            .ok_or_else(|| Error::unavailable(Closed))?;
        let mut group = Group::new(database);
        let mut verdicts = Verdicts::with_capacity(callers.len());
        for batches in callers {
            verdicts.push(
                batches
                    .into_iter()
                    .map(|batch| group.admit(batch))
                    .collect(),
            );
        }
        // The commit point: before it nothing is stored, after it everything that was admitted.
        let written = group.write(&self.folder);
        committer.failed = written.is_err();
        written.map(|()| verdicts)
    }

    /// Opens the database again after a failure, in one attempt.
    pub(super) fn recover(&self, committer: &mut Committer) -> Result<(), Error> {
        let open = self
            .database
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some();
        if open && !committer.failed {
            return Ok(());
        }
        if open {
            // The failed handle still reads: keep it until a new one has room.
            self.folder.probe_room()?;
        }
        let mut database = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // The old handle closes before the new one opens: RocksDB allows one at a time.
        *database = None;
        *database = Some(self.folder.open_database()?);
        committer.failed = false;
        Ok(())
    }
}

/// No code under these locks leaves half a change behind, so a poisoned one is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches that are written together.
struct Group<'a> {
    database: &'a DB,
    pending: WriteBatch,
    /// The versions that keys have after the batches admitted so far.
    after: HashMap<Vec<u8>, Option<Version>>,
    synced: bool,
}

impl<'a> Group<'a> {
    fn new(database: &'a DB) -> Self {
        Self {
            database,
            pending: WriteBatch::default(),
            after: HashMap::new(),
            synced: false,
        }
    }

    /// Adds a batch, if its preconditions hold after those added before it.
    fn admit(&mut self, batch: Batch) -> Result<(), Error> {
        batch.check_limits()?;
        batch.check_requirements(|key| self.current(key))?;
        self.synced |= batch.is_synced();
        for write in batch.into_writes() {
            let version = write.version();
            let key = match write {
                Write::Put { key, stored } => {
                    self.pending.put(&key, encode(&stored));
                    key
                }
                Write::Delete { key } => {
                    self.pending.delete(&key);
                    key
                }
            };
            self.after.insert(key, version);
        }
        Ok(())
    }

    fn current(&self, key: &[u8]) -> Result<Option<Version>, Error> {
        if let Some(version) = self.after.get(key) {
            return Ok(*version);
        }
        let record = self.database.get_pinned(key).map_err(classify)?;
        let stored = record.as_deref().map(decode).transpose()?;
        Ok(stored.map(|stored| stored.version))
    }

    fn write(self, folder: &Folder) -> Result<(), Error> {
        if self.pending.is_empty() && !self.synced {
            return Ok(());
        }
        let mut options = WriteOptions::default();
        options.set_sync(self.synced);
        // RocksDB would let a write wait for tables to be written, on a full disk without end.
        options.set_no_slowdown(true);
        for attempt in 0..STALL_ATTEMPTS {
            let pending = WriteBatch::from_data(self.pending.data());
            match self.database.write_opt(pending, &options) {
                Err(error) if error.kind() == ErrorKind::Incomplete => {}
                result => return result.map_err(classify),
            }
            if attempt % STALL_ATTEMPTS_PER_PROBE == 0 {
                folder.probe_room()?;
            }
            thread::sleep(STALL_PAUSE);
        }
        Err(Error::unavailable(Stalled))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;

    use rocksdb::statistics::Ticker;
    use tempfile::TempDir;

    use super::super::files::options;
    use super::*;
    use crate::engine::{Durability, Engine, Stored};

    fn put(number: u32, durability: Durability) -> Batch {
        let stored = Stored {
            version: Version::new([1; 16]),
            value: vec![7; 100],
        };
        Batch::new()
            .put(number.to_be_bytes(), stored)
            .durability(durability)
    }

    #[test]
    fn batches_that_wait_share_one_sync() {
        let path = TempDir::new().unwrap();
        let folder = Folder::claim(path.path()).unwrap();
        let mut options = options();
        options.enable_statistics();
        let database = folder.open_database_with(&mut options).unwrap();
        let engine = RocksEngine {
            folder,
            database: RwLock::new(Some(database)),
            waiting: Mutex::default(),
            committer: Mutex::default(),
        };
        let syncs = || options.get_ticker_count(Ticker::WalFileSynced);

        engine.apply(put(0, Durability::Relaxed)).unwrap();
        assert_eq!(syncs(), 0);
        engine.apply(put(1, Durability::Synced)).unwrap();
        assert_eq!(syncs(), 1);
        let together = (0..50).map(|number| put(number, Durability::Synced));
        let results = engine.apply_many(together.collect());
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(syncs(), 2);

        // Who finds the committer busy waits, and goes with all others who wait.
        let engine = &engine;
        thread::scope(|scope| {
            let busy = lock(&engine.committer);
            for number in 0..8 {
                scope.spawn(move || engine.apply(put(number, Durability::Synced)).unwrap());
            }
            while lock(&engine.waiting).len() < 8 {
                thread::yield_now();
            }
            drop(busy);
        });
        assert_eq!(syncs(), 3);
    }
}
