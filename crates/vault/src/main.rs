//! The vault's process.

use std::process::ExitCode;

use cl_host::Process;
use cl_host::tls::ServerTls;
use cl_vault::config::Config;

fn main() -> ExitCode {
    let process = Process {
        name: cl_vault::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::INTERNAL,
    };
    cl_host::run(process, async |config: Config, host| {
        Ok(cl_vault::app(config.build(host)?)?)
    })
}
