//! What only the local engine does: it owns a folder, survives being killed, and comes back after a
//! full disk.
#![cfg(test)]

mod child;
mod folder;
mod full_disk;
mod killed;
mod purge;
mod small_disk;

use cl_kv::{Stored, Version};

fn stored(number: u64, value: impl Into<Vec<u8>>) -> Stored {
    Stored {
        version: Version::new(u128::from(number).to_be_bytes()),
        value: value.into(),
    }
}
