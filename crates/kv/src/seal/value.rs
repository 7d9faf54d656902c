//! The format of a sealed value, version 1.
//!
//! ```text
//! 0x01, key id (4, big-endian), nonce (12), ciphertext, tag (16)
//! ```
//!
//! AES-256-GCM under the data key with that id and a random nonce. The associated data is a label,
//! the header (format and key id), the value's version and the engine's key. The last two are what
//! binds a value to its place: the engine's key encodes tenant, kind and parts injectively, and
//! re-sealing can do without the private parts it was derived from.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::SecureRandom;
use zeroize::Zeroizing;

use super::keyring::KeyId;
use crate::engine::{Stored, Version};
use crate::error::{Damage, Error, NoRandomness};

const FORMAT: u8 = 1;
const LABEL: &[u8] = b"cl-kv/value/1\0";
const HEADER_BYTES: usize = 1 + size_of::<u32>();
const TAG_BYTES: usize = 16;

/// Seals a value for one key and version.
pub(super) fn seal(
    cipher: &LessSafeKey,
    id: KeyId,
    random: &dyn SecureRandom,
    key: &[u8],
    version: Version,
    plain: &[u8],
) -> Result<Stored, Error> {
    let mut header = [FORMAT; HEADER_BYTES];
    header[1..].copy_from_slice(&id.number().to_be_bytes());
    let value = encrypt(
        cipher,
        random,
        &header,
        &associated(LABEL, &header, version, key),
        plain,
    )?;
    Ok(Stored { version, value })
}

/// The data key a value is sealed under, not authenticated yet.
pub(super) fn key_id(sealed: &[u8]) -> Result<KeyId, Error> {
    let header = header::<HEADER_BYTES>(sealed, FORMAT)?;
    let [_, id @ ..] = *header;
    Ok(KeyId::new(u32::from_be_bytes(id)))
}

/// Opens the value of one key.
pub(super) fn open(
    cipher: &LessSafeKey,
    key: &[u8],
    stored: &Stored,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let header = header::<HEADER_BYTES>(&stored.value, FORMAT)?;
    let associated = associated(LABEL, header, stored.version, key);
    decrypt(cipher, header.len(), &associated, &stored.value)
}

/// The first bytes of something sealed, if they are of a known format.
pub(super) fn header<const N: usize>(sealed: &[u8], format: u8) -> Result<&[u8; N], Error> {
    let header: &[u8; N] = sealed
        .first_chunk()
        .ok_or(Error::Corrupt(Damage::Truncated))?;
    if header[0] != format {
        return Err(Error::Corrupt(Damage::UnknownFormat(header[0])));
    }
    Ok(header)
}

/// Unambiguous, as label, header and version have fixed lengths.
pub(super) fn associated(label: &[u8], header: &[u8], version: Version, key: &[u8]) -> Vec<u8> {
    [label, header, version.as_bytes(), key].concat()
}

/// Header, nonce, ciphertext and tag.
pub(super) fn encrypt(
    cipher: &LessSafeKey,
    random: &dyn SecureRandom,
    header: &[u8],
    associated: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>, Error> {
    let nonce = draw::<NONCE_LEN>(random)?;
    let body = header.len() + NONCE_LEN;
    let mut sealed = Vec::with_capacity(body + plain.len() + TAG_BYTES);
    sealed.extend_from_slice(header);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(plain);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = cipher
        .seal_in_place_separate_tag(nonce, Aad::from(associated), &mut sealed[body..])
        // The only cause is a length that no engine takes.
        .map_err(|_| Error::TooLarge(crate::Limit::Value))?;
    sealed.extend_from_slice(tag.as_ref());
    Ok(sealed)
}

/// What `encrypt` was given.
pub(super) fn decrypt(
    cipher: &LessSafeKey,
    header_bytes: usize,
    associated: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let Some((nonce, body)) = sealed
        .get(header_bytes..)
        .and_then(<[u8]>::split_first_chunk)
    else {
        return Err(Error::Corrupt(Damage::Truncated));
    };
    if body.len() < TAG_BYTES {
        return Err(Error::Corrupt(Damage::Truncated));
    }
    let mut plain = Zeroizing::new(body.to_vec());
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let length = cipher
        .open_in_place(nonce, Aad::from(associated), &mut plain)
        .map_err(|_| Error::Corrupt(Damage::Forged))?
        .len();
    plain.truncate(length);
    Ok(plain)
}

/// The cipher of a key.
pub(super) fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, Error> {
    // Only keys of another length are refused.
    UnboundKey::new(&AES_256_GCM, key)
        .map(LessSafeKey::new)
        .map_err(|_| Error::WrongKey)
}

/// Random bytes.
pub(super) fn draw<const N: usize>(random: &dyn SecureRandom) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    random
        .fill(&mut bytes)
        .map_err(|_| Error::unavailable(NoRandomness))?;
    Ok(bytes)
}
