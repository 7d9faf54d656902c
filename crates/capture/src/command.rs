//! Runs the command line: reports on standard output, progress on a terminal.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use cl_host::life::Signals;

use crate::config::Command;
use crate::error::Error;
use crate::job::Job;
use crate::pipeline::{self, Deps};
use crate::progress::Progress;
use crate::report::Report;
use crate::source::Seen;
use crate::watch::Watch;

/// Everything was captured, or was there already.
pub const DONE: u8 = 0;
/// The run could not be done, or ended early.
pub const FAILED: u8 = 1;
/// The run is complete, and some items were refused.
pub const SOME_REFUSED: u8 = 3;

/// Runs a command to its exit code: [`DONE`], [`FAILED`], [`SOME_REFUSED`]; a wrong command line
/// ends with 2 before.
pub async fn run(command: &Command) -> ExitCode {
    let code = match capture(command).await {
        Ok(0) => DONE,
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
    #[error("cannot watch the folder: {0}")]
    Watch(#[from] notify::Error),
    #[error("cannot print the report or wait for signals: {0}")]
    Io(#[from] io::Error),
}

/// Captures, and answers with how many items were refused.
async fn capture(command: &Command) -> Result<u64, Failure> {
    let (job, deps) = command.build().map_err(Failure::Settings)?;
    let is_json = command.run().json;
    if command.run().watch {
        return watch(&job, &deps, is_json).await;
    }
    let seen = Arc::new(Mutex::new(Seen::nothing()));
    let report = once(&job, &deps, &seen).await?;
    print(&report, is_json)?;
    Ok(report.refused_total())
}

async fn once(job: &Job, deps: &Deps, seen: &Arc<Mutex<Seen>>) -> Result<Report, Error> {
    let progress = Progress::start(&job.path);
    let outcome = pipeline::run(job, deps, seen, &mut |report| progress.show(report)).await;
    progress.end();
    outcome
}

/// Captures what is there and then what comes, with a report of each round that came upon anything.
/// A signal ends it between two rounds, when all that was read is in the vault.
async fn watch(job: &Job, deps: &Deps, is_json: bool) -> Result<u64, Failure> {
    let mut signals = Signals::of_process()?;
    let watch = Watch::start(&job.path)?;
    let seen = Arc::new(Mutex::new(Seen::remembering()));
    let mut refused = 0;
    let mut is_first = true;
    loop {
        let report = once(job, deps, &seen).await?;
        refused += report.refused_total();
        if is_first || report.found > 0 {
            print(&report, is_json)?;
        }
        is_first = false;
        tokio::select! {
            () = signals.next() => return Ok(refused),
            () = watch.changed() => {}
        }
    }
}

fn print(report: &Report, is_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        write!(out, "{report}")?;
    }
    out.flush()
}
