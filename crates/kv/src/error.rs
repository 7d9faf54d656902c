use std::error;
use std::sync::Arc;

use crate::{KeyId, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// Why a store did not do what it was asked.
///
/// Reads that fail have changed nothing. For `apply`, [`Conflict`](Self::Conflict),
/// [`TooLarge`](Self::TooLarge), [`Locked`](Self::Locked) and [`Corrupt`](Self::Corrupt) mean that
/// nothing was stored; after [`Full`](Self::Full) and [`Unavailable`](Self::Unavailable) the batch is
/// stored whole or not at all, and the caller finds out by repeating it under the same
/// preconditions.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The precondition at this position (the lowest that failed) did not hold.
    #[error("precondition {index} does not hold")]
    Conflict {
        /// Position among the batch's requirements.
        index: usize,
    },
    /// The disk has no room. The store serves again by itself once there is.
    #[error("the disk is full")]
    Full,
    /// The data folder is owned by another process, or by another engine in this one.
    #[error("the data folder is in use")]
    Locked,
    /// What is stored is not what was written.
    #[error("stored data is damaged: {0}")]
    Corrupt(Damage),
    /// The store was made under another key-encryption key.
    #[error("the key-encryption key does not open this store")]
    WrongKey,
    /// The data key cannot be retired: it is active, or values may still be sealed under it.
    #[error("data key {0} is in use")]
    KeyInUse(KeyId),
    /// The store has no such data key.
    #[error("there is no data key {0}")]
    NoSuchKey(KeyId),
    /// A key, a value or a batch is over its limit.
    #[error("too large: {0}")]
    TooLarge(Limit),
    /// The store, or the source of randomness, failed; the cause is for the log.
    #[error("the store is unavailable")]
    Unavailable(#[source] Arc<dyn error::Error + Send + Sync>),
}

/// In which way stored data is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The engine's own files fail their checks.
    #[error("the engine's files fail their checks")]
    Files,
    /// The data folder was in use before, and the database in it is gone.
    #[error("the database is missing from its folder")]
    Missing,
    /// A value, or the engine's record around it, is shorter than its header.
    #[error("shorter than its header")]
    Truncated,
    /// The first byte names a format that this version does not know.
    #[error("unknown format {0}")]
    UnknownFormat(u8),
    /// The value names a data key that the store does not have.
    #[error("sealed under the unknown data key {0}")]
    UnknownKey(KeyId),
    /// The value was changed, or belongs to another key, kind, tenant or version.
    #[error("does not authenticate")]
    Forged,
    /// A key does not decode.
    #[error("malformed key")]
    MalformedKey,
    /// The store has values, but not the records that hold its keys.
    #[error("the store's own keys are missing")]
    KeysMissing,
}

/// A limit of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Keys are 1 to [`MAX_KEY_BYTES`] long.
    #[error("keys have 1 to {MAX_KEY_BYTES} bytes")]
    Key,
    /// Values are at most [`MAX_VALUE_BYTES`] long.
    #[error("values have at most {MAX_VALUE_BYTES} bytes")]
    Value,
    /// The keys and values of a batch are at most [`MAX_BATCH_BYTES`] together.
    #[error("batches have at most {MAX_BATCH_BYTES} bytes")]
    Batch,
}

/// The source of randomness gave none.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no randomness")]
pub(crate) struct NoRandomness;

/// The text is not a tenant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant's name has 1 to 128 bytes and no control character")]
pub struct InvalidName;

impl Error {
    pub(crate) fn unavailable(cause: impl error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }
}
