//! The table of readers, read again when its file changes.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cl_host::files::{self, FileError};
use cl_host::life::Shutdown;

use crate::core::readers::{InvalidReaders, MAX_TABLE_BYTES, Readers};

/// How often the file is looked at.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// The table, as it is now.
///
/// A file that cannot be read or does not parse leaves the table before it in use, and shows in the
/// log: a typing error must not stop a service.
#[derive(Debug)]
pub struct ReadersFile {
    path: Option<PathBuf>,
    current: RwLock<Arc<Readers>>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoReaders {
    /// It was not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is wrong.
    #[error(transparent)]
    Malformed(#[from] InvalidReaders),
}

impl ReadersFile {
    /// Reads the file for the first time.
    pub fn load(path: PathBuf) -> Result<Arc<Self>, NoReaders> {
        let current = RwLock::new(Arc::new(read(&path)?));
        Ok(Arc::new(Self {
            path: Some(path),
            current,
        }))
    }

    /// A table that is in no file.
    pub fn fixed(readers: Readers) -> Arc<Self> {
        Arc::new(Self {
            path: None,
            current: RwLock::new(Arc::new(readers)),
        })
    }

    /// The table as it is now.
    pub fn current(&self) -> Arc<Readers> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Reads the file again.
    pub fn reload(&self) -> Result<(), NoReaders> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let readers = read(path).inspect_err(|error| {
            tracing::error!(%error, "readers not reloaded, the old ones stay in use");
        })?;
        if readers != *self.current() {
            tracing::info!(readers = readers.ids().count(), "readers reloaded");
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            *current = Arc::new(readers);
        }
        Ok(())
    }

    /// Reloads now and then until the end.
    pub async fn watch(self: Arc<Self>, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(RELOAD_INTERVAL) => {}
            }
            let this = Arc::clone(&self);
            // The error is logged where it arises. The file may sit on a slow mount.
            let looked = tokio::task::spawn_blocking(move || this.reload().is_ok()).await;
            if looked.is_err() {
                tracing::error!("looking at the readers panicked");
            }
        }
    }
}

fn read(path: &std::path::Path) -> Result<Readers, NoReaders> {
    let max_bytes = u64::try_from(MAX_TABLE_BYTES).unwrap_or(u64::MAX);
    Ok(Readers::parse(&files::load_public(path, max_bytes)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: &str = r#"{"readers_version":1,"readers":{}}"#;
    const ANN: &str = r#"{"readers_version":1,"readers":{
        "spiffe://example.org/auditor/ann":[{"role":"auditor","tenant":"*"}]}}"#;

    #[test]
    fn a_broken_file_leaves_the_table_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readers.json");
        std::fs::write(&path, ANN).unwrap();
        let readers = ReadersFile::load(path.clone()).unwrap();
        let ann = "spiffe://example.org/auditor/ann".parse().unwrap();
        assert!(readers.current().has(&ann));
        std::fs::write(&path, "{").unwrap();
        readers.reload().unwrap_err();
        assert!(readers.current().has(&ann));
        std::fs::write(&path, NOBODY).unwrap();
        readers.reload().unwrap();
        assert!(!readers.current().has(&ann));
    }
}
