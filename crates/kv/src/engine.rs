use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::{Error, Limit};

/// Longest key an engine takes.
pub const MAX_KEY_BYTES: usize = 1024;
/// Longest value an engine takes.
pub const MAX_VALUE_BYTES: usize = 16 << 20;
/// Most bytes of keys and values in one batch.
pub const MAX_BATCH_BYTES: usize = 64 << 20;

/// An ordered key-value store with atomic, preconditioned batches.
///
/// **Durable when?** When [`apply`](Self::apply) has returned `Ok`, the batch survives the end of the
/// process and of the machine. A batch with [`Durability::Relaxed`] may be lost when the machine
/// stops, until a later synced batch returns `Ok`. Batches are never lost out of order.
///
/// **Consistent how?** A batch is all or nothing, for readers and for crashes. Each call reads one
/// moment: [`get_many`](Self::get_many) and [`scan`](Self::scan) never see half a batch. Two calls
/// read two moments; who needs more states what was read as preconditions. Preconditions are judged
/// against the state right before the batch and hold when it takes effect: batches that share a key
/// in their preconditions and writes are serialised, whichever thread or replica sends them.
/// Nothing else excludes writers from each other. A read may show a batch whose `apply` has not
/// returned yet, but only once that batch is as durable as it asked for.
///
/// **Who retries?** The caller. The engine retries nothing: [`Error::Conflict`] asks for another
/// read first, [`Error::Full`] and [`Error::Unavailable`] for the same batch again, later. An engine
/// comes back by itself when the cause has gone.
///
/// **What if absent?** A key that is not there reads as `None`, deletes as `Ok`, and fails
/// [`Precondition::Unchanged`].
pub trait Engine: Send + Sync {
    /// What is stored under a key.
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error>;

    /// What is stored under each key, all at one moment, in the order asked.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error>;

    /// The entries in a range, in the order of their keys, all at one moment.
    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error>;

    /// Stores a batch, if its preconditions hold.
    fn apply(&self, batch: Batch) -> Result<(), Error>;

    /// Stores independent batches as if by [`apply`](Self::apply), in order, at the price of one sync.
    ///
    /// Each has its own result; one that fails leaves the others alone. A later batch sees the
    /// effects of an earlier one.
    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>>;

    /// Drops from the engine's own files what was deleted or replaced before the call.
    ///
    /// Without it, an engine drops old contents when it likes. It costs a rewrite of the whole
    /// store, so it is for small ones. The disk underneath may keep what the files no longer hold.
    fn purge(&self) -> Result<(), Error>;
}

/// An engine behind a pointer, such as one that is chosen when the process starts.
impl<E: Engine + ?Sized> Engine for Arc<E> {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        (**self).get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        (**self).get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        (**self).scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        (**self).apply(batch)
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        (**self).apply_many(batches)
    }

    fn purge(&self) -> Result<(), Error> {
        (**self).purge()
    }
}

/// Names one writing of a value: what [`Precondition::Unchanged`] compares.
///
/// The writer chooses it. Contents that mean something else need another version, also after the
/// key was deleted and made again, so [`Sealed`](crate::Sealed) draws it at random; contents that
/// only look different, such as a value sealed under a new key, keep it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version([u8; Self::BYTES]);

impl Version {
    /// Length of a version.
    pub const BYTES: usize = 16;

    /// The version with these bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({:032x})", u128::from_be_bytes(self.0))
    }
}

/// A value as an engine keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Which writing this is.
    pub version: Version,
    /// The value, opaque to the engine.
    pub value: Vec<u8>,
}

/// A key and what is stored under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// What it holds.
    pub stored: Stored,
}

/// What must be true of a key for a batch to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing is stored under the key.
    Absent,
    /// The key holds this version.
    Unchanged(Version),
}

impl Precondition {
    /// Whether it holds for a key with this version.
    pub(crate) fn holds(self, current: Option<Version>) -> bool {
        match self {
            Self::Absent => current.is_none(),
            Self::Unchanged(version) => current == Some(version),
        }
    }
}

/// A precondition and the key it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The key; the batch need not write it.
    pub key: Vec<u8>,
    /// What must be true of it.
    pub precondition: Precondition,
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Stores a value, over what was there.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The new contents.
        stored: Stored,
    },
    /// Removes a key and what it holds.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

