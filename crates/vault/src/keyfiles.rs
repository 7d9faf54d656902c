//! The vault's secrets, from files that only it may read.

use std::path::PathBuf;

use cl_host::secrets::{InvalidKeys, check_distinct, load_raw, load_tls, seed};
use cl_kv::KeyEncryptionKey;

use crate::core::keys::Keys;

/// Where each secret is: 32 bytes each, but for the certificate's.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The key-encryption key of the subjects' data keys.
    pub kek: PathBuf,
    /// The key-encryption key of the data store.
    pub sealing: PathBuf,
    /// The alias key.
    pub alias: PathBuf,
    /// The subject-tag key.
    pub subject_tag: PathBuf,
    /// The private key of the process's certificate; only compared with the others.
    pub tls: PathBuf,
}

/// The secrets of one process, each for one purpose.
#[derive(Debug)]
pub struct Secrets {
    /// What it names things with.
    pub keys: Keys,
    /// What wraps the subjects' data keys.
    pub kek: KeyEncryptionKey,
    /// What the data store is sealed with.
    pub sealing: KeyEncryptionKey,
}

impl KeyFiles {
    /// Loads all secrets, and refuses those that serve two purposes.
    pub fn load(&self) -> Result<Secrets, InvalidKeys> {
        let kek = load_raw(&self.kek)?;
        let sealing = load_raw(&self.sealing)?;
        let alias = load_raw(&self.alias)?;
        let subject_tag = load_raw(&self.subject_tag)?;
        let tls = load_tls(&self.tls)?;
        check_distinct(&[
            (&self.kek, &*kek),
            (&self.sealing, &*sealing),
            (&self.alias, &*alias),
            (&self.subject_tag, &*subject_tag),
            (&self.tls, &*tls),
        ])?;
        Ok(Secrets {
            keys: Keys::new(
                &seed(&self.alias, &*alias)?,
                &seed(&self.subject_tag, &*subject_tag)?,
            ),
            kek: KeyEncryptionKey::new(kek),
            sealing: KeyEncryptionKey::new(sealing),
        })
    }
}
