//! `clctl`: makes a local home, starts the processes from it, and talks to them.
//!
//! # Role
//!
//! One command line for a person who runs a Context Layer: `init` makes certificates, keys and a
//! first policy, `up` runs the processes and supervises them, the other commands are clients of
//! their services, each with the identity that the service expects.
//!
//! # Holds
//!
//! Nothing of its own. While it runs it reads what a home holds: the key of the local certificate
//! authority, the certificates of operator, auditor and owner, and the key of the local token issuer;
//! and what the owner or a recipient may see, to show it.
//!
//! # Trusts
//!
//! The files of the home, and so whoever may write there. The processes, to say of themselves
//! whether they are ready; their answers are shown, with control characters replaced. Not the receipt
//! store for its log: that verifies by the keys of the trust file, or by one that is named.
//!
//! # A compromise yields
//!
//! Whoever controls it, or the home, is everyone in that local deployment: the authority's key makes
//! any identity, and the token issuer's key any principal. A deployment that is not local has its
//! certificates and tokens from elsewhere, and gives an operator only the operator's certificate.

#![deny(missing_docs)]

mod approvers;
mod capture;
mod certificates;
mod cli;
mod endpoints;
mod error;
mod home;
mod http;
mod init;
mod keys;
mod open;
mod output;
mod owner;
mod peers;
mod policy;
mod processes;
mod programs;
mod receipts;
mod request;
mod session;
mod status;
mod token;
mod up;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::error::Error;
use crate::owner::{ClaimsCommand, EventsCommand, SubjectCommand};
use crate::session::Session;

/// Runs the command line of this process.
///
/// The exit codes are those of `--help`.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let session = Session::new(cli.home, cli.json);
    match dispatch(cli.command, &session) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            session.output.fail(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(command: Command, session: &Session) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        match command {
            Command::Init(args) => init::run(&args, session),
            Command::Up(args) => up::run(&args, session).await,
            Command::Status => status::run(session).await,
            Command::Certificates(command) => certificates::run(&command, session),
            Command::Token(command) => token::run(&command, session),
            Command::Policy(command) => policy::run(command, session).await,
            Command::Approvers(command) => approvers::approvers(command, session).await,
            Command::Approvals(command) => approvers::approvals(command, session).await,
            Command::Capture(command) => capture::run(&command, session),
            Command::Events(EventsCommand::List(args)) => owner::events(&args, session).await,
            Command::Claims(ClaimsCommand::List(args)) => owner::claims(&args, session).await,
            Command::Claims(ClaimsCommand::Explain(args)) => owner::explain(&args, session).await,
            Command::Subject(SubjectCommand::Erase(args)) => owner::erase(&args, session).await,
            Command::Request(args) => request::submit(&args, session).await,
            Command::Requests(command) => request::show(&command, session).await,
            Command::Open(args) => open::run(&args, session).await,
            Command::Receipts(command) => receipts::run(command, session).await,
        }
    })
}
