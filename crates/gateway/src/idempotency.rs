//! Idempotency keys: what one may look like, and what is remembered of its first use. Sans-IO.

use std::fmt;

use cl_host::ids::Uuid;
use ring::digest::{Context, SHA256};

/// How long a key is remembered.
pub const RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

const MAX_KEY_LENGTH: usize = 255;
const FORMAT: u8 = 1;
const JOINED: u8 = 0b01;
const DONE: u8 = 0b10;
const DIGEST_BYTES: usize = 32;
const UUID_BYTES: usize = 16;
const RECORD_BYTES: usize = 2 + DIGEST_BYTES + UUID_BYTES + 8;

/// A key that a caller chose: 1 to 255 visible ASCII characters. It never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads a key.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let is_visible = bytes.iter().all(u8::is_ascii_graphic);
        let is_bounded = (1..=MAX_KEY_LENGTH).contains(&bytes.len());
        let text = std::str::from_utf8(bytes).ok()?;
        (is_visible && is_bounded).then(|| Self(text.to_owned()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

/// The id of an operation in receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId([u8; UUID_BYTES]);

impl From<Uuid> for OperationId {
    fn from(uuid: Uuid) -> Self {
        Self(*uuid.as_bytes())
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("urn:cl:operation:")?;
        for (position, byte) in self.0.iter().enumerate() {
            if matches!(position, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// What a key stands for: an operation and the canonical bytes it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; DIGEST_BYTES]);

impl Fingerprint {
    /// The fingerprint of `operation` with `document`.
    pub fn of(operation: &str, document: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"context-layer/idempotency/v1\0");
        context.update(operation.as_bytes());
        context.update(b"\0");
        context.update(document);
        let mut fingerprint = [0; DIGEST_BYTES];
        fingerprint.copy_from_slice(context.finish().as_ref());
        Self(fingerprint)
    }
}

/// What is remembered of a key's first use: no document, no answer, and nobody's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What the key stands for.
    pub fingerprint: Fingerprint,
    /// The operation that carries it out, under one id for all attempts.
    pub operation_id: OperationId,
    /// Whether a second call took part, so that none of them may undo the use.
    pub is_joined: bool,
    /// Whether an attempt succeeded.
    pub is_done: bool,
    /// When the key is forgotten.
    pub expires_at_unix_ms: i64,
}

impl Record {
    /// A first use.
    pub fn new(fingerprint: Fingerprint, operation_id: OperationId, now_unix_ms: i64) -> Self {
        Self {
            fingerprint,
            operation_id,
            is_joined: false,
            is_done: false,
            expires_at_unix_ms: now_unix_ms.saturating_add(RETENTION_MS),
        }
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let joined = if self.is_joined { JOINED } else { 0 };
        let done = if self.is_done { DONE } else { 0 };
        let mut bytes = vec![FORMAT, joined | done];
        bytes.extend_from_slice(&self.fingerprint.0);
        bytes.extend_from_slice(&self.operation_id.0);
        bytes.extend_from_slice(&self.expires_at_unix_ms.to_be_bytes());
        bytes
    }

    /// Reads the stored form.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD_BYTES] = bytes.try_into().ok()?;
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        let (fingerprint, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let (operation_id, expires) = rest.split_first_chunk::<UUID_BYTES>()?;
        let [FORMAT, flags @ 0..=3] = *head else {
            return None;
        };
        Some(Self {
            fingerprint: Fingerprint(*fingerprint),
            operation_id: OperationId(*operation_id),
            is_joined: flags & JOINED != 0,
            is_done: flags & DONE != 0,
            expires_at_unix_ms: i64::from_be_bytes(expires.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_visible_ascii_of_bounded_length() {
        let longest = [b'a'; 255];
        for good in [b"a".as_slice(), b"!~", b"\"quoted\"", &longest] {
            assert!(IdempotencyKey::parse(good).is_some());
        }
        let too_long = [b'a'; 256];
        for bad in [
            b"".as_slice(),
            b" ",
            b"a b",
            b"a\n",
            b"a\x7f",
            "\u{e9}".as_bytes(),
            &too_long,
        ] {
            assert!(IdempotencyKey::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_fingerprint_tells_operations_and_documents_apart() {
        let first = Fingerprint::of("submit_request", b"{}");
        assert_eq!(first, Fingerprint::of("submit_request", b"{}"));
        assert_ne!(first, Fingerprint::of("submit_request", b"[]"));
        assert_ne!(first, Fingerprint::of("another", b"{}"));
    }

    proptest! {
        #[test]
        fn what_is_stored_reads_back_and_nothing_else_reads(
            joined: bool, done: bool, expires: i64, id: [u8; 16], bytes: Vec<u8>,
        ) {
            let record = Record {
                is_joined: joined,
                is_done: done,
                expires_at_unix_ms: expires,
                ..Record::new(Fingerprint::of("a", b"b"), OperationId(id), 0)
            };
            let stored = record.encode();
            prop_assert_eq!(Record::decode(&stored), Some(record));
            prop_assert_eq!(Record::decode(&stored[1..]), None);
            prop_assert_eq!(Record::decode(&[stored.as_slice(), &[0]].concat()), None);
            if bytes.len() != RECORD_BYTES {
                prop_assert_eq!(Record::decode(&bytes), None);
            }
        }
    }
}
