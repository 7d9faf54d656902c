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
    /// Calendars: an iCalendar file, or a folder of them.
    Calendar(CalendarArgs),
}

/// Settings of `clctl capture mail`.
#[derive(Debug, clap::Args)]
pub(crate) struct MailArgs {
    /// An address of the subject; repeatable.
    #[arg(long = "owner-address", required = true)]
    owner_addresses: Vec<String>,

    #[command(flatten)]
    run: RunArgs,
}

/// Settings of `clctl capture calendar`.
#[derive(Debug, clap::Args)]
pub(crate) struct CalendarArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Settings of every capture.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The mbox, Maildir, message file, calendar file or folder.
    path: PathBuf,

    /// Whose context it is.
    #[arg(long, default_value = SUBJECT, value_parser = reference)]
    subject: String,

    /// The tenant of the subject.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,

    /// Go on with what comes into the folder, until Ctrl-C.
    #[arg(long)]
    watch: bool,

    /// Folder of the programs [default: where clctl is].
    #[arg(long)]
    bin_dir: Option<PathBuf>,
}

/// Becomes `cl-capture`: progress, report, exit code and signals are its own. Returns only if it
/// cannot.
pub(crate) fn run(command: &CaptureCommand, session: &Session) -> Result<(), Error> {
    let (adapter, args, owner_addresses) = match command {
        CaptureCommand::Mail(args) => ("mail", &args.run, args.owner_addresses.as_slice()),
        CaptureCommand::Calendar(args) => ("calendar", &args.run, &[][..]),
    };
    let endpoints = Endpoints::running(&session.home)?;
    let vault = endpoints.find(&VAULT)?.addr;
    let program = Programs::of(args.bin_dir.as_deref())?.find(CAPTURE)?;
    let mut capture = Command::new(program);
    capture
        .env_clear()
        .arg(adapter)
        .arg("--home")
        .arg(session.home.root())
        .arg(format!("--vault-addr={vault}"))
        .arg(format!("--tenant={}", args.tenant))
        .arg(format!("--subject={}", args.subject));
    for address in owner_addresses {
        capture.arg(format!("--owner-address={address}"));
    }
    if args.watch {
        capture.arg("--watch");
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
