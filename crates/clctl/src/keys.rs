//! The keys of a home: making them, and loading the one that this program uses itself.

use std::path::Path;

use cl_host::files::{self, MAX_SECRET_BYTES};
use cl_host::ids::{Ids, NoRandomness};
use cl_model::digest::Digest;
use cl_model::key::{KEY_BYTES, SigningKey};
use cl_model::refusal::Code;
use cl_model::scalar::KeyId;
use cl_model::trust::POLICY_SNAPSHOT;
use data_encoding::BASE64;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::home::Home;

/// What an Ed25519 key is for; names its file, and is part of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Decisions and grants.
    Decision,
    /// Bundles.
    Bundle,
    /// Disclosure notes.
    Notes,
    /// Checkpoints of the receipt logs.
    Receipts,
    /// Policy snapshots, by an operator.
    PolicySnapshot,
    /// Access tokens of the local issuer.
    Token,
}

impl Purpose {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Bundle => "bundle",
            Self::Notes => "notes",
            Self::Receipts => "receipts",
            Self::PolicySnapshot => POLICY_SNAPSHOT,
            Self::Token => "token",
        }
    }

    pub(crate) fn file(self) -> String {
        format!("{}.pem", self.as_str())
    }
}

/// A fresh Ed25519 key.
pub(crate) struct Made {
    pub(crate) key: SigningKey,
    /// PKCS#8, PEM.
    pub(crate) pem: Zeroizing<String>,
}

/// Makes an Ed25519 key.
pub(crate) fn make(purpose: Purpose) -> Result<Made, Error> {
    let document =
        Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| NoRandomness)?;
    // The document does not wipe itself.
    let document = Zeroizing::new(document.as_ref().to_vec());
    let key = signing_key(purpose, &document).map_err(|_| NoRandomness)?;
    Ok(Made {
        key,
        pem: to_pem(&document),
    })
}

/// Loads an Ed25519 key of the home.
pub(crate) fn load(home: &Home, purpose: Purpose) -> Result<SigningKey, Error> {
    load_from(&home.key(&purpose.file()), purpose)
}

/// Loads an Ed25519 key of a file.
pub(crate) fn load_from(path: &Path, purpose: Purpose) -> Result<SigningKey, Error> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    let key = PrivatePkcs8KeyDer::from_pem_slice(&bytes).map_err(|_| malformed(path))?;
    let document = Zeroizing::new(key.secret_pkcs8_der().to_vec());
    signing_key(purpose, &document).map_err(|_| malformed(path))
}

/// Makes a secret of 32 random bytes.
pub(crate) fn random(ids: &dyn Ids) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    ids.fill(bytes.as_mut())?;
    Ok(bytes)
}

/// The key under the id that follows from its public half.
fn signing_key(purpose: Purpose, document: &[u8]) -> Result<SigningKey, Code> {
    let kid = |tail: &str| {
        let kid = format!("urn:cl:key:{}:{tail}", purpose.as_str());
        KeyId::new(kid).ok_or(Code::InvalidKeyId)
    };
    let load = |kid| SigningKey::from_pkcs8(kid, document).map_err(|refusal| refusal.code());
    let public = load(kid("unnamed")?)?.public_key();
    load(kid(&Digest::of_bytes(public.as_bytes()).to_hex())?)
}

fn malformed(path: &Path) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        expected: "an Ed25519 key, PKCS#8, PEM",
    }
}

fn to_pem(document: &[u8]) -> Zeroizing<String> {
    const LINE: usize = 64;

    let base64 = Zeroizing::new(BASE64.encode(document));
    // Reserved at once: growing would leave unwiped copies behind.
    let mut pem = Zeroizing::new(String::with_capacity(2 * base64.len() + 64));
    pem.push_str("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{self, Access};

    #[test]
    fn a_made_key_loads_as_itself() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        home::make_folder(&folder.path().join("keys")).unwrap();
        let made = make(Purpose::Token).unwrap();
        let path = home.key("token.pem");
        home::write(&path, made.pem.as_bytes(), Access::Secret).unwrap();
        let loaded = load(&home, Purpose::Token).unwrap();
        assert_eq!(loaded.public_key(), made.key.public_key());
        assert!(loaded.kid().as_str().starts_with("urn:cl:key:token:"));
    }

    #[test]
    fn refuses_what_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        home::make_folder(&folder.path().join("keys")).unwrap();
        let path = home.key("token.pem");
        for bad in [&b"secret text"[..], to_pem(&[7; 48]).as_bytes()] {
            home::write(&path, bad, Access::Secret).unwrap();
            let error = load(&home, Purpose::Token).unwrap_err();
            assert!(matches!(error, Error::Malformed { .. }), "{error}");
            assert!(!error.to_string().contains("secret text"));
        }
    }
}
