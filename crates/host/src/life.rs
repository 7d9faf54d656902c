//! The life of a process, from its command line to its exit code.

mod args;
mod serve;
mod shutdown;
mod signals;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::Meter;
use tokio::net::TcpListener;
use tonic::service::Routes;

use self::args::Cli;
pub use self::args::HostArgs;
pub use self::serve::{Ended, Listeners, ServeError, Server, Timings};
pub use self::shutdown::{EndOnShutdown, Shutdown, Tasks};
pub use self::signals::{SignalSender, Signals};
use crate::accept::ConnectionLimits;
use crate::admin::Detail;
use crate::callers::CallerTable;
use crate::client::{ClientLimits, PeerChannel, Target};
use crate::clock::{Clock, SystemClock};
use crate::ids::{Ids, SystemIds};
use crate::status::PlainHttp;
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::tls::{Credentials, ServerTls, TlsError};

/// Time for the last telemetry to leave after an orderly end.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// The same after a second signal.
const FLUSH_LIMIT_WHEN_ABORTED: Duration = Duration::from_secs(1);

/// Time for detached threads when the runtime ends.
const RUNTIME_END_LIMIT: Duration = Duration::from_secs(1);

/// What a binary says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Name of the binary, also in telemetry and for the files under `pki/`: `cl-vault`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How it presents itself as a server.
    pub server_tls: ServerTls,
}

/// What a service builds on.
#[derive(Clone, Debug)]
pub struct Host {
    /// Settings that every process has.
    pub args: HostArgs,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers and random bytes.
    pub ids: Arc<dyn Ids>,
    /// Own certificate and authorities, for clients of peers; names the trust domain.
    pub credentials: Arc<Credentials>,
    /// Where the service's own instruments come from.
    pub meter: Meter,
    /// Tells streams and tasks when to end.
    pub shutdown: Shutdown,
    /// Long tasks; one that ends early takes the process down.
    pub tasks: Tasks,
}

impl Host {
    /// Calls to the process at `path` of the own trust domain, such as `vault/cl-vault`, at an
    /// address `host:port`.
    pub fn peer(&self, address: String, path: &str) -> Result<PeerChannel, BoxError> {
        let own = self.credentials.own().id;
        let target = Target {
            address,
            id: format!("spiffe://{}/{path}", own.trust_domain()).parse()?,
        };
        let credentials = Arc::clone(&self.credentials);
        Ok(PeerChannel::new(
            target,
            credentials,
            ClientLimits::default(),
        )?)
    }
}

/// What a service serves.
#[derive(Clone, Debug)]
pub struct App {
    /// gRPC services, and HTTP routes at the edges.
    pub routes: Routes,
    /// Who may call.
    pub callers: Callers,
    /// Bounds on connections.
    pub limits: ConnectionLimits,
    /// How callers of plain HTTP are told that a call ran into its deadline or broke; without it
    /// they get a gRPC status too.
    pub plain_http: Option<PlainHttp>,
    /// What probes of readiness are told beside the answer.
    pub detail: Option<Detail>,
}

impl App {
    /// An app with the default bounds on connections.
    pub fn new(routes: Routes, callers: Callers) -> Self {
        Self {
            routes,
            callers,
            limits: ConnectionLimits::default(),
            plain_http: None,
            detail: None,
        }
    }
}

/// Who may call a service.
#[derive(Clone, Debug)]
pub enum Callers {
    /// The peers in this table; their trace context is continued.
    Table(CallerTable),
    /// Anyone who connects: an edge authenticates its callers itself. Their trace context is
    /// ignored. `methods` are named in metrics.
    Edge {
        /// gRPC method paths and plain HTTP paths without parameters.
        methods: Vec<String>,
    },
}

