//! `cl-conformance`: the language-neutral adapter, and the runner that drives any adapter.

mod adapter;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Conformance tools of the Context Layer.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answers one operation: a JSON line on stdin, a JSON line on stdout.
    Adapter,
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Adapter => adapter::run(std::io::stdin().lock(), std::io::stdout().lock()),
    }
}
