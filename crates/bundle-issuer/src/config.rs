//! The issuer's own settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::trust::Trust;
use cl_host::{BoxError, Host};
use cl_kv::{Engine, Metered, RocksEngine, Sealed};
use ring::rand::SystemRandom;

use crate::core::bundle::Times;
use crate::keyfiles::KeyFiles;
use crate::proxy::GrpcProxy;
use crate::receipts::GrpcReceipts;
use crate::store::KvStore;
use crate::{Deps, PROCESS};

/// Time between two looks at the file of trusted keys.
pub(crate) const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// The gateway repeats an operation for a day.
const MIN_RETENTION_SECONDS: u64 = 24 * 3600;

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the semantic proxy, `host:port`.
    #[arg(long, env = "CL_SEMANTIC_PROXY_ADDR")]
    pub semantic_proxy_addr: String,

    /// Address of the receipt store, `host:port`.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: String,

    /// Bundle key, PKCS#8, PEM or DER [default: keys/bundle.pem in the home folder].
    #[arg(long, env = "CL_BUNDLE_KEY")]
    pub bundle_key: Option<PathBuf>,

    /// Notes key, PKCS#8, PEM or DER [default: keys/notes.pem in the home folder].
    #[arg(long, env = "CL_NOTES_KEY")]
    pub notes_key: Option<PathBuf>,

    /// Key-encryption key of the store, 32 bytes [default: keys/cl-bundle-issuer.kek in the home
    /// folder].
    #[arg(long, env = "CL_SEALING_KEY")]
    pub sealing_key: Option<PathBuf>,

    /// Trusted public keys [default: trust.json in the home folder].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,

    /// Data folder [default: data/cl-bundle-issuer in the home folder].
    #[arg(long, env = "CL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// How long a lost answer can be asked for again with the same idempotency key.
    #[arg(long, env = "CL_RETRY_WINDOW_SECONDS", default_value_t = Times::default().retry_window_seconds)]
    pub retry_window_seconds: u64,

    /// How long what has ended is kept: bundles without their content, operation ids, revoked names.
    #[arg(long, env = "CL_RETENTION_SECONDS", default_value_t = Times::default().retention_seconds)]
    pub retention_seconds: u64,

    /// How long one attempt to issue has a decision to itself; longer than any call.
    #[arg(long, env = "CL_ISSUE_LEASE_SECONDS", default_value_t = Times::default().issue_lease_seconds)]
    pub issue_lease_seconds: u64,

    /// How far the clock may step ahead and be believed at once; a longer step has to last as long.
    #[arg(long, env = "CL_MAX_CLOCK_STEP_SECONDS", default_value_t = Times::default().max_clock_step_seconds)]
    pub max_clock_step_seconds: u64,

    /// Time between two looks for what has ended.
    #[arg(long, env = "CL_SWEEP_INTERVAL_MS", default_value_t = 1000)]
    pub sweep_interval_ms: u64,
}

impl Config {
    /// Checks keys, stored state and peers before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        if self.retention_seconds < MIN_RETENTION_SECONDS {
            return Err("--retention-seconds: at least a day".into());
        }
        let home = &host.args.home;
        let secrets = self.key_files(host).load()?;
        let trust = self.trust_file.unwrap_or_else(|| home.join("trust.json"));
        let trust = Trust::load(trust)?;
        let data = self
            .data_dir
            .unwrap_or_else(|| home.join("data").join(PROCESS));
        std::fs::create_dir_all(&data)?;
        let engine: Arc<dyn Engine> =
            Arc::new(Metered::new(RocksEngine::open(&data)?, &host.meter));
        let random = Arc::new(SystemRandom::new());
        let store = KvStore::new(Sealed::open(engine, secrets.sealing, random)?);

        let proxy = host.peer(self.semantic_proxy_addr, "exchange/cl-semantic-proxy")?;
        let receipts = host.peer(self.receipt_store_addr, "exchange/cl-receipt-store")?;
        Ok(Deps {
            store: Arc::new(store),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            proxy: Arc::new(GrpcProxy::new(proxy)),
            trust,
            keys: secrets.keys,
            times: Times {
                retry_window_seconds: self.retry_window_seconds,
                retention_seconds: self.retention_seconds,
                issue_lease_seconds: self.issue_lease_seconds,
                max_clock_step_seconds: self.max_clock_step_seconds,
            },
            sweep_interval: Duration::from_millis(self.sweep_interval_ms.max(1)),
            clock: Arc::clone(&host.clock),
            own: host.credentials.own().id,
            meter: host.meter.clone(),
            shutdown: host.shutdown.clone(),
            tasks: host.tasks.clone(),
        })
    }

    fn key_files(&self, host: &Host) -> KeyFiles {
        let keys = host.args.home.join("keys");
        let or_default =
            |path: &Option<PathBuf>, name: &str| path.clone().unwrap_or_else(|| keys.join(name));
        KeyFiles {
            bundle: or_default(&self.bundle_key, "bundle.pem"),
            notes: or_default(&self.notes_key, "notes.pem"),
            sealing: or_default(&self.sealing_key, "cl-bundle-issuer.kek"),
            tls: host.args.tls_files(PROCESS).key,
        }
    }
}