/// Any error of building a service; only a person reads it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a process from its command line to its exit code.
///
/// `C` holds the service's own settings. The ports are bound first, so that a port that is taken is
/// known before anything is opened; then `build` checks the settings and the stored state. Whoever
/// connects meanwhile waits until it has ended. Then: serve, ready; on SIGTERM or SIGINT the orderly
/// end that [`Server::serve`] describes; telemetry is flushed in any case.
///
/// Exit codes: 0 after an orderly end (also when the drain deadline cut calls off), 1 after a
/// failure, 2 for a wrong command line, 130 after a second signal.
pub fn run<C, B>(process: Process, build: B) -> ExitCode
where
    C: clap::Args,
    B: AsyncFnOnce(C, &Host) -> Result<App, BoxError>,
{
    let cli = Cli::<C>::parse_for(&process);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail_without_telemetry(&error),
    };
    let code = runtime.block_on(live(process, cli, build));
    runtime.shutdown_timeout(RUNTIME_END_LIMIT);
    code
}

async fn live<C, B>(process: Process, cli: Cli<C>, build: B) -> ExitCode
where
    C: clap::Args,
    B: AsyncFnOnce(C, &Host) -> Result<App, BoxError>,
{
    // Our own configurations name the provider; this is for libraries that ask for the default.
    // An error says that one is installed already.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let telemetry = match Telemetry::install(&telemetry_config(process, &cli.host)) {
        Ok(telemetry) => telemetry,
        Err(error) => return fail_without_telemetry(&error),
    };
    log_panics_without_their_text();
    let (code, flush_limit) = match start(process, cli, build, &telemetry).await {
        Ok(Ended::Aborted) => (ExitCode::from(130), FLUSH_LIMIT_WHEN_ABORTED),
        Ok(Ended::Drained | Ended::CutOff) => (ExitCode::SUCCESS, FLUSH_LIMIT),
        Err(error) => {
            tracing::error!(%error, "process failed");
            (ExitCode::FAILURE, FLUSH_LIMIT)
        }
    };
    telemetry.shutdown(flush_limit).await;
    code
}

async fn start<C, B>(
    process: Process,
    cli: Cli<C>,
    build: B,
    telemetry: &Telemetry,
) -> Result<Ended, StartError>
where
    C: clap::Args,
    B: AsyncFnOnce(C, &Host) -> Result<App, BoxError>,
{
    let mut signals = Signals::of_process().map_err(StartError::Signals)?;
    let Cli {
        host: args,
        service,
    } = cli;
    let host = Host::new(process, args, telemetry)?;
    let listeners = Listeners {
        main: TcpListener::bind(host.args.listen_addr)
            .await
            .map_err(StartError::Bind)?,
        admin: TcpListener::bind(host.args.admin_addr)
            .await
            .map_err(StartError::Bind)?,
    };
    let app = tokio::select! {
        app = build(service, &host) => app.map_err(StartError::Build)?,
        () = signals.next() => {
            tracing::info!("told to end before it was ready");
            return Ok(Ended::Drained);
        }
    };
    let server = Server {
        app,
        credentials: host.credentials,
        telemetry: telemetry.clone(),
        timings: host.args.timings(),
        shutdown: host.shutdown,
        tasks: host.tasks,
    };
    Ok(server.serve(listeners, signals).await?)
}

impl Host {
    fn new(process: Process, args: HostArgs, telemetry: &Telemetry) -> Result<Self, TlsError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = args.tls_files(process.name);
        let shutdown = Shutdown::default();
        Ok(Self {
            credentials: Credentials::load(files, process.server_tls, Arc::clone(&clock))?,
            ids: Arc::new(SystemIds::new(Arc::clone(&clock))),
            clock,
            args,
            meter: telemetry.meter(),
            tasks: Tasks::new(shutdown.clone()),
            shutdown,
        })
    }
}

fn telemetry_config(process: Process, args: &HostArgs) -> TelemetryConfig {
    TelemetryConfig {
        process: process.name.to_owned(),
        log_filter: args.log_filter.clone(),
        otlp_endpoint: args.otlp_endpoint.clone(),
    }
}

/// A panic's text may hold a private value, so only its place is logged.
fn log_panics_without_their_text() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic");
    }));
}

fn fail_without_telemetry(error: &dyn std::error::Error) -> ExitCode {
    // Nobody is left to tell when stderr is closed.
    let _written = writeln!(io::stderr(), "cannot start: {error}");
    ExitCode::FAILURE
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("signals: {0}")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("build: {0}")]
    Build(#[source] BoxError),
    #[error("bind: {0}")]
    Bind(#[source] io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
}
