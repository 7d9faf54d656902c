//! The engine's secrets, from files that only it may read.

use std::path::PathBuf;

use cl_host::secrets::{
    InvalidKeys, check_distinct, load_pkcs8, load_raw, load_tls, seed, signing_key,
};
use cl_kv::KeyEncryptionKey;

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
            (self.decision.as_path(), decision.as_slice()),
            (self.alias.as_path(), alias.as_slice()),
            (self.subject_tag.as_path(), subject_tag.as_slice()),
            (self.sealing.as_path(), sealing.as_slice()),
            (self.tls.as_path(), tls.as_slice()),
        ])?;
        let decision = signing_key(&self.decision, &decision, "decision")?;
        let alias = seed(&self.alias, alias.as_slice())?;
        let subject_tag = seed(&self.subject_tag, subject_tag.as_slice())?;
        Ok(Secrets {
            keys: Keys::new(decision, &alias, &subject_tag),
            sealing: KeyEncryptionKey::new(sealing),
        })
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
