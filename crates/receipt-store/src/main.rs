//! The process of the receipt store.

use std::process::ExitCode;

use cl_host::Process;
use cl_host::tls::ServerTls;
use cl_receipt_store::config::Settings;

fn main() -> ExitCode {
    let process = Process {
        name: cl_receipt_store::PROCESS,
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::INTERNAL,
    };
    cl_host::run(process, async |settings: Settings, host| {
        Ok(cl_receipt_store::assemble(settings.build(host)?)?)
    })
}
