//! The vault's own settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::trust::Trust;
use cl_host::{BoxError, Host};
use cl_kv::{Engine, KeyEncryptionKey, Metered, RocksEngine, Sealed};
use cl_model::vocabulary::Vocabulary;
use ring::rand::SystemRandom;

use crate::extraction::RuleExtractor;
use crate::keyfiles::KeyFiles;
use crate::notices::GrpcNotices;
use crate::receipts::GrpcReceipts;
use crate::store::Store;
use crate::{Deps, PROCESS};

/// Time between two looks at the file of trusted keys.
const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the receipt store, `host:port`.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: String,

    /// Address of the bundle issuer, `host:port`, to tell it of deletions; without it, what it has
    /// to be told is kept.
    #[arg(long, env = "CL_BUNDLE_ISSUER_ADDR")]
    pub bundle_issuer_addr: Option<String>,

    /// Trusted public keys [default: trust.json in the home folder].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,

    /// Key-encryption key of the subjects' data keys, 32 bytes [default: keys/cl-vault.kek in the
    /// home folder].
    #[arg(long, env = "CL_VAULT_KEK")]
    pub vault_kek: Option<PathBuf>,

    /// Key-encryption key of the data store, 32 bytes [default: keys/cl-vault-data.kek in the home
    /// folder].
    #[arg(long, env = "CL_SEALING_KEY")]
    pub sealing_key: Option<PathBuf>,

    /// Alias key, 32 bytes [default: keys/vault-alias.key in the home folder].
    #[arg(long, env = "CL_ALIAS_KEY")]
    pub alias_key: Option<PathBuf>,

    /// Subject-tag key, 32 bytes, shared with the policy engine only [default:
    /// keys/subject-tag.key in the home folder].
    #[arg(long, env = "CL_SUBJECT_TAG_KEY")]
    pub subject_tag_key: Option<PathBuf>,

    /// Data folder [default: data/cl-vault in the home folder].
    #[arg(long, env = "CL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Folder of the subjects' data keys; back it up apart from the data, and never keep a copy
    /// longer than an erasure may take [default: keys in the data folder].
    #[arg(long, env = "CL_KEY_STORE_DIR")]
    pub key_store_dir: Option<PathBuf>,
}

impl Config {
    /// Checks keys, stored state and peers before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let secrets = self.key_files(host).load()?;
        let home = &host.args.home;
        let trust_file = self.trust_file.unwrap_or_else(|| home.join("trust.json"));
        let trust = Trust::load(trust_file)?;
        let data = self
            .data_dir
            .unwrap_or_else(|| home.join("data").join(PROCESS));
        let keys = self.key_store_dir.unwrap_or_else(|| data.join("keys"));
        let store = Store::new(
            open(keys, secrets.kek, host)?,
            open(data.join("data"), secrets.sealing, host)?,
            Arc::clone(&host.ids),
        );
        let watch = Arc::clone(&trust).watch(TRUST_INTERVAL, host.shutdown.token());
        host.tasks.spawn("trusted keys", watch);
        let issuer = self.bundle_issuer_addr.map(|address| {
            let issuer = channel(host, address, "cl-bundle-issuer");
            issuer.map(Some)
        });
        let receipts = channel(host, self.receipt_store_addr, "cl-receipt-store")?;
        Ok(Deps {
            store: Arc::new(store),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            notices: Arc::new(GrpcNotices::new(issuer.unwrap_or(Ok(None))?)),
            keys: Arc::new(secrets.keys),
            trust,
            extractor: Arc::new(RuleExtractor),
            vocabulary: Vocabulary::published()?,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
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
            kek: or_default(&self.vault_kek, "cl-vault.kek"),
            sealing: or_default(&self.sealing_key, "cl-vault-data.kek"),
            alias: or_default(&self.alias_key, "vault-alias.key"),
            subject_tag: or_default(&self.subject_tag_key, "subject-tag.key"),
            tls: host.args.tls_files(PROCESS).key,
        }
    }
}

fn open(
    folder: PathBuf,
    kek: KeyEncryptionKey,
    host: &Host,
) -> Result<Sealed<Arc<dyn Engine>>, BoxError> {
    std::fs::create_dir_all(&folder)?;
    let engine: Arc<dyn Engine> = Arc::new(Metered::new(RocksEngine::open(&folder)?, &host.meter));
    Ok(Sealed::open(engine, kek, Arc::new(SystemRandom::new()))?)
}

fn channel(host: &Host, address: String, process: &str) -> Result<PeerChannel, BoxError> {
    let trust_domain = host.credentials.own().id.trust_domain().to_owned();
    let target = Target {
        address,
        id: format!("spiffe://{trust_domain}/exchange/{process}").parse()?,
    };
    let credentials = Arc::clone(&host.credentials);
    Ok(PeerChannel::new(
        target,
        credentials,
        ClientLimits::default(),
    )?)
}
