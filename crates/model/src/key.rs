//! Keys and signatures: Ed25519 and HMAC-SHA-256, by `ring` alone.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::refusal::{Code, Refusal};
use crate::scalar::KeyId;

/// Length of a seed and of a public key, in bytes.
pub const KEY_BYTES: usize = 32;

/// Length of an Ed25519 signature, in bytes.
pub const SIGNATURE_BYTES: usize = 64;

/// Secret bytes of one key: wiped when dropped, never printed.
pub struct Seed(Zeroizing<[u8; KEY_BYTES]>);

impl Seed {
    /// A seed of exactly 32 bytes. The caller wipes its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidKeyMaterial`] for any other length.
    pub fn new(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return Err(Code::InvalidKeyMaterial.into());
        }
        seed.copy_from_slice(bytes);
        Ok(Self(seed))
    }

    /// A seed from 64 hex digits.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidKeyMaterial`] for anything else.
    pub fn from_hex(hex: &str) -> Result<Self, Refusal> {
        Self::new(&Zeroizing::new(decode_hex(hex)?))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seed(..)")
    }
}

fn decode_hex(hex: &str) -> Result<Vec<u8>, Refusal> {
    HEXLOWER_PERMISSIVE
        .decode(hex.as_bytes())
        .map_err(|_| Code::InvalidKeyMaterial.into())
}

/// An Ed25519 key that signs.
pub struct SigningKey {
    kid: KeyId,
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// The key of a seed.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidKeyMaterial`] if `ring` refuses the seed.
    pub fn from_seed(kid: KeyId, seed: &Seed) -> Result<Self, Refusal> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.0.as_slice())
            .map_err(|_| Code::InvalidKeyMaterial)?;
        Ok(Self { kid, pair })
    }

    /// The key of a PKCS#8 document, version 1 or 2.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidKeyMaterial`] if the document is malformed or of another algorithm.
    pub fn from_pkcs8(kid: KeyId, document: &[u8]) -> Result<Self, Refusal> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(document)
            .map_err(|_| Code::InvalidKeyMaterial)?;
        Ok(Self { kid, pair })
    }

    /// The key's id.
    pub const fn kid(&self) -> &KeyId {
        &self.kid
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey {
            kid: self.kid.clone(),
            bytes,
        }
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Signature {
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(self.pair.sign(message).as_ref());
        Signature(bytes)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.kid)
    }
}

/// An Ed25519 key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kid: KeyId,
    bytes: [u8; KEY_BYTES],
}

impl PublicKey {
    /// The key of 32 raw bytes.
    pub const fn new(kid: KeyId, bytes: [u8; KEY_BYTES]) -> Self {
        Self { kid, bytes }
    }

    /// The key of 64 hex digits.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidKeyMaterial`] for anything else.
    pub fn from_hex(kid: KeyId, hex: &str) -> Result<Self, Refusal> {
        let bytes = decode_hex(hex)?
            .try_into()
            .map_err(|_| Code::InvalidKeyMaterial)?;
        Ok(Self { kid, bytes })
    }

    /// The key's id.
    pub const fn kid(&self) -> &KeyId {
        &self.kid
    }

    /// The 32 raw bytes.
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Whether `signature` is this key's signature of `message`.
    pub fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes)
            .verify(message, &signature.0)
            .is_ok()
    }
}

/// An Ed25519 signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_BYTES]);

impl Signature {
    /// The signature of 64 raw bytes.
    pub const fn new(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        Self(bytes)
    }

    /// Parses unpadded base64url whose last character has no stray bits.
    pub fn from_base64url(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Unpadded base64url: 86 characters.
    pub fn to_base64url(&self) -> String {
        BASE64URL_NOPAD.encode(&self.0)
    }

    /// The 64 raw bytes.
    pub const fn as_bytes(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.0
    }
}

/// A secret for HMAC-SHA-256: aliases, subject tags and retired bundle authentication.
pub struct MacKey(hmac::Key);

impl MacKey {
    /// The key of a seed.
    pub fn from_seed(seed: &Seed) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, seed.0.as_slice()))
    }

    /// The tag of a message.
    pub fn tag(&self, message: &[u8]) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(hmac::sign(&self.0, message).as_ref());
        bytes
    }

    /// Whether `tag` is the tag of `message`, in constant time.
    pub fn verifies(&self, message: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.0, message, tag).is_ok()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MacKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;
    use serde_json::json;

    fn kid() -> KeyId {
        KeyId::new("urn:cl:key:test").expect("a key id")
    }

    fn key(byte: u8) -> SigningKey {
        let seed = Seed::new(&[byte; KEY_BYTES]).expect("32 bytes");
        SigningKey::from_seed(kid(), &seed).expect("a key")
    }

    #[test]
    fn signs_the_known_answer_with_astral_characters() {
        let value = json!({
            "\u{E000}": "last",
            "\u{1F600}": "\u{10000}",
            "a": ["\u{1F600}", "e\u{301}"],
        });
        let signature = key(0x11).sign(canonical::to_text(&value).as_bytes());
        assert_eq!(
            signature.to_base64url(),
            "tBhNOCOx2QYO0vIAv1Ut-S1LGGgZsTysY4Mgf3g7Wm8kSJt4UxSUZSt-qd5XG9bmx-4DmRuYokRwCBz2c-7yBg"
        );
    }

    #[test]
    fn verifies_only_its_own_signature_of_the_same_message() {
        let signature = key(1).sign(b"message");
        assert!(key(1).public_key().verifies(b"message", &signature));
        assert!(!key(1).public_key().verifies(b"massage", &signature));
        assert!(!key(2).public_key().verifies(b"message", &signature));
    }

    #[test]
    fn reads_signatures_in_one_spelling() {
        let text = key(1).sign(b"m").to_base64url();
        assert_eq!(text.len(), 86);
        assert!(Signature::from_base64url(&text).is_some());
        // The last of 86 characters carries two unused bits.
        let stray = format!("{}{}", &text[..85], "B");
        assert!(Signature::from_base64url(&stray).is_none());
        assert!(Signature::from_base64url(&format!("{text}==")).is_none());
        assert!(Signature::from_base64url(&text[..84]).is_none());
    }

    #[test]
    fn never_prints_secrets() {
        let seed = Seed::new(&[0x5a; KEY_BYTES]).expect("32 bytes");
        let printed = format!("{seed:?} {:?} {:?}", key(0x5a), MacKey::from_seed(&seed));
        assert_eq!(printed, "Seed(..) SigningKey(urn:cl:key:test) MacKey(..)");
    }

    #[test]
    fn refuses_seeds_of_another_length() {
        assert!(Seed::new(&[0; 31]).is_err());
        assert!(Seed::from_hex("zz").is_err());
        assert!(Seed::from_hex(&"5a".repeat(32)).is_ok());
        assert!(PublicKey::from_hex(kid(), &"00".repeat(33)).is_err());
    }
}
