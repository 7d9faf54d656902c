//! The token issuer's public keys: a JSON Web Key Set (RFC 7517), read strictly.

use std::collections::BTreeMap;
use std::fmt;

use cl_model::json::{self, Limits};
use cl_model::refusal::Refusal;
use data_encoding::BASE64URL_NOPAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Map, Value};

use super::jws::MAX_KID_CHARS;

/// The largest key set, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// The most keys in a set, those that are left out included.
pub const MAX_KEYS: usize = 100;

/// Members that only a private or symmetric key has.
const SECRET_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Length of a coordinate, for both curves.
const COORDINATE_BYTES: usize = 32;

/// The keys that tokens may be signed with, by key id.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: BTreeMap<String, Key>,
    left_out: usize,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds, or for other uses, are left out and counted.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidKeySet> {
        let value = json::parse(bytes, Limits::network(MAX_BYTES))?;
        let listed = value
            .get("keys")
            .and_then(Value::as_array)
            .ok_or(InvalidKeySet::NoList)?;
        if listed.len() > MAX_KEYS {
            return Err(InvalidKeySet::TooMany);
        }
        let mut set = Self::default();
        for (position, value) in listed.iter().enumerate() {
            let object = value.as_object();
            let object = object.ok_or(InvalidKeySet::NotAKey { position })?;
            match Key::read(object, position)? {
                None => set.left_out += 1,
                Some((key_id, key)) => {
                    if set.keys.insert(key_id, key).is_some() {
                        return Err(InvalidKeySet::RepeatedKeyId { position });
                    }
                }
            }
        }
        if set.keys.is_empty() {
            return Err(InvalidKeySet::NoUsableKey);
        }
        Ok(set)
    }

    /// How many keys were left out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// How many keys can be used.
    pub fn usable(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn find(&self, key_id: &str) -> Option<&Key> {
        self.keys.get(key_id)
    }
}

/// One public key.
#[derive(Clone)]
pub(super) struct Key {
    curve: Curve,
    algorithms: Vec<&'static str>,
    bytes: Vec<u8>,
}

impl Key {
    /// `None` for a key that is not for verifying tokens here.
    fn read(
        object: &Map<String, Value>,
        position: usize,
    ) -> Result<Option<(String, Self)>, InvalidKeySet> {
        let malformed = || InvalidKeySet::NotAKey { position };
        let text = |name: &str| match object.get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(malformed),
        };
        let kind = text("kty")?.ok_or_else(malformed)?;
        let is_secret = SECRET_MEMBERS.iter().any(|name| object.contains_key(*name));
        if is_secret || kind == "oct" {
            return Err(InvalidKeySet::Secret { position });
        }
        let Some(curve) = Curve::of(kind, text("crv")?) else {
            return Ok(None);
        };
        if text("use")?.is_some_and(|its_use| its_use != "sig") || !may_verify(object, position)? {
            return Ok(None);
        }
        let algorithms = match text("alg")? {
            None => curve.algorithms().to_vec(),
            Some(named) => {
                let known = curve.algorithms().iter().find(|known| **known == named);
                vec![*known.ok_or(InvalidKeySet::WrongAlgorithm { position })?]
            }
        };
        let key_id = text("kid")?
            .filter(|key_id| (1..=MAX_KID_CHARS).contains(&key_id.chars().count()))
            .ok_or(InvalidKeySet::NoKeyId { position })?;
        let coordinate = |name| coordinate(text(name)?, position);
        let bytes = match curve {
            Curve::Ed25519 => coordinate("x")?,
            // An uncompressed point (SEC 1 section 2.3.3), as `ring` takes it.
            Curve::P256 => [vec![0x04], coordinate("x")?, coordinate("y")?].concat(),
        };
        let key = Self {
            curve,
            algorithms,
            bytes,
        };
        Ok(Some((key_id.to_owned(), key)))
    }

    pub(super) fn takes(&self, algorithm: &str) -> bool {
        self.algorithms.contains(&algorithm)
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.curve.verification(), &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("curve", &self.curve)
            .finish_non_exhaustive()
    }
}

