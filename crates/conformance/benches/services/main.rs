//! What the services cost, as ratios to the primitives that their calls cannot do without, over
//! RocksDB and mutual TLS. See `docs/benchmarks.md` for the method.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark stops at the first surprise and talks to a terminal"
)]

mod appends;
mod captures;
mod deployment;
mod documents;
mod floor;
mod grants;
mod logs;
mod mailbox;
mod memory;
#[allow(dead_code, reason = "the system tests use the rest")]
#[path = "../../tests/system/deployment.rs"]
mod processes;
#[path = "../../../model/benches/core/report.rs"]
mod report;
mod submissions;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use cl_host::telemetry::{Telemetry, TelemetryConfig};

use crate::report::{arguments, publish, quantile, start};

/// Where the benchmarks write: on the disk of the build folder, as `/tmp` may be in memory.
const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let telemetry = telemetry();
        let sync = disk_sync(Path::new(FOLDER)).expect("a writable folder");
        println!("one fdatasync of 1 kB on this disk: {sync:.2?}");
        if is_asked_for("appends") {
            publish(&appends::rows(&telemetry, sync).await);
        }
        if is_asked_for("logs") {
            publish(&logs::rows(&telemetry, sync).await);
        }
        if is_asked_for("submissions") {
            publish(&submissions::rows(&telemetry).await);
        }
        if is_asked_for("grants") {
            publish(&grants::rows().await);
        }
        if is_asked_for("captures") {
            publish(&captures::rows().await);
        }
    });
    // The servers serve for ever; nothing that they hold outlives this.
    runtime.shutdown_background();
}

/// Whether a section is to be run: all are, unless the command line names some behind the report.
fn is_asked_for(section: &str) -> bool {
    let mut asked = arguments().skip(1).peekable();
    asked.peek().is_none() || asked.any(|name| name == section)
}

/// As in a process that serves, except that what it logs goes nowhere.
fn telemetry() -> Telemetry {
    let config = TelemetryConfig {
        process: "bench".to_owned(),
        log_filter: "info".to_owned(),
        otlp_endpoint: None,
    };
    let (telemetry, subscriber) = Telemetry::build(&config, io::sink).expect("telemetry");
    tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    telemetry
}

/// The median time that the disk takes to make a small addition to a file durable.
fn disk_sync(folder: &Path) -> io::Result<Duration> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        file.write_all(&[7; 1000])?;
        let start = start();
        file.sync_data()?;
        times.push(start.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(quantile(&mut times, 0.5))
}
