//! Handing native items to the vault: `cl-capture` with the home's settings.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Subcommand;

use crate::certificates::CAPTURE;
use crate::cli::tenant;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::owner::SUBJECT;
use crate::processes::VAULT;
use crate::programs::Programs;
use crate::session::Session;
use crate::token::reference;

/// Handing native items to the vault.
#[derive(Debug, Subcommand)]
pub(crate) enum CaptureCommand {
    /// Mail: an mbox file, a Maildir, a message file, or a folder of them.
    Mail(MailArgs),
}

/// Settings of `clctl capture mail`.
#[derive(Debug, clap::Args)]
pub(crate) struct MailArgs {
    /// The mbox, Maildir, message file or folder.
    path: PathBuf,

    /// Whose context it is.
    #[arg(long, default_value = SUBJECT, value_parser = reference)]
    subject: String,

    /// An address of the subject; repeatable.
    #[arg(long = "owner-address", required = true)]
    owner_addresses: Vec<String>,

    /// The tenant of the subject.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,

    /// Folder of the programs [default: where clctl is].
    #[arg(long)]
    bin_dir: Option<PathBuf>,
}

/// Becomes `cl-capture`: report, exit code and signals are its own. Returns only if it cannot.
pub(crate) fn run(command: &CaptureCommand, session: &Session) -> Result<(), Error> {
    let CaptureCommand::Mail(args) = command;
    let endpoints = Endpoints::running(&session.home)?;
    let vault = endpoints.find(&VAULT)?.addr;
    let program = Programs::of(args.bin_dir.as_deref())?.find(CAPTURE)?;
    let mut capture = Command::new(program);
    capture
        .env_clear()
        .arg("mail")
        .arg("--home")
        .arg(session.home.root())
        .arg(format!("--vault-addr={vault}"))
        .arg(format!("--tenant={}", args.tenant))
        .arg(format!("--subject={}", args.subject));
    for address in &args.owner_addresses {
        capture.arg(format!("--owner-address={address}"));
    }
    if session.output.is_json() {
        capture.arg("--json");
    }
    capture.arg("--").arg(&args.path);
    Err(Error::Spawn {
        process: CAPTURE,
        source: capture.exec(),
    })
}
