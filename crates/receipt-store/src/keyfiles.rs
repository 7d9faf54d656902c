//! The store's secrets, from files that only it may read.

use std::path::PathBuf;

use cl_host::secrets::{InvalidKeys, check_distinct, load_pkcs8, load_raw, load_tls, signing_key};
use cl_kv::KeyEncryptionKey;
use cl_model::key::SigningKey;
use cl_model::trust::RECEIPTS;

/// Where each secret is.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The key that signs checkpoints: Ed25519, PKCS#8, PEM or DER.
    pub log: PathBuf,
    /// The key-encryption key of the store: 32 bytes.
    pub sealing: PathBuf,
    /// The private key of the process's certificate; only compared with the others.
    pub tls: PathBuf,
}

/// The secrets of one process, each for one purpose.
#[derive(Debug)]
pub struct Secrets {
    /// What checkpoints are signed with.
    pub log: SigningKey,
    /// What the store is sealed with.
    pub sealing: KeyEncryptionKey,
}

impl KeyFiles {
    /// Loads all secrets, and refuses those that serve two purposes.
    pub fn load(&self) -> Result<Secrets, InvalidKeys> {
        let log = load_pkcs8(&self.log)?;
        let sealing = load_raw(&self.sealing)?;
        let tls = load_tls(&self.tls)?;
        check_distinct(&[
            (self.log.as_path(), log.as_slice()),
            (self.sealing.as_path(), sealing.as_slice()),
            (self.tls.as_path(), tls.as_slice()),
        ])?;
        Ok(Secrets {
            log: signing_key(&self.log, &log, RECEIPTS)?,
            sealing: KeyEncryptionKey::new(sealing),
        })
    }
}
