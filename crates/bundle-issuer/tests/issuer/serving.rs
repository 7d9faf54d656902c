//! Servers that run in the test's own process, and waiting with a deadline.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use cl_host::callers::CallerTable;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::life::{Listeners, Server, Shutdown, Signals, Tasks, Timings};
use cl_host::telemetry::{Telemetry, TelemetryConfig};
use cl_host::tls::Credentials;
use cl_host::{App, Callers};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::{Code, Status};

use crate::pki::{self, Authority};

/// Far more than anything here takes on a busy machine; only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// What every process of every test logs, at all levels that exist.
static LOGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Logs;

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGS.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static SUBSCRIBED: LazyLock<()> = LazyLock::new(|| {
    let (_telemetry, subscriber) = Telemetry::build(&config("trace"), || Logs).unwrap();
    tracing::subscriber::set_global_default(subscriber).unwrap();
});

/// Collects logs from here on.
pub(crate) fn subscribe() {
    LazyLock::force(&SUBSCRIBED);
}

pub(crate) fn logs() -> Vec<u8> {
    LOGS.lock().unwrap().clone()
}

fn config(log_filter: &str) -> TelemetryConfig {
    TelemetryConfig {
        process: "test".to_owned(),
        log_filter: log_filter.to_owned(),
        otlp_endpoint: None,
    }
}

pub(crate) fn telemetry() -> Telemetry {
    Telemetry::build(&config("off"), io::sink).unwrap().0
}

pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(HANG, future).await {
        Ok(output) => output,
        Err(_) => panic!("hangs: {what}"),
    }
}

/// Polls until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server on a free port.
pub(crate) struct Serving {
    pub(crate) addr: SocketAddr,
    id: String,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Serving {
    /// Serves a fake that one peer may call.
    pub(crate) async fn fake(
        routes: Routes,
        authority: &Authority,
        path: &str,
        methods: &[&str],
        caller: &str,
    ) -> Self {
        let mut callers = CallerTable::new(pki::TRUST_DOMAIN).unwrap();
        for method in methods {
            callers = callers.allow(method, &[caller]).unwrap();
        }
        let app = App::new(routes, Callers::Table(callers));
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        Self::start(
            app,
            authority.credentials(path),
            shutdown,
            tasks,
            telemetry(),
        )
        .await
    }

    pub(crate) async fn start(
        app: App,
        credentials: Arc<Credentials>,
        shutdown: Shutdown,
        tasks: Tasks,
        telemetry: Telemetry,
    ) -> Self {
        let main = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = main.local_addr().unwrap();
        let id = credentials.own().id.to_string();
        let server = Server {
            app,
            credentials,
            telemetry,
            timings: Timings {
                lame_duck: Duration::ZERO,
                max_call: HANG,
                ..Timings::default()
            },
            shutdown: shutdown.clone(),
            tasks,
        };
        let (signals, receiver) = Signals::injected();
        let task = tokio::spawn(async move {
            let _signals = signals;
            let _ended = server.serve(Listeners { main, admin }, receiver).await;
        });
        Self {
            addr,
            id,
            shutdown,
            task,
        }
    }

    pub(crate) fn channel(&self, credentials: Arc<Credentials>) -> PeerChannel {
        let path = self.id.split('/').skip(3).collect::<Vec<_>>().join("/");
        channel(self.addr, credentials, &path)
    }

    /// Ends at once, as a killed process does: nothing is finished.
    pub(crate) async fn kill(self) {
        self.shutdown.abort();
        self.task.abort();
        let _cancelled = self.task.await;
    }
}

pub(crate) fn channel(addr: SocketAddr, credentials: Arc<Credentials>, path: &str) -> PeerChannel {
    let target = Target {
        address: format!("localhost:{}", addr.port()),
        id: pki::id(path).parse().unwrap(),
    };
    let limits = ClientLimits {
        connect_timeout: HANG,
        default_deadline: HANG,
        ..ClientLimits::default()
    };
    PeerChannel::new(target, credentials, limits).unwrap()
}

/// The code and the reason of a refusal.
pub(crate) fn refusal<T>(result: Result<T, Status>) -> (Code, String) {
    let Err(status) = result else {
        panic!("not refused");
    };
    let reason = cl_wire::status::reason(&status).unwrap_or_default();
    (status.code(), reason)
}

pub(crate) fn refused(code: Code, reason: &str) -> (Code, String) {
    (code, reason.to_owned())
}
