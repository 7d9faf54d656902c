//! Keys and signatures of the synthetic cases.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::Value;

use super::canonical;
use super::failure::Failure;

/// The pair that belongs to a published 32-byte test seed.
pub(crate) struct SyntheticKey {
    seed: Vec<u8>,
    public: Vec<u8>,
}

impl SyntheticKey {
    pub(crate) fn from_seed_hex(seed_hex: &str) -> Result<Self, Failure> {
        let seed = HEXLOWER_PERMISSIVE
            .decode(seed_hex.as_bytes())
            .map_err(|_| Failure::KeyMaterial)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| Failure::KeyMaterial)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { seed, public })
    }

    pub(crate) fn public_hex(&self) -> String {
        HEXLOWER_PERMISSIVE.encode(&self.public)
    }

    /// Verifies a signature, 86 characters of unpadded base64url, over the canonical text.
    pub(crate) fn verify(
        &self,
        value: &Value,
        signature: &str,
        signed: &'static str,
    ) -> Result<(), Failure> {
        let signature = BASE64URL_NOPAD
            .decode(signature.as_bytes())
            .map_err(|_| Failure::Signature { signed })?;
        UnparsedPublicKey::new(&ED25519, &self.public)
            .verify(canonical::text(value).as_bytes(), &signature)
            .map_err(|_| Failure::Signature { signed })
    }

    /// The legacy authentication code over the canonical text, keyed with the seed bytes.
    pub(crate) fn legacy_mac(&self, value: &Value) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.seed);
        let mac = hmac::sign(&key, canonical::text(value).as_bytes());
        BASE64URL_NOPAD.encode(mac.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SyntheticKey;

    const SIGNATURE: &str =
        "tBhNOCOx2QYO0vIAv1Ut-S1LGGgZsTysY4Mgf3g7Wm8kSJt4UxSUZSt-qd5XG9bmx-4DmRuYokRwCBz2c-7yBg";

    #[test]
    fn derives_the_published_public_key() {
        let key = SyntheticKey::from_seed_hex(&"5a".repeat(32)).unwrap();
        assert_eq!(
            key.public_hex(),
            "0d7550754e0800a5d237eef5826035766b9b3e5a15868a940ab289958788e3b0"
        );
    }

    #[test]
    fn verifies_a_known_signature_and_no_other() {
        let key = SyntheticKey::from_seed_hex(&"11".repeat(32)).unwrap();
        let signed = json!({
            "\u{e000}": "last",
            "\u{1f600}": "\u{10000}",
            "a": ["\u{1f600}", "e\u{301}"],
        });
        assert_eq!(key.verify(&signed, SIGNATURE, "case"), Ok(()));
        assert!(key.verify(&json!({}), SIGNATURE, "case").is_err());
        assert!(key.verify(&signed, &"A".repeat(86), "case").is_err());
        assert!(key.verify(&signed, &SIGNATURE[1..], "case").is_err());
    }

    #[test]
    fn refuses_a_seed_that_is_not_32_bytes_of_hex() {
        assert!(SyntheticKey::from_seed_hex("5a").is_err());
        assert!(SyntheticKey::from_seed_hex(&"zz".repeat(32)).is_err());
    }
}
