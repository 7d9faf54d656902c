//! The data folder: who owns it, what marks it, how the database in it is opened.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rocksdb::{BlockBasedOptions, DB, DBCompressionType, DBRecoveryMode, Options};

use super::classify;
use crate::error::{Damage, Error};

/// Taken by the process that owns the folder.
const LOCK: &str = "owner.lock";
/// Written once the folder holds a store.
const FORMAT: &str = "format";
const FORMAT_TEXT: &[u8] = b"cl-kv rocksdb 1\n";
const DATABASE: &str = "db";
const PROBE: &str = "probe";

/// Changes in memory before they move to a table. Also bounds the log that opening has to replay.
const WRITE_BUFFER_BYTES: usize = 16 << 20;
const MAX_LOG_BYTES: u64 = 64 << 20;
/// Tables of 64 MiB that are open at a time.
const MAX_OPEN_FILES: i32 = 4096;
/// Bits a key in the filters of tables: one in a hundred searches for an absent key is in vain.
const FILTER_BITS: f64 = 10.0;
/// What the filter of keys in memory may take of the write buffer.
const MEMORY_FILTER_SHARE: f64 = 0.05;
/// Room that opening needs beside the log it moves to tables.
const SPARE_BYTES: u64 = 1 << 20;

/// A data folder that this process owns.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked as long as it is open, so also while the database is closed and opened again.
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is not there, and takes it.
    pub(super) fn claim(path: &Path) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(classify_io)?;
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            sync_folder(parent)?;
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(classify_io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked),
            Err(TryLockError::Error(error)) => return Err(classify_io(error)),
        }
        let folder = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        // A process that was killed may have left its probe.
        folder.remove_probe().map_err(classify_io)?;
        Ok(folder)
    }

    /// Opens the database. A marked folder must already have one.
    pub(super) fn open_database(&self) -> Result<DB, Error> {
        self.open_database_with(&mut options())
    }

    pub(super) fn open_database_with(&self, options: &mut Options) -> Result<DB, Error> {
        let marked = self.is_marked()?;
        let path = self.path.join(DATABASE);
        if marked && !path.join("CURRENT").try_exists().map_err(classify_io)? {
            return Err(Error::Corrupt(Damage::Missing));
        }
        options.create_if_missing(!marked);
        DB::open(options, path).map_err(classify)
    }

    /// Notes that the folder holds a store, before anybody stores into it.
    pub(super) fn mark(&self) -> Result<(), Error> {
        if self.is_marked()? {
            return Ok(());
        }
        let draft = self.path.join("format.new");
        let mut file = File::create(&draft).map_err(classify_io)?;
        file.write_all(FORMAT_TEXT)
            .and_then(|()| file.sync_all())
            .map_err(classify_io)?;
        fs::rename(&draft, self.path.join(FORMAT)).map_err(classify_io)?;
        sync_folder(&self.path)
    }

    fn is_marked(&self) -> Result<bool, Error> {
        match fs::read(self.path.join(FORMAT)) {
            Ok(text) if text == FORMAT_TEXT => Ok(true),
            Ok(_) => Err(Error::Corrupt(Damage::Files)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(classify_io(error)),
        }
    }

    /// Fails while the disk has no room to open the database again.
    pub(super) fn probe_room(&self) -> Result<(), Error> {
        let needed = self.log_bytes().map_err(classify_io)? + SPARE_BYTES;
        let filled =
            File::create(self.path.join(PROBE)).and_then(|mut file| fill(&mut file, needed));
        let removed = self.remove_probe();
        filled.and(removed).map_err(classify_io)
    }

    fn remove_probe(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(PROBE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// The size of the write-ahead log, which opening may have to move to tables.
    fn log_bytes(&self) -> io::Result<u64> {
        let mut total = 0;
        for entry in fs::read_dir(self.path.join(DATABASE))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                total += path.metadata()?.len();
            }
        }
        Ok(total)
    }
}

pub(super) fn options() -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_max_total_wal_size(MAX_LOG_BYTES);
    // Most keys that are asked for are new ones: without filters each costs a search in every table.
    let mut tables = BlockBasedOptions::default();
    tables.set_bloom_filter(FILTER_BITS, false);
    options.set_block_based_table_factory(&tables);
    options.set_memtable_whole_key_filtering(true);
    options.set_memtable_prefix_bloom_ratio(MEMORY_FILTER_SHARE);
    // Only the log's end may be torn, as a crash leaves it: damage before it is an error, where the
    // default would quietly forget everything behind it.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    // A restart reads of each table what it needs when it needs it, not of all of them first.
    options.set_max_open_files(MAX_OPEN_FILES);
    options.set_skip_stats_update_on_db_open(true);
    options.set_keep_log_file_num(4);
    options.set_stats_dump_period_sec(0);
    options
}

fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    // A disk that compresses has room for any number of zeros, so the bytes vary.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut written = 0;
    while written < bytes {
        let mut block = Vec::with_capacity(1 << 16);
        while block.len() < block.capacity() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            block.extend_from_slice(&state.to_be_bytes());
        }
        file.write_all(&block)?;
        written += 1 << 16;
    }
    file.sync_all()
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(classify_io)
}

fn classify_io(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::StorageFull {
        return Error::Full;
    }
    Error::unavailable(error)
}
