//! The store's own settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cl_host::files::{self, FileError};
use cl_host::{BoxError, Host};
use cl_kv::{KeyEncryptionKey, Metered, RocksEngine, Sealed};
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

use crate::Deps;
use crate::core::command::Rules;
use crate::core::writers::{InvalidWriters, MAX_TABLE_BYTES, Writers};

/// Length of the key-encryption key.
const KEK_BYTES: usize = 32;

/// How often the store looks for overdue intents when nobody calls.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The store's own settings; each is a flag and an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Settings {
    /// Who may write which receipts, JSON [default: receipt-writers.json in the home folder].
    #[arg(long, env = "CL_WRITERS_FILE")]
    pub writers_file: Option<PathBuf>,

    /// Key-encryption key, 32 random bytes, mode 0600 [default: keys/cl-receipt-store.kek in the
    /// home folder].
    #[arg(long, env = "CL_KEK_FILE")]
    pub kek_file: Option<PathBuf>,

    /// Data folder [default: data/cl-receipt-store in the home folder].
    #[arg(long, env = "CL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

/// A setting that the store does not start with.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key has another length.
    #[error("the key-encryption key must have exactly {KEK_BYTES} bytes")]
    KekLength,
    /// The table of writers is wrong.
    #[error(transparent)]
    Writers(#[from] InvalidWriters),
}

impl Settings {
    /// Reads all files and opens the data folder.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let home = &host.args.home;
        let or_default =
            |path: Option<PathBuf>, name: &str| path.unwrap_or_else(|| home.join(name));
        let writers = load_writers(&or_default(self.writers_file, "receipt-writers.json"))?;
        let kek = load_kek(&or_default(self.kek_file, "keys/cl-receipt-store.kek"))?;
        let data = or_default(self.data_dir, "data/cl-receipt-store");
        std::fs::create_dir_all(&data)?;
        let engine = Metered::new(RocksEngine::open(&data)?, &host.meter);
        let random = Arc::new(SystemRandom::new());
        Ok(Deps {
            store: crate::open_store(Sealed::open(engine, kek, random)?, &host.ids)?,
            rules: Rules {
                own_id: host.credentials.own().id.clone(),
                writers,
            },
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            meter: host.meter.clone(),
            shutdown: host.shutdown.clone(),
            tasks: host.tasks.clone(),
            sweep_interval: SWEEP_INTERVAL,
        })
    }
}

fn load_writers(path: &Path) -> Result<Writers, InvalidSettings> {
    let max_bytes = u64::try_from(MAX_TABLE_BYTES).unwrap_or(u64::MAX);
    Ok(Writers::parse(&files::load_public(path, max_bytes)?)?)
}

fn load_kek(path: &Path) -> Result<KeyEncryptionKey, InvalidSettings> {
    let bytes = files::load_secret(path, files::MAX_SECRET_BYTES)?;
    let mut kek = Zeroizing::new([0; KEK_BYTES]);
    if bytes.len() != KEK_BYTES {
        return Err(InvalidSettings::KekLength);
    }
    kek.copy_from_slice(&bytes);
    Ok(KeyEncryptionKey::new(kek))
}
