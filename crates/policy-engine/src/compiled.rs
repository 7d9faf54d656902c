//! Snapshots that were read lately, so that a decision need not compile its policy again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cl_model::digest::Digest;

use crate::core::request::{ReadSnapshot, UnreadSnapshot};
use crate::store::StoreError;

/// How many snapshots are kept compiled, of all tenants together.
const MAX_KEPT: usize = 64;

/// Compiled snapshots by the digest of their bytes.
///
/// It is asked for the bytes with a digest and never answers for others, so it cannot make a decision
/// use a snapshot that is not the one it was given.
pub(crate) struct CompiledSnapshots(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_digest: HashMap<Digest, Entry>,
    uses: u64,
}

struct Entry {
    snapshot: Arc<ReadSnapshot>,
    last_use: u64,
}

impl CompiledSnapshots {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Kept::default()))
    }

    /// The snapshot with this digest, if it was read lately.
    pub(crate) fn known(&self, digest: Digest) -> Option<Arc<ReadSnapshot>> {
        self.kept().find(digest)
    }

    /// The snapshot of bytes that were checked when they were stored.
    pub(crate) fn read(&self, bytes: Vec<u8>) -> Result<Arc<ReadSnapshot>, StoreError> {
        self.check(bytes).map_err(|_| StoreError::Corrupt)
    }

    /// A snapshot that nobody has checked yet.
    pub(crate) fn check(&self, bytes: Vec<u8>) -> Result<Arc<ReadSnapshot>, UnreadSnapshot> {
        let digest = Digest::of_bytes(&bytes);
        if let Some(known) = self.kept().find(digest) {
            return Ok(known);
        }
        let read = Arc::new(ReadSnapshot::parse(bytes)?);
        self.kept().keep(digest, Arc::clone(&read));
        Ok(read)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Every change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, digest: Digest) -> Option<Arc<ReadSnapshot>> {
        self.uses += 1;
        let entry = self.by_digest.get_mut(&digest)?;
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.snapshot))
    }

    fn keep(&mut self, digest: Digest, snapshot: Arc<ReadSnapshot>) {
        let entry = Entry {
            snapshot,
            last_use: self.uses,
        };
        self.by_digest.insert(digest, entry);
        if self.by_digest.len() > MAX_KEPT {
            let entries = self.by_digest.iter();
            let oldest = entries.min_by_key(|(_, entry)| entry.last_use);
            if let Some(digest) = oldest.map(|(digest, _)| *digest) {
                self.by_digest.remove(&digest);
            }
        }
    }
}
