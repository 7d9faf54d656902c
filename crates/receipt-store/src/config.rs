//! The store's own settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cl_host::files::{self, FileError};
use cl_host::{BoxError, Host};
use cl_kv::{Metered, RocksEngine, Sealed};
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::trust::{MAX_TRUST_BYTES, RECEIPTS, TrustFile};
use cl_tlog::{MAX_POLICY_BYTES, Policy};
use ring::rand::SystemRandom;

use crate::core::command::Rules;
use crate::core::retention::{self, InvalidRetention, Retention};
use crate::core::trees::LogKey;
use crate::core::writers::{InvalidWriters, MAX_TABLE_BYTES, Writers};
use crate::cosigning::Cosigning;
use crate::keyfiles::KeyFiles;
use crate::pin::FolderPin;
use crate::readers::ReadersFile;
use crate::witness::{HttpWitnesses, InvalidAddress, InvalidRoots};
use crate::{Deps, PROCESS};

/// How often the store looks for overdue intents when nobody calls.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of the longest file of certificates: all authorities that the web has are some 250 KiB.
const MAX_ROOTS_BYTES: u64 = 4 * 1024 * 1024;
/// How often the store looks for receipts whose retention has ended: it ends at midnight.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// The store's own settings; each is a flag and an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Settings {
    /// Who may write which receipts, JSON [default: receipt-writers.json in the home folder].
    #[arg(long, env = "CL_WRITERS_FILE")]
    pub writers_file: Option<PathBuf>,

    /// Who may read which receipts, JSON; read again when it changes [default: receipt-readers.json
    /// in the home folder].
    #[arg(long, env = "CL_READERS_FILE")]
    pub readers_file: Option<PathBuf>,

    /// How long receipts are kept, JSON [default: the built-in table].
    #[arg(long, env = "CL_RETENTION_FILE")]
    pub retention_file: Option<PathBuf>,

    /// How many seconds the clock may step ahead at once and be believed; a larger jump must last
    /// that long before it erases anything.
    #[arg(long, env = "CL_MAX_CLOCK_STEP_SECONDS", default_value_t = 60)]
    pub max_clock_step_seconds: u64,

    /// Key-encryption key, 32 random bytes, mode 0600 [default: keys/cl-receipt-store.kek in the
    /// home folder].
    #[arg(long, env = "CL_KEK_FILE")]
    pub kek_file: Option<PathBuf>,

    /// Key that signs the checkpoints of the logs, PKCS#8, PEM or DER [default: keys/receipts.pem in
    /// the home folder].
    #[arg(long, env = "CL_LOG_KEY")]
    pub log_key: Option<PathBuf>,

    /// Public keys, of which those for `receipts` verify checkpoints from before the log key was
    /// replaced [default: trust.json in the home folder, where there is one].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,

    /// Folder of pins, the newest checkpoint of each log, which tell when the data folder is put back
    /// or copied; not in it, and not backed up with it [default: pins in the home folder].
    #[arg(long, env = "CL_PIN_DIR")]
    pub pin_dir: Option<PathBuf>,

    /// Pins logs that were pinned and whose pin is lost as they are now. For one start, after the loss
    /// was looked into: older data would not be noticed.
    #[arg(long, env = "CL_ADOPT_LOST_PINS")]
    pub adopt_lost_pins: bool,

    /// Witnesses that must cosign each checkpoint before an entry is acknowledged, and their quorum,
    /// as c2sp.org/tlog-policy [default: none].
    #[arg(long, env = "CL_WITNESS_POLICY")]
    pub witness_policy: Option<PathBuf>,

    /// Certificates of the authorities of the witnesses' servers, PEM; without any, only witnesses at
    /// http addresses of this machine are asked.
    #[arg(long, env = "CL_WITNESS_CA")]
    pub witness_ca: Option<PathBuf>,

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
    /// The table of writers is wrong.
    #[error(transparent)]
    Writers(#[from] InvalidWriters),
    /// The table of retention is wrong.
    #[error(transparent)]
    Retention(#[from] InvalidRetention),
    /// The file of trusted keys is wrong.
    #[error("the file of trusted keys: {0}")]
    Trust(Refusal),
    /// The pins would be put back together with the data.
    #[error("the pin folder must not be in the data folder, nor the data folder in it")]
    PinsInData,
    /// The policy of witnesses is wrong.
    #[error("the witness policy: {0}")]
    Policy(#[from] cl_tlog::Error),
    /// It is not text.
    #[error("the witness policy is not UTF-8")]
    NotText,
    /// A witness that is to be asked has no address.
    #[error("the witness policy: {0} has no URL")]
    NoAddress(String),
    /// The address of a witness is wrong.
    #[error("the witness policy: {0}")]
    Address(#[from] InvalidAddress),
    /// The certificates of the witnesses' servers are wrong.
    #[error("the certificates of witnesses: {0}")]
    Roots(#[from] InvalidRoots),
}

impl Settings {
    /// Reads all files and opens the data folder.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let home = &host.args.home;
        let or_default =
            |path: Option<PathBuf>, name: &str| path.unwrap_or_else(|| home.join(name));
        let writers = load_writers(&or_default(self.writers_file, "receipt-writers.json"))?;
        let readers = ReadersFile::load(or_default(self.readers_file, "receipt-readers.json"))?;
        let retention = Arc::new(load_retention(self.retention_file.as_deref())?);
        let trust = load_trust(self.trust_file, home.join("trust.json"))?;
        let now = UnixTime::from_milliseconds(host.clock.now_unix_ms());
        let replaced = trust.iter().flat_map(|it| it.verifying_keys(RECEIPTS, now));
        let key_files = KeyFiles {
            log: or_default(self.log_key, "keys/receipts.pem"),
            sealing: or_default(self.kek_file, "keys/cl-receipt-store.kek"),
            tls: host.args.tls_files(PROCESS).key,
        };
        let secrets = key_files.load()?;
        let data = or_default(self.data_dir, "data/cl-receipt-store");
        std::fs::create_dir_all(&data)?;
        let pins = or_default(self.pin_dir, "pins");
        let pin = FolderPin::open(pins.clone())?;
        let cosigning = load_witnesses(self.witness_policy.as_deref(), self.witness_ca.as_deref())?;
        check_apart(&pins.canonicalize()?, &data.canonicalize()?)?;
        let engine = Metered::new(RocksEngine::open(&data)?, &host.meter);
        let random = Arc::new(SystemRandom::new());
        Ok(Deps {
            store: crate::open_store(Sealed::open(engine, secrets.sealing, random)?, &host.ids)?,
            pin: Arc::new(pin),
            adopts_lost_pins: self.adopt_lost_pins,
            cosigning,
            log_key: LogKey::new(secrets.log, host.credentials.own().id.trust_domain())
                .replacing(replaced),
            rules: Rules {
                own_id: host.credentials.own().id.clone(),
                writers,
            },
            readers,
            retention,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            meter: host.meter.clone(),
            shutdown: host.shutdown.clone(),
            tasks: host.tasks.clone(),
            sweep_interval: SWEEP_INTERVAL,
            retention_interval: RETENTION_INTERVAL,
            max_clock_step: Duration::from_secs(self.max_clock_step_seconds),
        })
    }
}

fn check_apart(pins: &Path, data: &Path) -> Result<(), InvalidSettings> {
    if pins.starts_with(data) || data.starts_with(pins) {
        return Err(InvalidSettings::PinsInData);
    }
    Ok(())
}

fn load_witnesses(
    policy: Option<&Path>,
    roots: Option<&Path>,
) -> Result<Cosigning, InvalidSettings> {
    let Some(path) = policy else {
        return Ok(Cosigning::default());
    };
    let max_bytes = u64::try_from(MAX_POLICY_BYTES).unwrap_or(u64::MAX);
    let text = files::load_public(path, max_bytes)?;
    let text = str::from_utf8(&text).map_err(|_| InvalidSettings::NotText)?;
    let roots = roots.map(|path| files::load_public(path, MAX_ROOTS_BYTES));
    let http = HttpWitnesses::new(roots.transpose()?.as_deref())?;
    Cosigning::new(&Policy::parse(text)?, |witness| {
        let url = witness.url();
        let url = url.ok_or_else(|| InvalidSettings::NoAddress(witness.name().to_owned()))?;
        Ok(Box::new(http.at(url)?))
    })
}

fn load_writers(path: &Path) -> Result<Writers, InvalidSettings> {
    let max_bytes = u64::try_from(MAX_TABLE_BYTES).unwrap_or(u64::MAX);
    Ok(Writers::parse(&files::load_public(path, max_bytes)?)?)
}

fn load_retention(path: Option<&Path>) -> Result<Retention, InvalidSettings> {
    let Some(path) = path else {
        return Ok(Retention::parse(retention::DEFAULT_TABLE.as_bytes())?);
    };
    let max_bytes = u64::try_from(retention::MAX_TABLE_BYTES).unwrap_or(u64::MAX);
    Ok(Retention::parse(&files::load_public(path, max_bytes)?)?)
}

/// The file of trusted keys; without one, no key was replaced.
fn load_trust(
    path: Option<PathBuf>,
    default: PathBuf,
) -> Result<Option<TrustFile>, InvalidSettings> {
    let Some(path) = path.or_else(|| default.exists().then_some(default)) else {
        return Ok(None);
    };
    let max_bytes = u64::try_from(MAX_TRUST_BYTES).unwrap_or(u64::MAX);
    let trust = TrustFile::parse(&files::load_public(&path, max_bytes)?);
    trust.map(Some).map_err(InvalidSettings::Trust)
}
