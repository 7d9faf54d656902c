//! The deployment's public keys, read again when their file changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cl_model::document::TrustedKeys;
use cl_model::key::PublicKey;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::trust::{MAX_TRUST_BYTES, TrustFile};
use tokio_util::sync::CancellationToken;

use crate::files::{self, FileError};

/// The keys in `trust.json`, as they are now.
///
/// A file that cannot be read or does not parse leaves the keys before it in use: a typing error
/// must not stop a service, and a revocation shows in the log when it did not take.
#[derive(Debug)]
pub struct Trust {
    path: PathBuf,
    current: ArcSwap<TrustFile>,
}

impl Trust {
    /// Reads the file for the first time.
    pub fn load(path: PathBuf) -> Result<Arc<Self>, InvalidTrust> {
        let current = ArcSwap::from_pointee(read(&path)?);
        Ok(Arc::new(Self { path, current }))
    }

    /// Reads the file again.
    pub fn reload(&self) -> Result<(), InvalidTrust> {
        let file = read(&self.path).inspect_err(|error| {
            tracing::error!(%error, "trusted keys not reloaded, the old ones stay in use");
        })?;
        if file != **self.current.load() {
            tracing::info!(keys = file.keys.len(), "trusted keys reloaded");
            self.current.store(Arc::new(file));
        }
        Ok(())
    }

    /// Reloads every `interval` until `stop`.
    pub async fn watch(self: Arc<Self>, interval: Duration, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(interval))
            .await
            .is_some()
        {
            let this = Arc::clone(&self);
            // The error is logged where it arises. The file may sit on a slow mount.
            let looked = tokio::task::spawn_blocking(move || this.reload().is_ok()).await;
            if looked.is_err() {
                tracing::error!("looking at the trusted keys panicked");
            }
        }
    }

    /// The keys that may sign for `purpose` at a time.
    pub fn keys(&self, purpose: &str, time: UnixTime) -> TrustedKeys {
        self.current.load().keys(purpose, time)
    }

    /// The keys that have signed for `purpose` up to a time, also those that were replaced since.
    pub fn verifying_keys(&self, purpose: &str, time: UnixTime) -> TrustedKeys {
        self.current.load().verifying_keys(purpose, time).collect()
    }

    /// The same keys as of [`Self::keys`] one by one.
    pub fn public_keys(&self, purpose: &str, time: UnixTime) -> Vec<PublicKey> {
        self.current.load().public_keys(purpose, time).collect()
    }
}

fn read(path: &std::path::Path) -> Result<TrustFile, InvalidTrust> {
    let max_bytes = u64::try_from(MAX_TRUST_BYTES).unwrap_or(u64::MAX);
    let bytes = files::load_public(path, max_bytes)?;
    TrustFile::parse(&bytes).map_err(|refusal| InvalidTrust::Malformed {
        path: path.to_owned(),
        refusal,
    })
}

/// Why the file of trusted keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTrust {
    /// It was not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no file of trusted keys.
    #[error("{path}: {refusal}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        refusal: Refusal,
    },
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cl_model::scalar::KeyId;

    use super::*;

    const ENTRY: &str = r#"{"kid":"urn:cl:key:a","purpose":"decision","alg":"Ed25519",
        "x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "not_before":null,"not_after":null,"revoked":false}"#;

    #[test]
    fn a_changed_file_takes_effect_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        let write = |text: &str| fs::write(&path, text).unwrap();
        let now = UnixTime::from_milliseconds(0);
        assert!(matches!(
            Trust::load(path.clone()),
            Err(InvalidTrust::File(_))
        ));
        write("{}");
        assert!(matches!(
            Trust::load(path.clone()),
            Err(InvalidTrust::Malformed { .. })
        ));
        write(&format!(r#"{{"keys":[{ENTRY}]}}"#));
        let trust = Trust::load(path.clone()).unwrap();
        let kid = KeyId::new("urn:cl:key:a").unwrap();
        let knows = || format!("{:?}", trust.keys("decision", now)).contains(kid.as_str());
        assert!(knows());
        write("{");
        trust.reload().unwrap_err();
        assert!(knows());
        write(r#"{"keys":[]}"#);
        trust.reload().unwrap();
        assert!(!knows());
    }
}
