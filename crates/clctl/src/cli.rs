//! The command line as a whole.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::approvers::{ApprovalsCommand, ApproversCommand};
use crate::capture::CaptureCommand;
use crate::certificates::CertificatesCommand;
use crate::init::InitArgs;
use crate::open::OpenArgs;
use crate::owner::{ClaimsCommand, EventsCommand, SubjectCommand};
use crate::policy::PolicyCommand;
use crate::receipts::ReceiptsCommand;
use crate::request::{RequestArgs, RequestsCommand};
use crate::token::TokenCommand;
use crate::up::UpArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done; a decision that denies is an answer, not a failure
  1  refused or failed
  2  wrong usage
  3  a process is not running, or cannot do its work now: try again
  4  not found
  5  a receipt log, an export, a proof or an approval does not verify
`capture` ends as cl-capture does: with 3 if some items were refused.";

/// Runs and inspects a Context Layer.
#[derive(Debug, Parser)]
#[command(name = "clctl", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Folder with `pki/`, `keys/` and `data/`.
    #[arg(
        long,
        env = "CL_HOME",
        default_value = "./.context-layer",
        global = true
    )]
    pub(crate) home: PathBuf,

    /// Write one JSON document instead of a table.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a home: certificates, keys, a first policy and examples.
    Init(InitArgs),
    /// Starts the processes of a home, and stops them on Ctrl-C.
    Up(UpArgs),
    /// Says how each process, the policy and the receipt log are.
    Status,
    /// The certificates of a home.
    #[command(subcommand)]
    Certificates(CertificatesCommand),
    /// Access tokens of the local token issuer.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Policy snapshots.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// People who approve, and their passkeys.
    #[command(subcommand)]
    Approvers(ApproversCommand),
    /// What people approved.
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Hands native items to the vault.
    #[command(subcommand)]
    Capture(CaptureCommand),
    /// What was captured, as its owner.
    #[command(subcommand)]
    Events(EventsCommand),
    /// What was read out of it, as its owner.
    #[command(subcommand)]
    Claims(ClaimsCommand),
    /// A subject of the vault, as its owner.
    #[command(subcommand)]
    Subject(SubjectCommand),
    /// Sends a context request to the gateway.
    Request(RequestArgs),
    /// Context requests that were sent before.
    #[command(subcommand)]
    Requests(RequestsCommand),
    /// Takes a bundle as its recipient and shows what is in it; it can be taken once.
    Open(OpenArgs),
    /// Receipts of what was done.
    #[command(subcommand)]
    Receipts(ReceiptsCommand),
}

/// A tenant's name, as the services accept it.
pub(crate) fn tenant(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if (1..=63).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("1 to 63 characters of a-z, 0-9 and -".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn tenants_have_one_form() {
        for good in ["a", "acme-2", &"a".repeat(63)] {
            assert!(tenant(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a_b", &"a".repeat(64)] {
            assert!(tenant(bad).is_err(), "{bad}");
        }
    }
}
