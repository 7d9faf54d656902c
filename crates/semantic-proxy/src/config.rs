//! The proxy's own settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::trust::Trust;
use cl_host::{BoxError, Host};
use cl_model::vocabulary::Vocabulary;

use crate::keyfiles::KeyFiles;
use crate::receipts::GrpcReceipts;
use crate::vault::GrpcVault;
use crate::{Deps, PROCESS};

/// Time between two looks at the file of trusted keys.
pub(crate) const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the vault, `host:port`.
    #[arg(long, env = "CL_VAULT_ADDR")]
    pub vault_addr: String,

    /// Address of the receipt store, `host:port`.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: String,

    /// Transform key, 32 bytes [default: keys/transform.key in the home folder].
    #[arg(long, env = "CL_TRANSFORM_KEY")]
    pub transform_key: Option<PathBuf>,

    /// Trusted public keys [default: trust.json in the home folder].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,
}

impl Config {
    /// Checks keys and peers before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let home = &host.args.home;
        let keys = KeyFiles {
            transform: self
                .transform_key
                .unwrap_or_else(|| home.join("keys/transform.key")),
            tls: host.args.tls_files(PROCESS).key,
        };
        let names = keys.load()?;
        let trust = self.trust_file.unwrap_or_else(|| home.join("trust.json"));
        let vault = host.peer(self.vault_addr, "vault/cl-vault")?;
        let receipts = host.peer(self.receipt_store_addr, "exchange/cl-receipt-store")?;
        Ok(Deps {
            vault: Arc::new(GrpcVault::new(vault)),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            trust: Trust::load(trust)?,
            vocabulary: Vocabulary::published()?,
            names,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            own: host.credentials.own().id,
            meter: host.meter.clone(),
            shutdown: host.shutdown.clone(),
            tasks: host.tasks.clone(),
        })
    }
}
