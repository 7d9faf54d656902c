//! Runs the command line: report on standard output, progress on a terminal.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use crate::config::{Command, MailArgs};
use crate::error::Error;
use crate::pipeline;
use crate::report::Report;

/// Everything was captured, or was there already.
pub const DONE: u8 = 0;
/// The run could not be done, or ended early.
pub const FAILED: u8 = 1;
/// The run is complete, and some items were refused.
pub const SOME_REFUSED: u8 = 3;

/// Runs a command to its exit code: [`DONE`], [`FAILED`], [`SOME_REFUSED`]; a wrong command line
/// ends with 2 before.
pub async fn run(command: &Command) -> ExitCode {
    let Command::Mail(args) = command;
    let code = match mail(args).await {
        Ok(report) if report.refused_total() == 0 => DONE,
        Ok(_) => SOME_REFUSED,
        Err(failure) => {
            // Nobody is left to tell when standard error is closed.
            let _told = writeln!(io::stderr(), "cl-capture: {failure}");
            FAILED
        }
    };
    ExitCode::from(code)
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot start: {0}")]
    Settings(cl_host::BoxError),
    #[error(transparent)]
    Run(#[from] Error),
    #[error("cannot print the report: {0}")]
    Output(#[from] io::Error),
}

async fn mail(args: &MailArgs) -> Result<Report, Failure> {
    let (job, deps) = args.build().map_err(Failure::Settings)?;
    let is_terminal = io::stderr().is_terminal();
    let mut progress = |report: &Report| {
        if is_terminal {
            let refused = report.refused_total();
            let _told = write!(
                io::stderr(),
                "\r{} captured, {} known, {refused} refused",
                report.captured,
                report.duplicates
            );
        }
    };
    let outcome = pipeline::run(&job, &deps, &mut progress).await;
    if is_terminal {
        let _told = writeln!(io::stderr());
    }
    let report = outcome?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(report)
}
