//! Sealing: what reaches an engine through here is unreadable without the key-encryption key.
//!
//! - [`key`]: tenants, kinds and key parts, and how they become the bytes an engine orders.
//! - [`keyring`]: the key-encryption key, and the wrapped records that hold a store's own keys.
//! - [`value`]: the format of a sealed value.
//! - [`request`]: what a sealed store is asked, and what it answers.
//! - [`store`]: [`Sealed`] itself, reading and writing.
//! - [`rotation`]: new data keys, re-sealing, and the end of old keys.

mod key;
mod keyring;
mod request;
mod rotation;
mod store;
mod value;

pub use key::{FoundPart, Key, Kind, Located, Target, Tenant};
pub use keyring::{KeyEncryptionKey, KeyId};
pub use request::{Changes, Found, Opened, Range};
pub use rotation::{OldKey, Progress};
pub use store::Sealed;
