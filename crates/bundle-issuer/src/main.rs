//! The bundle issuer's process.

use std::process::ExitCode;

use cl_bundle_issuer::config::Config;
use cl_host::Process;
use cl_host::tls::ServerTls;

fn main() -> ExitCode {
    let process = Process {
        name: cl_bundle_issuer::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::INTERNAL,
    };
    cl_host::run(process, async |config: Config, host| {
        cl_bundle_issuer::app(config.build(host)?)
    })
}
