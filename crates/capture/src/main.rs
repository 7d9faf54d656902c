//! The capture process.

use std::io::{self, Write as _};
use std::process::ExitCode;

use cl_capture::command;
use cl_capture::config::Cli;
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = Cli::parse();
    tell_panics_without_their_text();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(command::run(&cli.command)),
        Err(_) => ExitCode::from(command::FAILED),
    }
}

/// A panic's text may hold a private value, so only its place is told.
fn tell_panics_without_their_text() {
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            // Nobody is left to tell when standard error is closed.
            let _told = writeln!(io::stderr(), "cl-capture: panic at {place}");
        }
    }));
}
