//! The gateway's process.

use std::process::ExitCode;

use cl_gateway::config::Config;
use cl_host::Process;
use cl_host::tls::ServerTls;

fn main() -> ExitCode {
    let process = Process {
        name: cl_gateway::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::EDGE,
    };
    cl_host::run(process, async |config: Config, host| {
        Ok(cl_gateway::app(config.build(host)?))
    })
}
