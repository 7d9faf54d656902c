//! The smallest process: it serves the standard health service, to any peer in zone `exchange`.

use std::process::ExitCode;

use cl_host::callers::CallerTable;
use cl_host::tls::ServerTls;
use cl_host::{App, Callers, Process};
use tonic::service::Routes;

#[derive(clap::Args)]
struct NoSettings {}

fn main() -> ExitCode {
    let process = Process {
        name: "health-only",
        version: env!("CARGO_PKG_VERSION"),
        server_tls: ServerTls::INTERNAL,
    };
    cl_host::run(process, async |NoSettings {}, host| {
        let (reporter, service) = tonic_health::server::health_reporter();
        reporter
            .set_service_status("", tonic_health::ServingStatus::Serving)
            .await;
        let callers = CallerTable::new(host.credentials.own().id.trust_domain())?
            .allow("/grpc.health.v1.Health/Check", &["exchange/*"])?
            .allow("/grpc.health.v1.Health/Watch", &["exchange/*"])?;
        Ok(App::new(Routes::new(service), Callers::Table(callers)))
    })
}
