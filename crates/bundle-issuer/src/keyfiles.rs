//! The issuer's secrets, from files that only it may read.

use std::path::PathBuf;

use cl_host::secrets::{InvalidKeys, check_distinct, load_pkcs8, load_raw, load_tls, signing_key};
use cl_kv::KeyEncryptionKey;

use crate::core::keys::Keys;

/// Where each secret is.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The bundle key: Ed25519, PKCS#8, PEM or DER.
    pub bundle: PathBuf,
    /// The notes key, likewise.
    pub notes: PathBuf,
    /// The key-encryption key of the store: 32 bytes.
    pub sealing: PathBuf,
    /// The private key of the process's certificate; only compared with the others.
    pub tls: PathBuf,
}

/// The secrets of one process, each for one purpose.
#[derive(Debug)]
pub struct Secrets {
    /// What it signs with.
    pub keys: Keys,
    /// What its store is sealed with.
    pub sealing: KeyEncryptionKey,
}

impl KeyFiles {
    /// Loads all secrets, and refuses those that serve two purposes.
    pub fn load(&self) -> Result<Secrets, InvalidKeys> {
        let bundle = load_pkcs8(&self.bundle)?;
        let notes = load_pkcs8(&self.notes)?;
        let sealing = load_raw(&self.sealing)?;
        let tls = load_tls(&self.tls)?;
        check_distinct(&[
            (self.bundle.as_path(), bundle.as_slice()),
            (self.notes.as_path(), notes.as_slice()),
            (self.sealing.as_path(), sealing.as_slice()),
            (self.tls.as_path(), tls.as_slice()),
        ])?;
        Ok(Secrets {
            keys: Keys {
                bundle: signing_key(&self.bundle, &bundle, "bundle")?,
                notes: signing_key(&self.notes, &notes, "notes")?,
            },
            sealing: KeyEncryptionKey::new(sealing),
        })
    }
}
