//! The local engine on RocksDB.

mod commit;
mod files;

use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use rocksdb::{
    BottommostLevelCompaction, CompactOptions, DB, Direction, ErrorKind, IteratorMode, ReadOptions,
};

use crate::engine::{Batch, Engine, Entry, Scan, Stored, Version};
use crate::error::{Damage, Error};
use commit::{Committer, Job};
use files::Folder;

/// The local engine, for one process on one machine.
///
/// A process owns its data folder, and a lock file refuses a second one with [`Error::Locked`], also
/// while the database is being opened again. Inside the process, writers queue behind one commit
/// lock; whoever holds it writes the batches of all who wait with one sync.
///
/// After a failed write RocksDB refuses every further one. The next `apply` therefore closes the
/// database and opens it again, once per call, and only when the disk has room for that; until then
/// the old handle serves reads. What the failed write left in the log is replayed or dropped as a
/// whole.
#[derive(Debug)]
pub struct RocksEngine {
    folder: Folder,
    /// `None` after an attempt to open the database again has failed.
    database: RwLock<Option<DB>>,
    /// Batches that wait for a committer. Locked for moments only.
    waiting: Mutex<Vec<Job>>,
    /// The right to commit. Locked before `database`.
    committer: Mutex<Committer>,
}

impl RocksEngine {
    /// Opens the store in a folder, and makes both when they are not there.
    ///
    /// A folder that held a store before, and whose database is gone, is refused with
    /// [`Damage::Missing`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Folder::claim(path)?;
        let database = folder.open_database()?;
        folder.mark()?;
        Ok(Self {
            folder,
            database: RwLock::new(Some(database)),
            waiting: Mutex::default(),
            committer: Mutex::default(),
        })
    }

    /// Reads from the database, after opening it again where that is needed.
    fn read<T>(&self, read: impl Fn(&DB) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(database) = &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            return read(database);
        }
        let mut committer = self
            .committer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.recover(&mut committer)?;
        drop(committer);
        match &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            Some(database) => read(database),
            // Another thread's write failed in between, and so did its attempt to recover.
            None => Err(Error::unavailable(commit::Closed)),
        }
    }
}

impl Engine for RocksEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.read(|database| {
            let record = database.get_pinned(key).map_err(classify)?;
            record.as_deref().map(decode).transpose()
        })
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.read(|database| {
            let snapshot = database.snapshot();
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                let record = snapshot.get_pinned(key).map_err(classify)?;
                found.push(record.as_deref().map(decode).transpose()?);
            }
            Ok(found)
        })
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        let (lower, upper) = (scan.lower(), scan.upper());
        self.read(|database| {
            let mut options = ReadOptions::default();
            if let Some(upper) = &upper {
                options.set_iterate_upper_bound(upper.as_slice());
            }
            // An iterator is a snapshot of its own.
            let mode = IteratorMode::From(&lower, Direction::Forward);
            let mut entries = Vec::new();
            for item in database.iterator_opt(mode, options).take(scan.limit()) {
                let (key, record) = item.map_err(classify)?;
                entries.push(Entry {
                    key: key.into_vec(),
                    stored: decode(&record)?,
                });
            }
            Ok(entries)
        })
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.apply_many(vec![batch]).into_iter().collect()
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        self.submit(batches)
    }

    fn purge(&self) -> Result<(), Error> {
        self.read(|database| {
            // The log's files go with the memory tables that they stand behind.
            database.flush().map_err(classify)?;
            let mut options = CompactOptions::default();
            // Also the lowest level, where deleted entries and their markers would stay.
            options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
            Ok(())
        })
    }
}

/// A record of the database: the version, then the value.
fn encode(stored: &Stored) -> Vec<u8> {
    [stored.version.as_bytes(), stored.value.as_slice()].concat()
}

fn decode(record: &[u8]) -> Result<Stored, Error> {
    let (version, value) = record
        .split_first_chunk()
        .ok_or(Error::Corrupt(Damage::Truncated))?;
    Ok(Stored {
        version: Version::new(*version),
        value: value.to_vec(),
    })
}

fn classify(error: rocksdb::Error) -> Error {
    // The bindings keep of RocksDB's sub-codes only their text.
    if error.as_ref().contains("No space left on device") {
        return Error::Full;
    }
    if error.kind() == ErrorKind::Corruption {
        return Error::Corrupt(Damage::Files);
    }
    Error::unavailable(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_record_without_a_version() {
        assert!(matches!(
            decode(&[0; 15]),
            Err(Error::Corrupt(Damage::Truncated))
        ));
        assert!(decode(&[0; 16]).is_ok());
    }
}
