//! A token issuer of the tests: keys from seeds, any header, any claims.

use cl_gateway::auth::TokenPolicy;
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair,
};
use serde_json::{Value, json};

use crate::documents::{CLIENT, PRINCIPAL, TENANT};

pub(crate) const ISSUER: &str = "https://tokens.example.org";
pub(crate) const AUDIENCE: &str = "https://gateway.example.org";
/// All that the gateway knows, beside one that it does not.
const SCOPES: &str =
    "openid context.request context.redeem receipt.write receipt.read memory.propose";

pub(crate) const ED25519: &str = "edwards";
pub(crate) const P256: &str = "weierstrass";

pub(crate) struct TokenIssuer {
    ed25519: Ed25519KeyPair,
    stranger: Ed25519KeyPair,
    p256_pkcs8: Vec<u8>,
}

impl TokenIssuer {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Self {
            ed25519: Ed25519KeyPair::from_seed_unchecked(&[0x11; 32]).unwrap(),
            stranger: Ed25519KeyPair::from_seed_unchecked(&[0x22; 32]).unwrap(),
            p256_pkcs8: p256.unwrap().as_ref().to_vec(),
        }
    }

    pub(crate) fn policy() -> TokenPolicy {
        TokenPolicy {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
        }
    }

    pub(crate) fn jwks(&self) -> Value {
        let point = self.p256_point();
        let text = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": ED25519, "use": "sig", "alg": "EdDSA",
             "x": text(self.ed25519.public_key().as_ref())},
            {"kty": "EC", "crv": "P-256", "kid": P256, "alg": "ES256",
             "x": text(&point[1..33]), "y": text(&point[33..])},
        ]})
    }

    /// A key set with the key that signs nothing here.
    pub(crate) fn strangers_jwks(&self) -> Value {
        let x = BASE64URL_NOPAD.encode(self.stranger.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": ED25519, "x": x}]})
    }

    fn p256_point(&self) -> Vec<u8> {
        let pair = self.p256(false);
        pair.public_key().as_ref().to_vec()
    }

    fn p256(&self, is_der: bool) -> EcdsaKeyPair {
        let algorithm = if is_der {
            &ECDSA_P256_SHA256_ASN1_SIGNING
        } else {
            &ECDSA_P256_SHA256_FIXED_SIGNING
        };
        EcdsaKeyPair::from_pkcs8(algorithm, &self.p256_pkcs8, &SystemRandom::new()).unwrap()
    }

    /// Claims that are accepted for the hour after `now_s`.
    pub(crate) fn claims(now_s: i64) -> Value {
        json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": PRINCIPAL, "client_id": CLIENT,
            "tenant": TENANT, "scope": SCOPES, "iat": now_s, "exp": now_s + 3600,
        })
    }

    pub(crate) fn header() -> Value {
        json!({"typ": "at+jwt", "alg": "EdDSA", "kid": ED25519})
    }

    /// An ordinary token.
    pub(crate) fn token(&self, now_s: i64) -> String {
        self.token_with(&Self::claims(now_s))
    }

    pub(crate) fn token_with(&self, claims: &Value) -> String {
        let header = Self::header().to_string();
        self.sign(&header, &claims.to_string(), "ed25519")
    }

    /// Signs any texts as header and payload.
    pub(crate) fn sign(&self, header: &str, payload: &str, signer: &str) -> String {
        let part = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
        let signed = format!("{}.{}", part(header), part(payload));
        let message = signed.as_bytes();
        let hmac = |key: &[u8]| {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
            ring::hmac::sign(&key, message).as_ref().to_vec()
        };
        let es256 = |is_der| {
            let pair = self.p256(is_der);
            let signature = pair.sign(&SystemRandom::new(), message).unwrap();
            signature.as_ref().to_vec()
        };
        let signature = match signer {
            "ed25519" => self.ed25519.sign(message).as_ref().to_vec(),
            "stranger" => self.stranger.sign(message).as_ref().to_vec(),
            "es256" => es256(false),
            "es256_der" => es256(true),
            "zeros" => vec![0; 64],
            "hmac_of_public_key" => hmac(self.ed25519.public_key().as_ref()),
            "hmac_of_point" => hmac(&self.p256_point()),
            "hmac_of_nothing" => hmac(b""),
            "none" => Vec::new(),
            "short" => vec![1; 63],
            other => panic!("no signer {other}"),
        };
        format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}
