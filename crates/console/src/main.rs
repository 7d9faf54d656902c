//! The console's process.

use std::process::ExitCode;

use cl_console::config::Config;
use cl_host::Process;
use cl_host::tls::ServerTls;

fn main() -> ExitCode {
    let process = Process {
        name: cl_console::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::EDGE,
    };
    cl_host::run(process, async |config: Config, host| {
        Ok(cl_console::app(config.build(host)?))
    })
}
