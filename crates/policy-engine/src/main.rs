//! The policy engine's process.

use std::process::ExitCode;

use cl_host::Process;
use cl_host::tls::ServerTls;
use cl_policy_engine::config::Config;

fn main() -> ExitCode {
    let process = Process {
        name: cl_policy_engine::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::INTERNAL,
    };
    cl_host::run(process, async |config: Config, host| {
        Ok(cl_policy_engine::app(config.build(host)?)?)
    })
}
