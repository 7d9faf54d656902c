//! The key-encryption key, and a store's own two records.
//!
//! ```text
//! key    0x00 "lookup" | 0x00 "keys"
//! value  0x01, key check (16), nonce (12), ciphertext, tag (16)
//! lookup plain: 32 bytes
//! keys   plain: active id (4), last id (4), then per key: id (4), unused (1), 32 bytes
//! ```
//!
//! Both are AES-256-GCM under a subkey of the key-encryption key; another subkey makes the key
//! check, which tells a wrong key from a damaged record. The associated data is as for values.

use std::collections::BTreeMap;
use std::fmt;

use ring::aead::LessSafeKey;
use ring::hmac;
use ring::rand::SecureRandom;
use zeroize::Zeroizing;

use super::value::{associated, cipher, decrypt, draw, encrypt, header};
use crate::engine::{Stored, Version};
use crate::error::{Damage, Error};

/// Where the wrapped lookup key is.
pub(super) const LOOKUP: &[u8] = b"\0lookup";
/// Where the wrapped data keys are. Every sealed write requires this record unchanged.
pub(super) const KEYS: &[u8] = b"\0keys";

const FORMAT: u8 = 1;
const LABEL: &[u8] = b"cl-kv/own/1\0";
const CHECK_BYTES: usize = 16;
const HEADER_BYTES: usize = 1 + CHECK_BYTES;
const SECRET_BYTES: usize = 32;

/// A secret key of 32 bytes, wiped when dropped.
pub(super) type Secret = Zeroizing<[u8; SECRET_BYTES]>;

/// Names a data key within one store. Ids are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(u32);

impl KeyId {
    pub(super) fn new(number: u32) -> Self {
        Self(number)
    }

    /// The id as a number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key that wraps a store's own keys. It never touches a value, and is never stored.
pub struct KeyEncryptionKey(Secret);

impl KeyEncryptionKey {
    /// The key with these bytes, which must come from a secure source of randomness.
    pub fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// Wraps one of the store's own records.
    pub(super) fn wrap(
        &self,
        random: &dyn SecureRandom,
        key: &[u8],
        plain: &[u8],
    ) -> Result<Stored, Error> {
        let version = Version::new(draw(random)?);
        let mut header = [FORMAT; HEADER_BYTES];
        header[1..].copy_from_slice(&self.check());
        let associated = associated(LABEL, &header, version, key);
        let value = encrypt(&self.cipher()?, random, &header, &associated, plain)?;
        Ok(Stored { version, value })
    }

    /// Unwraps one of the store's own records.
    pub(super) fn unwrap(&self, key: &[u8], stored: &Stored) -> Result<Zeroizing<Vec<u8>>, Error> {
        let header = header::<HEADER_BYTES>(&stored.value, FORMAT)?;
        if header[1..] != self.check() {
            return Err(Error::WrongKey);
        }
        let associated = associated(LABEL, header, stored.version, key);
        decrypt(&self.cipher()?, header.len(), &associated, &stored.value)
    }

    /// Public, and of no use to guess the key.
    fn check(&self) -> [u8; CHECK_BYTES] {
        let mut check = [0; CHECK_BYTES];
        check.copy_from_slice(&self.subkey(b"cl-kv/kek/check/1")[..CHECK_BYTES]);
        check
    }

    fn cipher(&self) -> Result<LessSafeKey, Error> {
        cipher(&self.subkey(b"cl-kv/kek/wrap/1"))
    }

    fn subkey(&self, label: &[u8]) -> Secret {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &*self.0), label);
        let mut subkey = Secret::default();
        subkey.copy_from_slice(tag.as_ref());
        subkey
    }
}

impl fmt::Debug for KeyEncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyEncryptionKey(..)")
    }
}

/// The data keys of a store, as its record holds them.
pub(super) struct Secrets {
    pub(super) active: KeyId,
    last: KeyId,
    pub(super) keys: BTreeMap<KeyId, DataKey>,
}

