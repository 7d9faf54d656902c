//! Keys from files that only their process may read, each for one purpose.

use std::path::{Path, PathBuf};

use cl_model::digest::Digest;
use cl_model::key::{KEY_BYTES, Seed, SigningKey};
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::KeyId;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::files::{self, FileError, MAX_SECRET_BYTES};

/// Reads a key of 32 raw bytes.
pub fn load_raw(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, InvalidKeys> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        return Err(InvalidKeys::malformed(
            path,
            Code::InvalidKeyMaterial.into(),
        ));
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

/// Reads the DER of a PKCS#8 document, from PEM or DER.
pub fn load_pkcs8(path: &Path) -> Result<Zeroizing<Vec<u8>>, InvalidKeys> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    if !bytes.starts_with(b"-----") {
        return Ok(bytes);
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(&bytes).map_err(InvalidKeys::pem(path))?;
    Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec()))
}

/// Reads the DER of a certificate's private key.
pub fn load_tls(path: &Path) -> Result<Zeroizing<Vec<u8>>, InvalidKeys> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(InvalidKeys::pem(path))?;
    Ok(Zeroizing::new(key.secret_der().to_vec()))
}

/// The signing key of a PKCS#8 document, under an id that follows from its purpose and its public
/// half: `urn:cl:key:<purpose>:<SHA-256 of the public key>`.
pub fn signing_key(path: &Path, document: &[u8], purpose: &str) -> Result<SigningKey, InvalidKeys> {
    let malformed = |refusal| InvalidKeys::malformed(path, refusal);
    let key_id = |text: String| KeyId::new(text).ok_or(Code::InvalidKeyId.into());
    let unnamed = key_id("unnamed".to_owned()).map_err(malformed)?;
    let key = SigningKey::from_pkcs8(unnamed, document).map_err(malformed)?;
    let digest = Digest::of_bytes(key.public_key().as_bytes());
    let kid = key_id(format!("urn:cl:key:{purpose}:{}", digest.to_hex())).map_err(malformed)?;
    SigningKey::from_pkcs8(kid, document).map_err(malformed)
}

/// The seed of a secret of 32 bytes.
pub fn seed(path: &Path, bytes: &[u8]) -> Result<Seed, InvalidKeys> {
    Seed::new(bytes).map_err(|refusal| InvalidKeys::malformed(path, refusal))
}

/// Refuses secrets that serve two purposes.
///
/// A PKCS#8 document holds its seed as it is, so sharing shows as one secret inside another.
pub fn check_distinct(secrets: &[(&Path, &[u8])]) -> Result<(), InvalidKeys> {
    for (position, (one, first)) in secrets.iter().enumerate() {
        for (other, second) in &secrets[position + 1..] {
            if holds(first, second) || holds(second, first) {
                return Err(InvalidKeys::Shared {
                    one: (*one).to_owned(),
                    other: (*other).to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn holds(outer: &[u8], inner: &[u8]) -> bool {
    !inner.is_empty() && outer.windows(inner.len()).any(|window| window == inner)
}

/// Why secrets cannot be used. Names files, never contents.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeys {
    /// A file was not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is no PEM of a private key.
    #[error("{path}: {source}", path = path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// A file holds no key of its kind.
    #[error("{path}: {refusal}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        refusal: Refusal,
    },
    /// One key would serve two purposes.
    #[error("{one} and {other} hold the same key", one = one.display(), other = other.display())]
    Shared {
        /// A file.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
}

impl InvalidKeys {
    /// A file with something else than a key of its kind.
    pub fn malformed(path: &Path, refusal: Refusal) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            refusal,
        }
    }

    fn pem(path: &Path) -> impl FnOnce(pem::Error) -> Self {
        move |source| Self::Pem {
            path: path.to_owned(),
            source,
        }
    }
}