impl Write {
    /// The key it changes.
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    /// How many bytes key and value have.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put { key, stored } => key.len() + stored.value.len(),
            Self::Delete { key } => key.len(),
        }
    }

    /// The version the key has afterwards.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::Put { stored, .. } => Some(stored.version),
            Self::Delete { .. } => None,
        }
    }
}

/// When a batch counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk.
    #[default]
    Synced,
    /// It is with the operating system: what a process can afford to lose when the machine stops.
    Relaxed,
}

/// Changes that are stored together, and what must be true for that.
///
/// Of several writes to one key the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    requirements: Vec<Requirement>,
    writes: Vec<Write>,
    durability: Durability,
}

impl Batch {
    /// A batch without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a precondition.
    #[must_use]
    pub fn require(mut self, key: impl Into<Vec<u8>>, precondition: Precondition) -> Self {
        self.requirements.push(Requirement {
            key: key.into(),
            precondition,
        });
        self
    }

    /// Adds a value to store.
    #[must_use]
    pub fn put(mut self, key: impl Into<Vec<u8>>, stored: Stored) -> Self {
        self.writes.push(Write::Put {
            key: key.into(),
            stored,
        });
        self
    }

    /// Adds a key to remove.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    /// Sets when the batch counts as stored; [`Durability::Synced`] unless said otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The preconditions, in the order they were added.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The changes, in the order they were added.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Whether the batch must be on the disk.
    pub fn is_synced(&self) -> bool {
        self.durability == Durability::Synced
    }

    pub(crate) fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// Refuses what is over a limit.
    pub(crate) fn check_limits(&self) -> Result<(), Error> {
        let mut total = 0;
        for requirement in &self.requirements {
            check_key(&requirement.key)?;
            total += requirement.key.len();
        }
        for write in &self.writes {
            check_key(write.key())?;
            if let Write::Put { stored, .. } = write
                && stored.value.len() > MAX_VALUE_BYTES
            {
                return Err(Error::TooLarge(Limit::Value));
            }
            total += write.bytes();
        }
        if total > MAX_BATCH_BYTES {
            return Err(Error::TooLarge(Limit::Batch));
        }
        Ok(())
    }

    /// Refuses the batch with the first precondition that does not hold.
    pub(crate) fn check_requirements(
        &self,
        mut current: impl FnMut(&[u8]) -> Result<Option<Version>, Error>,
    ) -> Result<(), Error> {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if !requirement.precondition.holds(current(&requirement.key)?) {
                return Err(Error::Conflict { index });
            }
        }
        Ok(())
    }
}

fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(Error::TooLarge(Limit::Key));
    }
    Ok(())
}

/// Which entries to read: those whose keys have a prefix, from a start on, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    prefix: Vec<u8>,
    start: Bound<Vec<u8>>,
    limit: usize,
}

impl Scan {
    /// The first `limit` entries whose keys have the prefix; an empty prefix means all keys.
    pub fn new(prefix: impl Into<Vec<u8>>, limit: usize) -> Self {
        Self {
            prefix: prefix.into(),
            start: Bound::Unbounded,
            limit,
        }
    }

    /// Only this key and what comes after it.
    #[must_use]
    pub fn from(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.start = Bound::Included(key.into());
        self
    }

    /// Only what comes after this key, such as the last one of the page before.
    #[must_use]
    pub fn after(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.start = Bound::Excluded(key.into());
        self
    }

    /// How many entries at most.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The smallest key that can be in the range.
    pub(crate) fn lower(&self) -> Vec<u8> {
        let start = match &self.start {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.clone(),
            // The next key in byte order is the same key with a zero byte after it.
            Bound::Excluded(key) => [key.as_slice(), &[0]].concat(),
        };
        start.max(self.prefix.clone())
    }

    /// The smallest key behind the range, if there is one.
    pub(crate) fn upper(&self) -> Option<Vec<u8>> {
        let kept = self.prefix.iter().rposition(|byte| *byte != u8::MAX)?;
        let mut upper = self.prefix[..=kept].to_vec();
        upper[kept] += 1;
        Some(upper)
    }
}