pub(super) struct DataKey {
    /// A full pass has found no value under the key. Stays true, as nothing is sealed under an old
    /// key.
    pub(super) unused: bool,
    secret: Secret,
}

impl Secrets {
    /// One fresh key.
    pub(super) fn generate(random: &dyn SecureRandom) -> Result<Self, Error> {
        let zero = KeyId(0);
        let mut secrets = Self {
            active: zero,
            last: zero,
            keys: BTreeMap::new(),
        };
        secrets.add_key(random)?;
        Ok(secrets)
    }

    /// Makes a fresh key the active one.
    pub(super) fn add_key(&mut self, random: &dyn SecureRandom) -> Result<(), Error> {
        let id = self
            .last
            .0
            .checked_add(1)
            .ok_or(Error::KeyInUse(self.last))?;
        self.last = KeyId(id);
        self.active = self.last;
        let secret = generate_secret(random)?;
        self.keys.insert(
            self.active,
            DataKey {
                unused: false,
                secret,
            },
        );
        Ok(())
    }

    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let capacity = HEAD_BYTES + self.keys.len() * RECORD_BYTES;
        // With its whole size at first, so that growing leaves no copy behind.
        let mut plain = Zeroizing::new(Vec::with_capacity(capacity));
        plain.extend_from_slice(&self.active.0.to_be_bytes());
        plain.extend_from_slice(&self.last.0.to_be_bytes());
        for (id, key) in &self.keys {
            plain.extend_from_slice(&id.0.to_be_bytes());
            plain.push(key.unused.into());
            plain.extend_from_slice(&*key.secret);
        }
        plain
    }

    pub(super) fn decode(plain: &[u8]) -> Result<Self, Error> {
        parse_secrets(plain).ok_or(Error::Corrupt(Damage::Forged))
    }
}

const HEAD_BYTES: usize = 8;
const RECORD_BYTES: usize = 5 + SECRET_BYTES;

fn parse_secrets(plain: &[u8]) -> Option<Secrets> {
    let (active, rest) = plain.split_first_chunk()?;
    let (last, records) = rest.split_first_chunk()?;
    let mut keys = BTreeMap::new();
    let (records, []) = records.as_chunks::<RECORD_BYTES>() else {
        return None;
    };
    for record in records {
        let (id, rest) = record.split_first_chunk()?;
        let (unused, secret) = rest.split_first()?;
        let mut key = DataKey {
            unused: *unused != 0,
            secret: Secret::default(),
        };
        key.secret.copy_from_slice(secret);
        keys.insert(KeyId(u32::from_be_bytes(*id)), key);
    }
    let active = KeyId(u32::from_be_bytes(*active));
    let last = KeyId(u32::from_be_bytes(*last));
    keys.contains_key(&active)
        .then_some(Secrets { active, last, keys })
}

pub(super) fn generate_secret(random: &dyn SecureRandom) -> Result<Secret, Error> {
    Ok(Zeroizing::new(draw(random)?))
}

/// The data keys of a store, ready for use.
pub(super) struct Keyring {
    /// The version of the record this was read from.
    pub(super) version: Version,
    pub(super) active: KeyId,
    ciphers: BTreeMap<KeyId, LessSafeKey>,
}

impl Keyring {
    pub(super) fn new(secrets: &Secrets, version: Version) -> Result<Self, Error> {
        let mut ciphers = BTreeMap::new();
        for (id, key) in &secrets.keys {
            ciphers.insert(*id, cipher(&key.secret)?);
        }
        Ok(Self {
            version,
            active: secrets.active,
            ciphers,
        })
    }

    pub(super) fn cipher(&self, id: KeyId) -> Result<&LessSafeKey, Error> {
        self.ciphers
            .get(&id)
            .ok_or(Error::Corrupt(Damage::UnknownKey(id)))
    }
}
