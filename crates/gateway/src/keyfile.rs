//! The issuer's key set as a file that is read again when it changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cl_host::files::{self, FileError};
use tokio_util::sync::CancellationToken;

use crate::auth::KeySet;
use crate::auth::jwks::{InvalidKeySet, MAX_BYTES};

/// A key set, and the file it is from.
#[derive(Debug)]
pub struct KeySetFile {
    path: PathBuf,
    current: ArcSwap<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    bytes: Vec<u8>,
    keys: Arc<KeySet>,
}

/// What a look at the file led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The contents are as before.
    Unchanged,
    /// Tokens are verified by the new contents.
    Swapped,
}

/// Why a file holds no key set to trust.
#[derive(Debug, thiserror::Error)]
pub enum KeySetFileError {
    /// It was not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It was refused.
    #[error("{path}: {cause}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: InvalidKeySet,
    },
}

impl KeySetFile {
    /// Reads and checks the file.
    pub fn load(path: PathBuf) -> Result<Self, KeySetFileError> {
        let loaded = read(&path)?;
        let keys = parse(&path, loaded)?;
        Ok(Self {
            path,
            current: ArcSwap::from_pointee(keys),
        })
    }

    /// The keys to verify by.
    pub fn current(&self) -> Arc<KeySet> {
        Arc::clone(&self.current.load().keys)
    }

    /// Looks at the file again. After an error the old keys stay in use.
    pub fn reload(&self) -> Result<Reloaded, KeySetFileError> {
        let bytes = read(&self.path)?;
        if bytes == self.current.load().bytes {
            return Ok(Reloaded::Unchanged);
        }
        self.current.store(Arc::new(parse(&self.path, bytes)?));
        Ok(Reloaded::Swapped)
    }

    /// Reloads every `interval` until `stop`.
    pub async fn watch(self: Arc<Self>, interval: Duration, stop: CancellationToken) {
        let pause = || stop.run_until_cancelled(tokio::time::sleep(interval));
        while pause().await.is_some() {
            let this = Arc::clone(&self);
            match tokio::task::spawn_blocking(move || this.reload()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::error!(%error, "key set not reloaded, the old one stays in use");
                }
                Err(_) => tracing::error!("looking at the key set panicked"),
            }
        }
    }
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, KeySetFileError> {
    let max_bytes = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    Ok(files::load_public(path, max_bytes)?)
}

fn parse(path: &std::path::Path, bytes: Vec<u8>) -> Result<Loaded, KeySetFileError> {
    let keys = KeySet::parse(&bytes).map_err(|cause| KeySetFileError::Invalid {
        path: path.to_owned(),
        cause,
    })?;
    if keys.left_out() > 0 {
        tracing::warn!(
            left_out = keys.left_out(),
            "keys of other kinds are left out"
        );
    }
    tracing::info!(usable = keys.usable(), "key set loaded");
    Ok(Loaded {
        bytes,
        keys: Arc::new(keys),
    })
}