fn may_verify(object: &Map<String, Value>, position: usize) -> Result<bool, InvalidKeySet> {
    match object.get("key_ops") {
        None => Ok(true),
        Some(Value::Array(operations)) => Ok(operations.iter().any(|it| it == "verify")),
        Some(_) => Err(InvalidKeySet::NotAKey { position }),
    }
}

fn coordinate(text: Option<&str>, position: usize) -> Result<Vec<u8>, InvalidKeySet> {
    text.and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok())
        .filter(|bytes| bytes.len() == COORDINATE_BYTES)
        .ok_or(InvalidKeySet::NotAKey { position })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    Ed25519,
    P256,
}

impl Curve {
    fn of(kind: &str, name: Option<&str>) -> Option<Self> {
        match (kind, name?) {
            ("OKP", "Ed25519") => Some(Self::Ed25519),
            ("EC", "P-256") => Some(Self::P256),
            _ => None,
        }
    }

    /// The names of its one algorithm: EdDSA got a second name in RFC 9864.
    fn algorithms(self) -> &'static [&'static str] {
        match self {
            Self::Ed25519 => &["EdDSA", "Ed25519"],
            Self::P256 => &["ES256"],
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Ed25519 => &ED25519,
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
        }
    }
}

/// Why bytes are no key set to trust. Names positions, never contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeySet {
    /// Not strict JSON, or too large.
    #[error(transparent)]
    Json(#[from] Refusal),
    /// No array `keys`.
    #[error("a key set has an array `keys`")]
    NoList,
    /// Too many keys.
    #[error("a key set has at most {MAX_KEYS} keys")]
    TooMany,
    /// A member is missing or malformed.
    #[error("key {position} is malformed")]
    NotAKey {
        /// Its place in the list.
        position: usize,
    },
    /// A private or symmetric key, which has no place in a file of public keys.
    #[error("key {position} is secret: only public keys belong here")]
    Secret {
        /// Its place in the list.
        position: usize,
    },
    /// The algorithm is not one of its curve.
    #[error("key {position} names an algorithm of another kind of key")]
    WrongAlgorithm {
        /// Its place in the list.
        position: usize,
    },
    /// No key id, or one that is too long.
    #[error("key {position} has no key id of 1 to {MAX_KID_CHARS} characters")]
    NoKeyId {
        /// Its place in the list.
        position: usize,
    },
    /// Two keys with one id.
    #[error("key {position} has the key id of an earlier one")]
    RepeatedKeyId {
        /// Its place in the list.
        position: usize,
    },
    /// Nothing left to verify with.
    #[error("no key is an Ed25519 or P-256 key for signatures")]
    NoUsableKey,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn coordinate_text(byte: u8) -> String {
        BASE64URL_NOPAD.encode(&[byte; 32])
    }

    fn ed25519(key_id: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": key_id, "x": coordinate_text(1)})
    }

    fn p256(key_id: &str) -> Value {
        let (x, y) = (coordinate_text(2), coordinate_text(3));
        json!({"kty": "EC", "crv": "P-256", "kid": key_id, "x": x, "y": y})
    }

    fn parse(keys: &[Value]) -> Result<KeySet, InvalidKeySet> {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes())
    }

    fn with(mut key: Value, member: &str, value: Value) -> Value {
        key[member] = value;
        key
    }

    #[test]
    fn reads_both_kinds_and_leaves_others_out() {
        let others = [
            json!({"kty": "RSA", "kid": "r", "n": "AQAB", "e": "AQAB"}),
            json!({"kty": "OKP", "crv": "X25519", "kid": "x", "x": coordinate_text(9)}),
            with(p256("a"), "crv", json!("P-384")),
            with(ed25519("b"), "use", json!("enc")),
            with(ed25519("c"), "key_ops", json!(["sign"])),
        ];
        let known = [
            with(ed25519("d"), "alg", json!("EdDSA")),
            with(p256("e"), "key_ops", json!(["verify"])),
        ];
        let set = parse(&[others.as_slice(), known.as_slice()].concat()).unwrap();
        assert_eq!((set.usable(), set.left_out()), (2, 5));
        assert!(set.find("d").unwrap().takes("EdDSA"));
        assert!(!set.find("d").unwrap().takes("ES256"));
        assert!(!set.find("d").unwrap().takes("Ed25519"));
        assert!(set.find("e").unwrap().takes("ES256"));
        assert!(set.find("E").is_none());
    }

    #[test]
    fn refuses_sets_that_are_not_to_be_trusted() {
        let position = 0;
        let not_a_key = InvalidKeySet::NotAKey { position };
        let no_key_id = InvalidKeySet::NoKeyId { position };
        let secret = InvalidKeySet::Secret { position };
        let wrong = InvalidKeySet::WrongAlgorithm { position };
        for (key, expected) in [
            (json!({"kid": "a"}), &not_a_key),
            (json!("a"), &not_a_key),
            (with(ed25519("a"), "x", json!("AQ")), &not_a_key),
            (
                with(ed25519("a"), "x", json!(coordinate_text(1) + "=")),
                &not_a_key,
            ),
            (with(p256("a"), "y", json!(null)), &not_a_key),
            (with(ed25519("a"), "use", json!(1)), &not_a_key),
            (with(ed25519("a"), "key_ops", json!("verify")), &not_a_key),
            (with(ed25519("a"), "kid", json!("")), &no_key_id),
            (
                with(ed25519("a"), "kid", json!("k".repeat(129))),
                &no_key_id,
            ),
            (with(ed25519("a"), "d", json!("AQ")), &secret),
            (json!({"kty": "oct", "kid": "a", "k": "AQ"}), &secret),
            (json!({"kty": "oct", "kid": "a"}), &secret),
            (json!({"kty": "RSA", "kid": "a", "d": "AQ"}), &secret),
            (with(ed25519("a"), "alg", json!("ES256")), &wrong),
            (with(p256("a"), "alg", json!("HS256")), &wrong),
        ] {
            assert_eq!(
                parse(std::slice::from_ref(&key)).err().as_ref(),
                Some(expected),
                "{key}"
            );
        }
        let mut unnamed = ed25519("a");
        unnamed.as_object_mut().unwrap().remove("kid");
        assert_eq!(parse(&[unnamed]).err(), Some(no_key_id));
        let twice = parse(&[ed25519("a"), p256("a")]).err();
        assert_eq!(twice, Some(InvalidKeySet::RepeatedKeyId { position: 1 }));
        let rsa = json!({"kty": "RSA", "kid": "a"});
        assert_eq!(
            parse(std::slice::from_ref(&rsa)).err(),
            Some(InvalidKeySet::NoUsableKey)
        );
        assert_eq!(parse(&vec![rsa; 101]).err(), Some(InvalidKeySet::TooMany));
    }

    #[test]
    fn refuses_repeated_members_and_large_files() {
        let repeated = br#"{"keys":[{"kty":"OKP","kty":"OKP"}]}"#;
        assert!(matches!(
            KeySet::parse(repeated),
            Err(InvalidKeySet::Json(_))
        ));
        let large = vec![b' '; MAX_BYTES + 1];
        assert!(matches!(KeySet::parse(&large), Err(InvalidKeySet::Json(_))));
        assert_eq!(KeySet::parse(b"[]").err(), Some(InvalidKeySet::NoList));
        assert_eq!(KeySet::parse(b"{}").err(), Some(InvalidKeySet::NoList));
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..256),
            kind in "(OKP|EC|oct|RSA|)", curve in "(Ed25519|P-256|)", x in "[A-Za-z0-9_=-]{0,44}",
        ) {
            prop_assert!(KeySet::parse(&bytes).is_err());
            let key = json!({"kty": kind, "crv": curve, "kid": "a", "x": x, "y": x});
            if let Ok(set) = parse(&[key]) {
                prop_assert!(!set.find("a").unwrap().verifies(b"message", &[0; 64]));
            }
        }
    }
}
