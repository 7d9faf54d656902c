//! Where a log is read from: the store, or an exported folder.

use cl_model::log::LogState;
use cl_tlog::{Entry, HASH_BYTES, ProofFile, Tile, TilePath};

use super::fault::{Place, Why};
use super::folder::{Folder, LINES};
use super::kept::Kept;
use super::keys::LogKeys;
use super::store::StoreLog;
use crate::error::Error;

/// The longest file of a log that is read: a checkpoint, or the entries beside a full tile.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 20;

/// What is there for an entry, and its proof where the source has one.
pub(crate) type Given = (Kept, Option<ProofFile>);

/// A log to read, whose receipts come in order. Nothing that it gives is believed.
#[derive(Debug)]
pub(crate) enum Source {
    /// The receipt store.
    Store(Box<StoreLog>),
    /// An exported folder.
    Folder(Box<Folder>),
}

impl Source {
    /// The checkpoint; none if there is no log.
    pub(crate) async fn checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        self.file("checkpoint").await
    }

    /// The hashes of a tile, exactly as many as it has.
    pub(crate) async fn hashes(&self, tile: Tile) -> Result<Vec<u8>, Error> {
        let path = TilePath::Hashes(tile);
        let (mut bytes, is_full) = self.tile(path, TilePath::Hashes(tile.full())).await?;
        let length = usize::from(tile.width()) * HASH_BYTES;
        if is_full {
            bytes.truncate(length);
        }
        if bytes.len() != length {
            return Err(Place::Tile(path).is(Why::TileMalformed).into());
        }
        Ok(bytes)
    }

    /// The entries beside a tile of level 0, exactly as many as it has, as a bundle.
    pub(crate) async fn bundle(&self, tile: Tile) -> Result<Vec<u8>, Error> {
        let path = TilePath::Entries(tile);
        let (bytes, is_full) = self.tile(path, TilePath::Entries(tile.full())).await?;
        let cut = || {
            let mut entries = Entry::parse_bundle(&bytes)?;
            if is_full {
                entries.truncate(tile.width().into());
            }
            let is_exact = entries.len() == usize::from(tile.width());
            is_exact.then(|| Entry::write_bundle(&entries)).transpose()
        };
        let cut = cut().ok().flatten();
        cut.ok_or_else(|| Place::Tile(path).is(Why::TileMalformed).into())
    }

    /// A file, or the full one that has taken the place of a partial one; whether it is that one.
    async fn tile(&self, path: TilePath, full: TilePath) -> Result<(Vec<u8>, bool), Error> {
        if let Some(bytes) = self.file(&path.to_string()).await? {
            return Ok((bytes, false));
        }
        let bytes = self.file(&full.to_string()).await?;
        let bytes = bytes.ok_or_else(|| Place::Tile(path).is(Why::FileMissing))?;
        Ok((bytes, true))
    }

    async fn file(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Self::Store(store) => store.file(path).await,
            Self::Folder(folder) => folder.file(path),
        }
    }

    /// The next receipts, fewer if there are no more.
    pub(crate) async fn receipts(&mut self, count: usize) -> Result<Vec<Given>, Error> {
        match self {
            Self::Store(store) => store.receipts(count).await,
            Self::Folder(folder) => folder.receipts(count),
        }
    }

    /// Where the receipt of an entry is.
    pub(crate) fn place(&self, sequence: u64) -> Place {
        match self {
            Self::Store(_) => Place::Entry(sequence),
            Self::Folder(_) => Place::Line(LINES.to_owned(), sequence),
        }
    }

    /// Compares the next line of the portable log, where the source has one.
    pub(crate) fn check_portable(&mut self, line: &str) -> Result<(), Error> {
        match self {
            Self::Store(_) => Ok(()),
            Self::Folder(folder) => folder.check_portable(line),
        }
    }

    /// Checks what there is beside the entries, which all were read and make this portable log.
    pub(crate) fn finish(&mut self, keys: &LogKeys, portable: &LogState) -> Result<(), Error> {
        match self {
            // What was recorded since is not in the checkpoint.
            Self::Store(_) => Ok(()),
            Self::Folder(folder) => folder.finish(keys, portable),
        }
    }
}
