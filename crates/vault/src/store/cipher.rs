//! The data key of one subject.

use cl_host::ids::Ids;
use cl_model::digest::Digest;
use cl_model::scalar::Predicate;
use cl_model::urn::ClaimId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::StoreError;

/// The first byte of a sealed value.
const FORMAT: u8 = 1;

const CLAIM_DOMAIN: &[u8] = b"context-layer/claim-id/v1\0";

/// Seals the values of one subject. All of them are random noise once it is gone.
pub(super) struct DataKey {
    cipher: LessSafeKey,
    names: hmac::Key,
}

impl DataKey {
    pub(super) const BYTES: usize = 32;

    pub(super) fn generate(ids: &dyn Ids) -> Result<Zeroizing<[u8; Self::BYTES]>, StoreError> {
        let mut bytes = Zeroizing::new([0; Self::BYTES]);
        ids.fill(&mut *bytes)?;
        Ok(bytes)
    }

    pub(super) fn new(bytes: &[u8]) -> Result<Self, StoreError> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| StoreError::Corrupt)?;
        let own = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let names = hmac::sign(&own, b"context-layer/subject-names/v1");
        Ok(Self {
            cipher: LessSafeKey::new(key),
            names: hmac::Key::new(hmac::HMAC_SHA256, names.as_ref()),
        })
    }

    /// Seals a value for one place, which opening has to name again.
    pub(super) fn seal(
        &self,
        ids: &dyn Ids,
        place: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0; NONCE_LEN];
        ids.fill(&mut nonce)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&nonce);
        let mut body = plain.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.cipher
            .seal_in_place_append_tag(nonce, Aad::from(place), &mut body)
            .map_err(|_| StoreError::Corrupt)?;
        sealed.append(&mut body);
        Ok(sealed)
    }

    pub(super) fn open(
        &self,
        place: &[u8],
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let (format, rest) = sealed.split_first().ok_or(StoreError::Corrupt)?;
        let (nonce, body) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(StoreError::Corrupt)?;
        if *format != FORMAT {
            return Err(StoreError::Corrupt);
        }
        let mut opened = Zeroizing::new(body.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self
            .cipher
            .open_in_place(nonce, Aad::from(place), &mut opened)
            .map_err(|_| StoreError::Corrupt)?
            .len();
        opened.truncate(length);
        Ok(opened)
    }

    /// The id of the claim with this predicate and value: the same for every source of it, and a
    /// random name to everybody without the key.
    pub(super) fn claim_id(&self, predicate: &Predicate, value: &Value) -> ClaimId {
        let content = cl_model::canonical::to_text(&json!([predicate.as_str(), value]));
        let tag = hmac::sign(&self.names, &[CLAIM_DOMAIN, content.as_bytes()].concat());
        let mut digest = [0; 32];
        digest.copy_from_slice(tag.as_ref());
        ClaimId::from_digest(Digest::from(digest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cl_host::clock::ManualClock;
    use cl_host::ids::SeededIds;

    use super::*;

    fn ids() -> SeededIds {
        SeededIds::new(1, Arc::new(ManualClock::new(0)))
    }

    #[test]
    fn a_value_opens_only_at_its_place_and_unchanged() {
        let (ids, key) = (ids(), DataKey::new(&[7; 32]).unwrap());
        let sealed = key.seal(&ids, b"place", b"value").unwrap();
        assert_eq!(key.open(b"place", &sealed).unwrap().as_slice(), b"value");
        assert!(key.open(b"other", &sealed).is_err());
        assert!(
            DataKey::new(&[8; 32])
                .unwrap()
                .open(b"place", &sealed)
                .is_err()
        );
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(key.open(b"place", &changed).is_err(), "{position}");
            assert!(key.open(b"place", &sealed[..position]).is_err());
        }
    }
}
