//! The capture process.

use std::process::ExitCode;

use cl_capture::command;
use cl_capture::config::Cli;
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(command::run(&cli.command)),
        Err(_) => ExitCode::from(command::FAILED),
    }
}
