//! The command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::BoxError;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::{Clock, SystemClock};
use cl_host::ids::{Ids, SystemIds};
use cl_host::tls::{Credentials, ServerTls, TlsFiles};

use crate::job::Job;
use crate::native::address;
use crate::pipeline::Deps;
use crate::source::Adapter;
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
    /// Calendars: an iCalendar file, or a folder of them.
    Calendar(CalendarArgs),
}

/// Settings of a mail run.
#[derive(Clone, Debug, clap::Args)]
pub struct MailArgs {
    /// An address of the subject; may be given up to 32 times.
    #[arg(
        long = "owner-address",
        env = "CL_OWNER_ADDRESS",
        value_delimiter = ',',
        required = true
    )]
    pub owner_addresses: Vec<String>,

    /// What every run has.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Settings of a calendar run.
#[derive(Clone, Debug, clap::Args)]
pub struct CalendarArgs {
    /// What every run has.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Settings of every run.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The mbox, Maildir, message file, calendar file or folder.
    pub path: PathBuf,

    /// Tenant of the subject.
    #[arg(long, env = "CL_TENANT", default_value = "default")]
    pub tenant: String,

    /// Whose context it is.
    #[arg(long, env = "CL_SUBJECT", default_value = "vault://subjects/primary")]
    pub subject: String,

    /// Address of the vault, `host:port`.
    #[arg(long, env = "CL_VAULT_ADDR")]
    pub vault_addr: String,

    /// Folder with `pki/`.
    #[arg(long, env = "CL_HOME", default_value = "./.context-layer")]
    pub home: PathBuf,

    /// How long a vault that is away is waited for.
    #[arg(long, env = "CL_PATIENCE_MS", default_value_t = 60_000)]
    pub patience_ms: u64,

    /// Go on with what comes into the folder, until a signal to end.
    #[arg(long)]
    pub watch: bool,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

impl Command {
    /// What every run has.
    pub const fn run(&self) -> &RunArgs {
        match self {
            Self::Mail(args) => &args.run,
            Self::Calendar(args) => &args.run,
        }
    }

    /// Checks the settings and prepares the run; connects nothing yet.
    ///
    /// # Errors
    ///
    /// What is wrong, for the operator.
    pub fn build(&self) -> Result<(Job, Deps), BoxError> {
        let job = self.job()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn Ids> = Arc::new(SystemIds::new(Arc::clone(&clock)));
        let args = self.run();
        let pki = args.home.join("pki");
        let files = TlsFiles {
            chain: pki.join(format!("{PROCESS}.pem")),
            key: pki.join(format!("{PROCESS}.key")),
            trust: pki.join("ca.pem"),
        };
        let credentials = Credentials::load(files, ServerTls::INTERNAL, Arc::clone(&clock))?;
        let channel = vault_channel(args.vault_addr.clone(), credentials)?;
        let patience = Duration::from_millis(args.patience_ms);
        let deps = Deps {
            vault: Vault::new(channel, Arc::clone(&ids), patience),
            clock,
            ids,
        };
        Ok((job, deps))
    }

    fn job(&self) -> Result<Job, BoxError> {
        let args = self.run();
        let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        if !(1..=63).contains(&args.tenant.len()) || !args.tenant.chars().all(is_name) {
            return Err("--tenant: 1 to 63 characters of a-z, 0-9 and -".into());
        }
        if !(3..=512).contains(&args.subject.chars().count()) {
            return Err("--subject: 3 to 512 characters".into());
        }
        if args.watch && !args.path.is_dir() {
            return Err("--watch: the path has to be a folder".into());
        }
        let (adapter, owner_addresses) = match self {
            Self::Mail(args) => (Adapter::Mail, owner_addresses(&args.owner_addresses)?),
            Self::Calendar(_) => (Adapter::Calendar, Vec::new()),
        };
        Ok(Job {
            path: args.path.clone(),
            adapter,
            tenant: args.tenant.clone(),
            subject_ref: args.subject.clone(),
            owner_addresses,
            max_message_bytes: MAX_MESSAGE_BYTES,
        })
    }
}

/// The subject's addresses in the spelling in which those of messages are read.
fn owner_addresses(given: &[String]) -> Result<Vec<String>, BoxError> {
    const MAX_OWNER_ADDRESSES: usize = 32;

    let read: Option<Vec<String>> = given.iter().map(|it| address::normalised(it)).collect();
    let read = read.filter(|it| (1..=MAX_OWNER_ADDRESSES).contains(&it.len()));
    read.ok_or_else(|| "--owner-address: 1 to 32 mail addresses".into())
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
