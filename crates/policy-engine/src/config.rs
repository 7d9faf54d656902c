//! The engine's own settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::trust::Trust;
use cl_host::{BoxError, Host};
use cl_kv::{Engine, Metered, RocksEngine, Sealed};
use cl_model::passkey::RelyingParty;
use ring::rand::SystemRandom;

use crate::core::grant::Audiences;
use crate::issuer::{GrpcIssuer, Issuer};
use crate::keyfiles::KeyFiles;
use crate::people::PeopleSettings;
use crate::receipts::GrpcReceipts;
use crate::signers::Signers;
use crate::store::KvStore;
use crate::{Deps, PROCESS};

/// Time between two looks for what has been kept long enough.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// How far the clock may step ahead and be believed at once when something is forgotten.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60);

/// The gateway repeats an operation for a day.
const MIN_RETENTION_SECONDS: u64 = 24 * 3600;

/// A week: whoever asked has long given up.
const MAX_APPROVAL_SECONDS: u64 = 7 * 24 * 3600;

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the receipt store, `host:port`.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: String,

    /// Address of the bundle issuer, `host:port`; without it, requests stay decided.
    #[arg(long, env = "CL_BUNDLE_ISSUER_ADDR")]
    pub bundle_issuer_addr: Option<String>,

    /// Decision key, PKCS#8, PEM or DER [default: keys/decision.pem in the home folder].
    #[arg(long, env = "CL_DECISION_KEY")]
    pub decision_key: Option<PathBuf>,

    /// Alias key, 32 bytes [default: keys/alias.key in the home folder].
    #[arg(long, env = "CL_ALIAS_KEY")]
    pub alias_key: Option<PathBuf>,

    /// Subject-tag key, 32 bytes, shared with the vault only [default: keys/subject-tag.key in the
    /// home folder].
    #[arg(long, env = "CL_SUBJECT_TAG_KEY")]
    pub subject_tag_key: Option<PathBuf>,

    /// Key-encryption key of the store, 32 bytes [default: keys/cl-policy-engine.kek in the home
    /// folder].
    #[arg(long, env = "CL_SEALING_KEY")]
    pub sealing_key: Option<PathBuf>,

    /// Data folder [default: data/cl-policy-engine in the home folder].
    #[arg(long, env = "CL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Relying party id of people's passkeys: the domain of the console. Passkeys of another one do
    /// not count.
    #[arg(long, env = "CL_PASSKEY_RP_ID", default_value = "localhost")]
    pub passkey_rp_id: String,

    /// Origin of the console, as browsers write it; may be given more than once. The first one is in
    /// links to enrol a passkey.
    #[arg(
        long,
        env = "CL_PASSKEY_ORIGIN",
        value_delimiter = ',',
        default_value = "https://localhost:8449"
    )]
    pub passkey_origin: Vec<String>,

    /// Whether policy snapshots have to be signed by a trusted key with the purpose `policy-snapshot`.
    #[arg(long, env = "CL_REQUIRE_SIGNED_SNAPSHOTS")]
    pub require_signed_snapshots: bool,

    /// Trusted public keys of those who sign snapshots [default: trust.json in the home folder].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,

    /// How long a request waits for a person at most, in seconds: an hour.
    #[arg(long, env = "CL_APPROVAL_SECONDS", default_value_t = 3600)]
    pub approval_seconds: u64,

    /// How long a decision and its inputs are kept after the decision ended, and what an operation id
    /// was used for: 30 days.
    #[arg(long, env = "CL_RETENTION_SECONDS", default_value_t = 30 * 24 * 3600)]
    pub retention_seconds: u64,
}

impl Config {
    /// Checks keys, stored state and peers before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        if self.retention_seconds < MIN_RETENTION_SECONDS {
            return Err("--retention-seconds: at least a day".into());
        }
        if !(1..=MAX_APPROVAL_SECONDS).contains(&self.approval_seconds) {
            return Err("--approval-seconds: 1 to 604800".into());
        }
        let relying_party = RelyingParty::new(&self.passkey_rp_id, self.passkey_origin.clone())
            .ok_or("--passkey-rp-id, --passkey-origin: each origin is `https://`, the id or a host under it, and a port unless it is 443")?;
        let secrets = self.key_files(host).load()?;
        let signers = if self.require_signed_snapshots {
            let trust = self.trust_file.clone();
            let trust = trust.unwrap_or_else(|| host.args.home.join("trust.json"));
            Some(Signers::new(Trust::load(trust)?))
        } else {
            None
        };
        let data = host.args.home.join("data").join(PROCESS);
        let data = self.data_dir.unwrap_or(data);
        std::fs::create_dir_all(&data)?;
        let engine: Arc<dyn Engine> =
            Arc::new(Metered::new(RocksEngine::open(&data)?, &host.meter));
        let random = Arc::new(SystemRandom::new());
        let store = KvStore::new(Sealed::open(engine, secrets.sealing, random)?);

        let own = host.credentials.own().id;
        let trust_domain = own.trust_domain();
        let receipts = host.peer(self.receipt_store_addr, "exchange/cl-receipt-store")?;
        let issuer = match self.bundle_issuer_addr {
            None => None,
            Some(address) => {
                let issuer = GrpcIssuer::new(host.peer(address, "exchange/cl-bundle-issuer")?);
                Some(Arc::new(issuer) as Arc<dyn Issuer>)
            }
        };
        Ok(Deps {
            store: Arc::new(store),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            issuer,
            keys: secrets.keys,
            signers,
            people: PeopleSettings {
                relying_party,
                approval_seconds: self.approval_seconds,
            },
            retention_seconds: self.retention_seconds,
            sweep_interval: SWEEP_INTERVAL,
            max_clock_step: MAX_CLOCK_STEP,
            audiences: Audiences::of(trust_domain).ok_or("the trust domain is too long")?,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            own,
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
            decision: or_default(&self.decision_key, "decision.pem"),
            alias: or_default(&self.alias_key, "alias.key"),
            subject_tag: or_default(&self.subject_tag_key, "subject-tag.key"),
            sealing: or_default(&self.sealing_key, "cl-policy-engine.kek"),
            tls: host.args.tls_files(PROCESS).key,
        }
    }
}
