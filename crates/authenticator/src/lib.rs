//! A passkey authenticator and its browser in software, so that tests answer challenges as people do.
//!
//! **Role.** It makes credentials and signs challenges as WebAuthn has it, and as wrongly as a test
//! wants: every part of an answer can be changed before it is signed.
//!
//! **Holds.** The keys of its credentials, in memory only.
//!
//! **Trusts.** The test.
//!
//! **A compromise yields** nothing: no service depends on it.

#![deny(missing_docs)]

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// The user is there.
pub const USER_PRESENT: u8 = 1;
/// The user was recognised.
pub const USER_VERIFIED: u8 = 1 << 2;
/// The credential can be copied.
pub const BACKUP_ELIGIBLE: u8 = 1 << 3;
/// The credential was copied.
pub const BACKUP_STATE: u8 = 1 << 4;
/// A credential follows.
pub const ATTESTED: u8 = 1 << 6;

/// `ring` gave no key, signature or random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key, signature or random bytes")]
pub struct NoKey;

enum Key {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// One credential on one authenticator, and the browser before it.
pub struct Authenticator {
    key: Key,
    id: Vec<u8>,
    page: Page,
    /// The flags of its next answer.
    pub flags: u8,
    /// The counter of its next answer; [`Authenticator::sign`] leaves it as it is.
    pub counter: u32,
}

/// What the browser says about the page that asks.
#[derive(Clone, Debug)]
pub struct Page {
    /// The relying party id that the authenticator hashes.
    pub rp_id: String,
    /// The page's origin.
    pub origin: String,
    /// `type`, unless it is the ceremony's own.
    pub kind: Option<String>,
    /// Further members of `clientDataJSON`.
    pub members: Vec<(String, Value)>,
}

/// A new credential, as a browser returns it.
#[derive(Clone, Debug)]
pub struct Created {
    /// `clientDataJSON`.
    pub client_data: Vec<u8>,
    /// `attestationObject`.
    pub attestation_object: Vec<u8>,
}

/// A signed challenge, as a browser returns it.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The credential's id.
    pub credential_id: Vec<u8>,
    /// `clientDataJSON`.
    pub client_data: Vec<u8>,
    /// `authenticatorData`.
    pub authenticator_data: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Page {
    /// An ordinary page.
    pub fn new(rp_id: &str, origin: &str) -> Self {
        Self {
            rp_id: rp_id.to_owned(),
            origin: origin.to_owned(),
            kind: None,
            members: Vec::new(),
        }
    }

    fn client_data(&self, kind: &str, challenge: &[u8]) -> Vec<u8> {
        let mut value = json!({
            "type": self.kind.as_deref().unwrap_or(kind),
            "challenge": BASE64URL_NOPAD.encode(challenge),
            "origin": self.origin,
            "crossOrigin": false,
        });
        for (name, member) in &self.members {
            value[name] = member.clone();
        }
        value.to_string().into_bytes()
    }
}

impl Authenticator {
    /// An authenticator with an ES256 key.
    pub fn p256(page: Page) -> Result<Self, NoKey> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| NoKey)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        Self::with_key(Key::P256(pair.map_err(|_| NoKey)?), page)
    }

    /// An authenticator with an EdDSA key.
    pub fn ed25519(page: Page) -> Result<Self, NoKey> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| NoKey)?;
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|_| NoKey)?;
        Self::with_key(Key::Ed25519(pair), page)
    }

    fn with_key(key: Key, page: Page) -> Result<Self, NoKey> {
        let mut id = vec![0; 32];
        SystemRandom::new().fill(&mut id).map_err(|_| NoKey)?;
        Ok(Self {
            key,
            id,
            page,
            flags: USER_PRESENT | USER_VERIFIED,
            counter: 0,
        })
    }

    /// The credential's id.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The page that the browser shows.
    pub fn page(&self) -> Page {
        self.page.clone()
    }

    /// The public key as COSE has it.
    pub fn cose_key(&self) -> Vec<u8> {
        match &self.key {
            Key::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                let mut key = vec![0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
                key.extend_from_slice(x);
                key.extend_from_slice(&[0x22, 0x58, 0x20]);
                key.extend_from_slice(y);
                key
            }
            Key::Ed25519(pair) => {
                let mut key = vec![0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20];
                key.extend_from_slice(pair.public_key().as_ref());
                key
            }
        }
    }

    /// Makes the credential known, with no attestation.
    pub fn create(&self, challenge: &[u8]) -> Created {
        self.create_on(&self.page, challenge)
    }

    /// As [`Authenticator::create`], on another page.
    pub fn create_on(&self, page: &Page, challenge: &[u8]) -> Created {
        let mut data = self.authenticator_data(page, self.flags | ATTESTED);
        data.extend_from_slice(&[0; 16]);
        data.extend_from_slice(&u16::try_from(self.id.len()).unwrap_or(0).to_be_bytes());
        data.extend_from_slice(&self.id);
        data.extend_from_slice(&self.cose_key());
        let mut object = vec![0xa3];
        object.extend_from_slice(b"\x63fmt\x64none\x67attStmt\xa0\x68authData\x59");
        object.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
        object.extend_from_slice(&data);
        Created {
            client_data: page.client_data("webauthn.create", challenge),
            attestation_object: object,
        }
    }

    /// Signs a challenge.
    pub fn sign(&self, challenge: &[u8]) -> Result<Signed, NoKey> {
        self.sign_on(&self.page, challenge)
    }

    /// As [`Authenticator::sign`], on another page.
    pub fn sign_on(&self, page: &Page, challenge: &[u8]) -> Result<Signed, NoKey> {
        let client_data = page.client_data("webauthn.get", challenge);
        let authenticator_data = self.authenticator_data(page, self.flags);
        let mut message = authenticator_data.clone();
        message.extend_from_slice(digest(&SHA256, &client_data).as_ref());
        Ok(Signed {
            credential_id: self.id.clone(),
            client_data,
            authenticator_data,
            signature: self.signature(&message)?,
        })
    }

    /// Signs any message with the credential's key.
    pub fn signature(&self, message: &[u8]) -> Result<Vec<u8>, NoKey> {
        match &self.key {
            Key::P256(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| NoKey),
            Key::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    fn authenticator_data(&self, page: &Page, flags: u8) -> Vec<u8> {
        let mut data = digest(&SHA256, page.rp_id.as_bytes()).as_ref().to_vec();
        data.push(flags);
        data.extend_from_slice(&self.counter.to_be_bytes());
        data
    }
}
