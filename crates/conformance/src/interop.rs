//! `cl-conformance interop`: drives an adapter, in any language, through the published cases.
//!
//! The data folder holds the protocol author's vectors, fixtures, schemas and expected objects,
//! unchanged. Answers are compared as whole objects, and every digest, id, signature, log line and
//! anchor line is recomputed here. Nothing below uses the protocol library of this workspace, so
//! that an error there cannot also hide here.
//!
//! Exit status: 0 if every check passes, 1 if one fails, 2 if the data or the command line cannot
//! be used.

mod canonical;
mod checks;
mod data;
mod failure;
mod json;
mod keys;
mod lookup;
mod process;
mod report;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use self::checks::Context;
use self::data::{Data, InvalidData};
use self::process::{Adapter, Limits};
use self::report::Recorder;

#[derive(Debug, clap::Args)]
pub(crate) struct InteropArgs {
    /// Folder with `manifest.json` and the files it names.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// File to write the JSON report to.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Adapter program and its arguments, after `--`.
    ///
    /// Without it, this executable's own `adapter` command is driven.
    #[arg(last = true, value_name = "ADAPTER")]
    adapter: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Data(#[from] InvalidData),
    #[error("cannot find this executable, which is the default adapter")]
    CurrentExecutable(#[source] io::Error),
    #[error("cannot write the results")]
    Output(#[from] io::Error),
    #[error("cannot write the report {path}")]
    Report {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

pub(crate) fn run(args: &InteropArgs) -> Result<ExitCode, Error> {
    let data = Data::load(&args.data)?;
    let adapter = Adapter::new(adapter_command(&args.adapter)?, Limits::PUBLISHED);

    let mut out = io::stdout().lock();
    let mut recorder = Recorder::new(&mut out);
    checks::run_all(&Context::new(&data, &adapter), &mut recorder)?;
    let results = recorder.finish();

    writeln!(
        out,
        "{} passed, {} failed; {} data files verified, {} skipped; {} adapter processes",
        results.passed(),
        results.failed(),
        data.manifest.verified,
        data.manifest.skipped.len(),
        adapter.launches(),
    )?;
    if let Some(path) = &args.report {
        let text = report::render(&data.manifest, &adapter, &results);
        fs::write(path, text).map_err(|source| Error::Report {
            path: path.clone(),
            source,
        })?;
    }
    Ok(ExitCode::from(u8::from(results.failed() > 0)))
}

fn adapter_command(given: &[OsString]) -> Result<Vec<OsString>, Error> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let this = env::current_exe().map_err(Error::CurrentExecutable)?;
    Ok(vec![this.into(), "adapter".into()])
}
