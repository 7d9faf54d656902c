//! Serving until told to end, and ending in bounded time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use opentelemetry::metrics::Meter;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tower::util::option_layer;
use tower::{Service, ServiceBuilder};

use super::{App, Callers, Shutdown, Signals, Tasks};
use crate::accept::{Acceptor, ConnectionLimits, Ending};
use crate::admin::{self, Health};
use crate::callers::CallerLayer;
use crate::deadline::DeadlineLayer;
use crate::telemetry::{RemoteContext, RpcLayer, RpcMetrics, Telemetry};
use crate::tls::Credentials;

/// Time for dropped connections and tasks to be gone after the hard end.
const HARD_END_LIMIT: Duration = Duration::from_secs(1);

/// Connections to the admin port: probes and one scraper.
const MAX_ADMIN_CONNECTIONS: usize = 64;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// Longest time for one call.
    pub max_call: Duration,
    /// Time between telling probes and refusing connections.
    pub lame_duck: Duration,
    /// Time for running calls to end before they are cut off.
    pub drain_deadline: Duration,
    /// Time between two looks at the certificate files.
    pub reload_interval: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            max_call: Duration::from_secs(30),
            lame_duck: Duration::from_secs(2),
            drain_deadline: Duration::from_secs(20),
            reload_interval: Duration::from_secs(10),
        }
    }
}

/// Ports, bound already.
#[derive(Debug)]
pub struct Listeners {
    /// For mutual TLS.
    pub main: TcpListener,
    /// For health and metrics in plain text.
    pub admin: TcpListener,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All calls and tasks came to their end, or none had begun.
    Drained,
    /// The drain deadline cut some off.
    CutOff,
    /// A second signal cut everything off.
    Aborted,
}

