//! Ordered key-value stores, and the sealing of what they hold.
//!
//! # Role
//!
//! Every process with durable state keeps it behind this crate. [`Engine`] is the port: ordered byte
//! keys and atomic batches with preconditions. [`RocksEngine`] is the local store, [`MemoryEngine`]
//! enforces the same contract for tests of services. [`Sealed`] wraps an engine, so that nothing
//! readable comes to rest: values are sealed, and the private parts of keys are derived. The crate
//! knows no domain type and no runtime; calls block, and an async caller moves them off its threads.
//!
//! # Holds
//!
//! The subkeys of one key-encryption key, the data keys and the lookup key of one store, all in
//! memory only; at rest they are wrapped. [`RocksEngine`] owns its data folder: a lock file refuses
//! a second process.
//!
//! # Trusts
//!
//! The caller, to bring 32 random bytes as key-encryption key and to keep them elsewhere than the
//! data. The disk, to keep what was synced. Not the disk's contents: a value that was changed,
//! shortened or moved to another key, kind, tenant or version is refused as [`Error::Corrupt`].
//! What sealing cannot notice is a whole store, or a single value with its version, that was put
//! back to an earlier state, and a value that was removed.
//!
//! # A compromise yields
//!
//! The data folder alone: sizes, counts, times of writing, tenants, kinds, the public parts of keys,
//! and which private parts are equal behind the same beginning of a key. The folder and the key-encryption
//! key: everything the process stored. The running process: the same.

#![warn(missing_docs)]

mod engine;
mod error;
mod memory;
mod metered;
mod rocks;
mod seal;

pub use engine::{
    Batch, Durability, Engine, Entry, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    Precondition, Requirement, Scan, Stored, Version, Write,
};
pub use error::{Damage, Error, InvalidName, Limit};
pub use memory::{Fault, MemoryEngine};
pub use metered::Metered;
pub use rocks::RocksEngine;
pub use seal::{
    Changes, Found, FoundPart, Key, KeyEncryptionKey, KeyId, Kind, Located, OldKey, Opened,
    Progress, Range, Sealed, Target, Tenant,
};
