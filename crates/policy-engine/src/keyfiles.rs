//! The engine's secrets, from files that only it may read.

use std::path::{Path, PathBuf};

use cl_host::files::{self, FileError, MAX_SECRET_BYTES};
use cl_kv::KeyEncryptionKey;
use cl_model::digest::Digest;
use cl_model::key::{KEY_BYTES, Seed, SigningKey};
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::KeyId;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::core::keys::Keys;

/// Where each secret is.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The decision key: Ed25519, PKCS#8, PEM or DER.
    pub decision: PathBuf,
    /// The alias key: 32 bytes.
    pub alias: PathBuf,
    /// The subject-tag key: 32 bytes.
    pub subject_tag: PathBuf,
    /// The key-encryption key of the store: 32 bytes.
    pub sealing: PathBuf,
    /// The private key of the process's certificate; only compared with the others.
    pub tls: PathBuf,
}

/// The secrets of one process, each for one purpose.
#[derive(Debug)]
pub struct Secrets {
    /// What it decides with.
    pub keys: Keys,
    /// What its store is sealed with.
    pub sealing: KeyEncryptionKey,
}

impl KeyFiles {
    /// Loads all secrets, and refuses those that serve two purposes.
    pub fn load(&self) -> Result<Secrets, InvalidKeys> {
        let decision = load_pkcs8(&self.decision)?;
        let alias = load_raw(&self.alias)?;
        let subject_tag = load_raw(&self.subject_tag)?;
        let sealing = load_raw(&self.sealing)?;
        let tls = load_tls(&self.tls)?;
        check_distinct(&[
            (&self.decision, &*decision),
            (&self.alias, &*alias),
            (&self.subject_tag, &*subject_tag),
            (&self.sealing, &*sealing),
            (&self.tls, &*tls),
        ])?;
        let decision = signing_key(&self.decision, &decision)?;
        let seed = |path: &Path, bytes: &[u8]| {
            Seed::new(bytes).map_err(|refusal| InvalidKeys::malformed(path, refusal))
        };
        let alias = seed(&self.alias, &*alias)?;
        let subject_tag = seed(&self.subject_tag, &*subject_tag)?;
        Ok(Secrets {
            keys: Keys::new(decision, &alias, &subject_tag),
            sealing: KeyEncryptionKey::new(sealing),
        })
    }
}

/// The decision key, under an id that follows from its public half.
fn signing_key(path: &Path, document: &[u8]) -> Result<SigningKey, InvalidKeys> {
    let malformed = |refusal| InvalidKeys::malformed(path, refusal);
    let key_id = |text: String| KeyId::new(text).ok_or(Code::InvalidKeyId.into());
    let unnamed = key_id("unnamed".to_owned()).map_err(malformed)?;
    let key = SigningKey::from_pkcs8(unnamed, document).map_err(malformed)?;
    let digest = Digest::of_bytes(key.public_key().as_bytes());
    let kid = key_id(format!("urn:cl:key:decision:{}", digest.to_hex())).map_err(malformed)?;
    SigningKey::from_pkcs8(kid, document).map_err(malformed)
}

fn load_pkcs8(path: &Path) -> Result<Zeroizing<Vec<u8>>, InvalidKeys> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    if !bytes.starts_with(b"-----") {
        return Ok(bytes);
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(&bytes).map_err(|source| InvalidKeys::Pem {
        path: path.to_owned(),
        source,
    })?;
    Ok(Zeroizing::new(key.secret_pkcs8_der().to_vec()))
}

fn load_tls(path: &Path) -> Result<Zeroizing<Vec<u8>>, InvalidKeys> {
    let bytes = files::load_secret(path, MAX_SECRET_BYTES)?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|source| InvalidKeys::Pem {
        path: path.to_owned(),
        source,
    })?;
    Ok(Zeroizing::new(key.secret_der().to_vec()))
}

fn load_raw(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, InvalidKeys> {
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

/// A PKCS#8 document holds its seed as it is, so sharing shows as one secret inside another.
fn check_distinct(secrets: &[(&PathBuf, &[u8])]) -> Result<(), InvalidKeys> {
    for (position, (one, first)) in secrets.iter().enumerate() {
        for (other, second) in &secrets[position + 1..] {
            if holds(first, second) || holds(second, first) {
                return Err(InvalidKeys::Shared {
                    one: (*one).clone(),
                    other: (*other).clone(),
                });
            }
        }
    }
    Ok(())
}

fn holds(outer: &[u8], inner: &[u8]) -> bool {
    !inner.is_empty() && outer.windows(inner.len()).any(|window| window == inner)
}

/// Why the secrets cannot be used. Names files, never contents.
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
    fn malformed(path: &Path, refusal: Refusal) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use ring::rand::SystemRandom;
    use ring::signature::Ed25519KeyPair;
    use tempfile::TempDir;

    use super::*;

    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            folder.write("decision", document.as_ref());
            folder.write("alias", &[1; 32]);
            folder.write("subject_tag", &[2; 32]);
            folder.write("sealing", &[3; 32]);
            let validity = cl_pki::Validity {
                not_before_unix_s: 0,
                not_after_unix_s: 1,
            };
            let tls = cl_pki::Authority::new("test", validity).unwrap();
            folder.write("tls", tls.key_pem().as_bytes());
            folder
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, bytes: &[u8]) {
            fs::write(self.path(name), bytes).unwrap();
            fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
        }

        fn load(&self) -> Result<Secrets, InvalidKeys> {
            KeyFiles {
                decision: self.path("decision"),
                alias: self.path("alias"),
                subject_tag: self.path("subject_tag"),
                sealing: self.path("sealing"),
                tls: self.path("tls"),
            }
            .load()
        }
    }

    #[test]
    fn the_key_id_follows_from_the_key() {
        let folder = Folder::new();
        let kid = |folder: &Folder| folder.load().unwrap().keys.decision.kid().clone();
        assert_eq!(kid(&folder), kid(&folder));
        assert_ne!(kid(&folder), kid(&Folder::new()));
    }

    #[test]
    fn refuses_a_key_with_two_purposes() {
        for (name, same) in [("alias", 2), ("subject_tag", 3), ("sealing", 1)] {
            let folder = Folder::new();
            folder.write(name, &[same; 32]);
            let error = folder.load().unwrap_err();
            assert!(
                matches!(error, InvalidKeys::Shared { .. }),
                "{name}: {error}"
            );
        }
        let folder = Folder::new();
        // The seed within a PKCS#8 document of Ed25519.
        let document = fs::read(folder.path("decision")).unwrap();
        folder.write("alias", &document[16..48]);
        assert!(matches!(folder.load(), Err(InvalidKeys::Shared { .. })));
    }

    #[test]
    fn refuses_malformed_and_exposed_files() {
        let folder = Folder::new();
        folder.write("alias", &[1; 31]);
        assert!(matches!(folder.load(), Err(InvalidKeys::Malformed { .. })));
        let folder = Folder::new();
        folder.write("decision", b"-----BEGIN NOTHING");
        assert!(matches!(folder.load(), Err(InvalidKeys::Pem { .. })));
        let folder = Folder::new();
        fs::set_permissions(folder.path("alias"), Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(folder.load(), Err(InvalidKeys::File(_))));
    }
}