/// Why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listener has no address.
    #[error("listener: {0}")]
    Listener(#[from] io::Error),
    /// A task ended that should have lived as long as the process.
    #[error("task {0} ended untold")]
    TaskDied(&'static str),
}

/// A process that is built and not yet serving.
#[derive(Debug)]
pub struct Server {
    /// What is served.
    pub app: App,
    /// Own certificate and authorities.
    pub credentials: Arc<Credentials>,
    /// Logs, traces and metrics; the caller shuts it down.
    pub telemetry: Telemetry,
    /// How long things may take.
    pub timings: Timings,
    /// The token that the app's streams and tasks listen to.
    pub shutdown: Shutdown,
    /// The app's long tasks.
    pub tasks: Tasks,
}

impl Server {
    /// Serves until a signal comes or a task dies, then ends:
    ///
    /// 1. health says NOT_SERVING, calls are still taken for the lame-duck time;
    /// 2. both the port and idle connections close, streams and tasks are told to end;
    /// 3. after the drain deadline, or a second signal at any moment, the rest is dropped.
    ///
    /// The admin port answers until the end.
    pub async fn serve(
        self,
        listeners: Listeners,
        mut signals: Signals,
    ) -> Result<Ended, ServeError> {
        let Listeners { main, admin } = listeners;
        let (main_addr, admin_addr) = (main.local_addr()?, admin.local_addr()?);
        observe(&self.telemetry.meter(), &self.credentials);
        let health = Health::new(service_names(&self.app.callers)).await;
        let admin = Admin::start(
            admin,
            health.clone(),
            &self.app,
            &self.telemetry,
            &self.tasks,
        );
        self.start_tasks(main);

        health.set(true).await;
        tracing::info!(%main_addr, %admin_addr, id = %self.credentials.own().id, "ready");
        let died = tokio::select! {
            () = signals.next() => None,
            name = self.tasks.died() => Some(name),
        };
        health.set(false).await;
        let ended = tokio::select! {
            ended = self.wind_down() => ended,
            () = signals.next() => Ended::Aborted,
        };
        tracing::info!(?ended, "calls ended");
        self.shutdown.abort();
        if timeout(HARD_END_LIMIT, self.tasks.ended()).await.is_err() {
            tracing::warn!("a task blocks its thread and was left behind");
        }
        admin.end().await;
        match died {
            None => Ok(ended),
            Some(name) => Err(ServeError::TaskDied(name)),
        }
    }

    fn start_tasks(&self, main: TcpListener) {
        let certificates = Arc::clone(&self.credentials)
            .watch(self.timings.reload_interval, self.shutdown.token());
        self.tasks.spawn("certificates", certificates);
        let meter = self.telemetry.meter();
        let acceptor = Acceptor::mutual_tls(
            Arc::clone(&self.credentials),
            self.app.limits,
            self.shutdown.ending(),
        );
        let service = layered(&self.app, &meter, self.timings.max_call);
        let connections = acceptor.counting(&meter).serve(main, service);
        self.tasks.spawn("connections", connections);
    }

    async fn wind_down(&self) -> Ended {
        sleep(self.timings.lame_duck).await;
        self.shutdown.request();
        match timeout(self.timings.drain_deadline, self.tasks.ended()).await {
            Ok(()) => Ended::Drained,
            Err(_) => {
                tracing::warn!("drain deadline passed, cutting off what is left");
                Ended::CutOff
            }
        }
    }
}

/// Telemetry outermost, so that refusals count too; callers before anything is read.
fn layered(
    app: &App,
    meter: &Meter,
    max_call: Duration,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ use<> {
    let (methods, table, remote) = match &app.callers {
        Callers::Table(table) => (
            table.methods().map(str::to_owned).collect(),
            Some(CallerLayer::new(Arc::new(table.clone()))),
            RemoteContext::Continue,
        ),
        Callers::Edge { methods } => (
            methods.iter().cloned().collect::<BTreeSet<_>>(),
            None,
            RemoteContext::Ignore,
        ),
    };
    let rpc = RpcLayer::new(RpcMetrics::new(meter, methods), remote);
    ServiceBuilder::new()
        .layer(rpc.plain_http(app.plain_http.clone()))
        .layer(option_layer(table))
        .layer(DeadlineLayer::new(max_call).plain_http(app.plain_http.clone()))
        .service(app.routes.clone().prepare())
}

/// `/package.Service/Method` to `package.Service`.
fn service_names(callers: &Callers) -> BTreeSet<String> {
    let service = |method: &str| match method.split('/').collect::<Vec<_>>()[..] {
        ["", service, _] if service.contains('.') => Some(service.to_owned()),
        _ => None,
    };
    match callers {
        Callers::Table(table) => table.methods().filter_map(service).collect(),
        Callers::Edge { methods } => methods.iter().filter_map(|path| service(path)).collect(),
    }
}

fn observe(meter: &Meter, credentials: &Arc<Credentials>) {
    let own = Arc::clone(credentials);
    meter
        .i64_observable_gauge("tls_certificate_not_after")
        .with_unit("s")
        .with_description("Unix time at which the own certificate ends.")
        .with_callback(move |gauge| gauge.observe(own.own().not_after_unix_s, &[]))
        .build();
    let reloads = Arc::clone(credentials);
    meter
        .u64_observable_counter("tls_reload_failures")
        .with_description("Looks at the certificate files that ended in an error.")
        .with_callback(move |counter| counter.observe(reloads.failed_reloads(), &[]))
        .build();
}

/// The admin port, which outlives the drain.
struct Admin {
    ending: Ending,
    task: tokio::task::JoinHandle<()>,
}

impl Admin {
    fn start(
        listener: TcpListener,
        health: Health,
        app: &App,
        telemetry: &Telemetry,
        tasks: &Tasks,
    ) -> Self {
        let ending = Ending::default();
        let limits = ConnectionLimits {
            max_connections: MAX_ADMIN_CONNECTIONS,
            ..ConnectionLimits::default()
        };
        let routes = admin::routes(health, app.detail.clone(), telemetry.clone());
        let serving = Acceptor::plain_text(limits, ending.clone()).serve(listener, routes);
        Self {
            ending,
            task: tokio::spawn(tasks.guarded("admin", serving)),
        }
    }

    async fn end(self) {
        self.ending.hard.cancel();
        if timeout(HARD_END_LIMIT, self.task).await.is_err() {
            tracing::warn!("the admin port did not end in time");
        }
    }
}
