//! Entries and the bundles in which they are served (c2sp.org/tlog-tiles, "Log entries").

use std::fmt;

use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::tile::TILE_WIDTH;

/// Bytes of the longest entry. The empty entry is allowed.
pub const MAX_ENTRY_BYTES: usize = u16::MAX as usize;

/// An entry that a bundle can hold: 0..=65535 bytes. It does not print its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry<'e> {
    bytes: &'e [u8],
    length: u16,
}

impl<'e> Entry<'e> {
    /// Refuses what is too long, before it is sequenced.
    pub fn new(bytes: &'e [u8]) -> Result<Self, Error> {
        match u16::try_from(bytes.len()) {
            Ok(length) => Ok(Self { bytes, length }),
            Err(_) => {
                let bytes = bytes.len();
                Err(Error::EntryTooLong { bytes })
            }
        }
    }

    /// The bytes as they were given.
    pub const fn bytes(self) -> &'e [u8] {
        self.bytes
    }

    /// Its hash as a leaf of the tree.
    pub fn leaf_hash(self) -> Hash {
        Hash::of_leaf(self.bytes)
    }

    /// Writes 1..=256 entries as a bundle, each behind its length in two bytes, big-endian.
    pub fn write_bundle(entries: &[Self]) -> Result<Vec<u8>, Error> {
        check_width(entries)?;
        let mut bundle = Vec::new();
        for entry in entries {
            bundle.extend_from_slice(&entry.length.to_be_bytes());
            bundle.extend_from_slice(entry.bytes);
        }
        Ok(bundle)
    }

    /// Reads a bundle of 1..=256 entries. A partial bundle is the beginning of the full one, so that
    /// a caller can take fewer entries than it has.
    pub fn parse_bundle(bundle: &'e [u8]) -> Result<Vec<Self>, Error> {
        let mut entries = Vec::new();
        let mut rest = bundle;
        while let Some((prefix, behind)) = rest.split_first_chunk() {
            let length = u16::from_be_bytes(*prefix);
            let (bytes, behind) = behind
                .split_at_checked(length.into())
                .ok_or(Error::Malformed(Form::EntryBundle))?;
            entries.push(Self { bytes, length });
            check_width(&entries)?;
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(Error::Malformed(Form::EntryBundle));
        }
        check_width(&entries)?;
        Ok(entries)
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Entry").finish_non_exhaustive()
    }
}

fn check_width(entries: &[Entry<'_>]) -> Result<(), Error> {
    if (1..=usize::from(TILE_WIDTH)).contains(&entries.len()) {
        Ok(())
    } else {
        Err(Error::Malformed(Form::EntryBundle))
    }
}
