//! The command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::BoxError;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::{Clock, SystemClock};
use cl_host::ids::{Ids, SystemIds};
use cl_host::tls::{Credentials, ServerTls, TlsFiles};

use crate::pipeline::{Deps, Job};
use crate::vault::Vault;

/// The name of this process, also of its files under `pki/`.
pub const PROCESS: &str = "cl-capture";

/// A message beyond this is stored without being read.
const MAX_MESSAGE_BYTES: u64 = 64 * 1024 * 1024;

/// The whole command line.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "cl-capture",
    version,
    about = "Hands native items to the vault as source events"
)]
pub struct Cli {
    /// What to capture.
    #[command(subcommand)]
    pub command: Command,
}

/// The adapters.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Mail: an mbox file, a Maildir, a message file, or a folder of them.
    Mail(MailArgs),
}

/// Settings of a mail run.
#[derive(Clone, Debug, clap::Args)]
pub struct MailArgs {
    /// The mbox, Maildir, message file or folder.
    pub path: PathBuf,

    /// Tenant of the subject.
    #[arg(long, env = "CL_TENANT", default_value = "default")]
    pub tenant: String,

    /// Whose context it is.
    #[arg(long, env = "CL_SUBJECT", default_value = "vault://subjects/primary")]
    pub subject: String,

    /// An address of the subject; may be given up to 32 times.
    #[arg(
        long = "owner-address",
        env = "CL_OWNER_ADDRESS",
        value_delimiter = ',',
        required = true
    )]
    pub owner_addresses: Vec<String>,

    /// Address of the vault, `host:port`.
    #[arg(long, env = "CL_VAULT_ADDR")]
    pub vault_addr: String,

    /// Folder with `pki/`.
    #[arg(long, env = "CL_HOME", default_value = "./.context-layer")]
    pub home: PathBuf,

    /// How long a vault that is away is waited for.
    #[arg(long, env = "CL_PATIENCE_MS", default_value_t = 60_000)]
    pub patience_ms: u64,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

impl MailArgs {
    /// Checks the settings and prepares the run; connects nothing yet.
    ///
    /// # Errors
    ///
    /// What is wrong, for the operator.
    pub fn build(&self) -> Result<(Job, Deps), BoxError> {
        let job = self.job()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn Ids> = Arc::new(SystemIds::new(Arc::clone(&clock)));
        let pki = self.home.join("pki");
        let files = TlsFiles {
            chain: pki.join(format!("{PROCESS}.pem")),
            key: pki.join(format!("{PROCESS}.key")),
            trust: pki.join("ca.pem"),
        };
        let credentials = Credentials::load(files, ServerTls::INTERNAL, Arc::clone(&clock))?;
        let channel = vault_channel(self.vault_addr.clone(), credentials)?;
        let patience = Duration::from_millis(self.patience_ms);
        let deps = Deps {
            vault: Vault::new(channel, Arc::clone(&ids), patience),
            clock,
            ids,
        };
        Ok((job, deps))
    }

    fn job(&self) -> Result<Job, BoxError> {
        const MAX_OWNER_ADDRESSES: usize = 32;

        let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        if !(1..=63).contains(&self.tenant.len()) || !self.tenant.chars().all(is_name) {
            return Err("--tenant: 1 to 63 characters of a-z, 0-9 and -".into());
        }
        if !(3..=512).contains(&self.subject.chars().count()) {
            return Err("--subject: 3 to 512 characters".into());
        }
        let is_address = |it: &String| it.contains('@') && !it.contains(char::is_whitespace);
        let has_count = (1..=MAX_OWNER_ADDRESSES).contains(&self.owner_addresses.len());
        if !has_count || !self.owner_addresses.iter().all(is_address) {
            return Err("--owner-address: 1 to 32 mail addresses".into());
        }
        Ok(Job {
            path: self.path.clone(),
            tenant: self.tenant.clone(),
            subject_ref: self.subject.clone(),
            owner_addresses: self.owner_addresses.clone(),
            max_message_bytes: MAX_MESSAGE_BYTES,
        })
    }
}

/// A channel to the vault of the own trust domain.
///
/// # Errors
///
/// If the address is not `host:port`.
pub fn vault_channel(
    address: String,
    credentials: Arc<Credentials>,
) -> Result<PeerChannel, BoxError> {
    let trust_domain = credentials.own().id.trust_domain().to_owned();
    let target = Target {
        address,
        id: format!("spiffe://{trust_domain}/vault/cl-vault").parse()?,
    };
    Ok(PeerChannel::new(
        target,
        credentials,
        ClientLimits::default(),
    )?)
}
