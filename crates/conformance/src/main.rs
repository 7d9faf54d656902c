//! Conformance tools: the language-neutral adapter, and the runner that drives any adapter.

mod adapter;
mod interop;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::interop::InteropArgs;

/// Black-box conformance of the protocol `context-layer/0.2-draft`.
#[derive(Parser)]
#[command(name = "cl-conformance", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answers one operation: one JSON line in, one JSON line out.
    Adapter,
    /// Drives an adapter through the published cases and compares every answer.
    Interop(InteropArgs),
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Nowhere is left to report to if the error stream itself is closed.
            let _ = writeln!(io::stderr(), "cl-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Adapter => {
            adapter::run()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Interop(args) => Ok(interop::run(&args)?),
    }
}
