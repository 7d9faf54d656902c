//! SHA-256 hashes of leaves and nodes (RFC 9162 section 2.1.1).

use std::fmt;

use data_encoding::BASE64;
use ring::digest::{Context, SHA256};

use crate::text;

/// Bytes of a hash.
pub const HASH_BYTES: usize = 32;

/// A hash in the Merkle tree. Its text is padded base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; HASH_BYTES]);

impl Hash {
    /// The root of the empty tree: the hash of no bytes.
    pub const EMPTY: Self = Self([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9,
        0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52,
        0xb8, 0x55,
    ]);

    /// The hash of a leaf: 0x00, then the entry.
    pub fn of_leaf(entry: &[u8]) -> Self {
        Self::of_parts(&[&[0], entry])
    }

    /// The hash of a node: 0x01, then both children.
    pub fn of_node(left: Self, right: Self) -> Self {
        Self::of_parts(&[&[1], &left.0, &right.0])
    }

    /// Parses padded base64 of 32 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(text::base64(text)?.try_into().ok()?))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }

    /// The plain SHA-256 of parts in a row.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(part);
        }
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

impl From<[u8; HASH_BYTES]> for Hash {
    fn from(bytes: [u8; HASH_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
