//! Where the next page starts: sealed, so that it says nothing and cannot be made up, and bound to
//! the caller and the query.

use std::sync::Arc;

use cl_host::ids::Ids;
use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::error::Error;

/// Longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 8192;

/// Makes and reads page tokens.
#[derive(Clone)]
pub struct PageTokens {
    key: Arc<LessSafeKey>,
    ids: Arc<dyn Ids>,
}

impl PageTokens {
    /// Seals under these 32 random bytes.
    pub fn new(key: &[u8], ids: Arc<dyn Ids>) -> Result<Self, Error> {
        let key = UnboundKey::new(&AES_256_GCM, key)
            .map_err(|_| Error::Corrupt("the key of page tokens has another length"))?;
        Ok(Self {
            key: Arc::new(LessSafeKey::new(key)),
            ids,
        })
    }

    /// A token for a place in the answer to a query.
    pub fn seal(&self, query: &[u8], place: &[u8]) -> Result<String, Error> {
        let mut nonce = [0; NONCE_LEN];
        self.ids
            .fill(&mut nonce)
            .map_err(|_| Error::Internal("no random bytes"))?;
        let mut sealed = place.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(query),
                &mut sealed,
            )
            .map_err(|_| Error::Internal("a page token does not seal"))?;
        Ok(BASE64URL_NOPAD.encode(&[&nonce[..], &sealed].concat()))
    }

    /// The place that a token names; `None` for the empty token.
    pub fn open(&self, query: &[u8], token: &str) -> Result<Option<Vec<u8>>, Error> {
        if token.is_empty() {
            return Ok(None);
        }
        let opened = (token.len() <= MAX_TOKEN_BYTES)
            .then(|| self.try_open(query, token))
            .flatten();
        let place = opened
            .ok_or_else(|| Error::field("page_token", "the token of a page of the same query"))?;
        Ok(Some(place))
    }

    fn try_open(&self, query: &[u8], token: &str) -> Option<Vec<u8>> {
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut sealed = sealed.to_vec();
        let place = self.key.open_in_place(nonce, Aad::from(query), &mut sealed);
        Some(place.ok()?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use cl_host::clock::ManualClock;
    use cl_host::ids::SeededIds;

    use super::*;

    #[test]
    fn opens_only_for_its_query() {
        let ids = Arc::new(SeededIds::new(1, Arc::new(ManualClock::new(0))));
        let tokens = PageTokens::new(&[7; 32], ids).unwrap();
        let token = tokens.seal(b"query", b"place").unwrap();
        assert_ne!(token, tokens.seal(b"query", b"place").unwrap());
        let open = |query: &[u8], token: &str| tokens.open(query, token);
        assert_eq!(open(b"query", &token).unwrap().unwrap(), b"place");
        assert_eq!(open(b"query", "").unwrap(), None);
        assert!(open(b"other", &token).is_err());
        assert!(open(b"query", &token[1..]).is_err());
        assert!(open(b"query", "AAAA").is_err());
        assert!(open(b"query", &"A".repeat(MAX_TOKEN_BYTES + 1)).is_err());
    }
}
