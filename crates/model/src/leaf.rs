//! What a transparency log shows of a receipt: a commitment, and nothing to guess from.
//!
//! An entry of the log is [`VERSION`], then SHA-256 over a salt and the receipt's canonical bytes. The
//! salt makes receipts of few possible contents as unguessable as others. Whoever has receipt and
//! salt can show that they are the entry; once both are erased, the entry says nothing any more, and
//! the log stays whole.

use std::fmt;

use ring::digest::{Context, SHA256};
use zeroize::Zeroizing;

/// The first byte of an entry.
pub const VERSION: u8 = 1;

/// Bytes of an entry.
pub const LEAF_BYTES: usize = 33;

/// Bytes of a salt.
pub const SALT_BYTES: usize = 32;

/// What hides a receipt in its entry. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Salt(Zeroizing<[u8; SALT_BYTES]>);

impl Salt {
    /// The salt of 32 random bytes.
    pub fn new(bytes: [u8; SALT_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The salt that a record or a proof holds.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self::new(bytes.try_into().ok()?))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; SALT_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Salt(..)")
    }
}

/// The entry of a receipt, by its canonical text.
pub fn entry(salt: &Salt, receipt: &str) -> [u8; LEAF_BYTES] {
    let mut context = Context::new(&SHA256);
    context.update(salt.as_bytes());
    context.update(receipt.as_bytes());
    let mut entry = [VERSION; LEAF_BYTES];
    let (_, digest) = entry.split_at_mut(1);
    digest.copy_from_slice(context.finish().as_ref());
    entry
}

/// The origin of a tenant's log of receipts (c2sp.org/tlog-checkpoint): the name in its
/// checkpoints, and of its key.
pub fn origin(trust_domain: &str, tenant: &str) -> String {
    format!("{trust_domain}/receipts/{tenant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_depends_on_salt_and_receipt() {
        let salt = Salt::new([7; SALT_BYTES]);
        let committed = entry(&salt, "{}");
        // SHA-256 over 32 bytes of 0x07 and "{}".
        assert_eq!(
            data_encoding::HEXLOWER.encode(&committed),
            "01605dcbfd3c387c45b6db7e7b1fb961bdd75d762260c4879b3c3b4f15edacad42"
        );
        assert_ne!(entry(&Salt::new([8; SALT_BYTES]), "{}"), committed);
        assert_ne!(entry(&salt, "[]"), committed);
        assert_eq!(Salt::read(&[7; 31]), None);
        assert_eq!(Salt::read(&[7; SALT_BYTES]), Some(salt.clone()));
        assert!(!format!("{salt:?}").contains('7'));
    }
}
