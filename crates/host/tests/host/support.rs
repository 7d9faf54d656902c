//! A service to call, servers that serve it, and waiting with a deadline.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use cl_host::accept::ConnectionLimits;
use cl_host::callers::CallerTable;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::deadline::Deadline;
use cl_host::identity::PeerId;
use cl_host::life::{
    Ended, Listeners, ServeError, Server, Shutdown, SignalSender, Signals, Tasks, Timings,
};
use cl_host::telemetry::{CorrelationId, Telemetry, TelemetryConfig};
use cl_host::tls::Credentials;
use cl_host::{App, Callers};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::{Stream, StreamExt};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

pub(crate) const CHECK: &str = "/grpc.health.v1.Health/Check";
pub(crate) const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Far more than anything here takes on a busy machine; only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// While at most one subscriber exists, `tracing` asks only the current thread's whether a callsite
/// is of interest, and remembers a no for all threads. Tests without a subscriber would silence
/// those with one; two that want nothing prevent it.
static BYSTANDERS: LazyLock<[Dispatch; 2]> = LazyLock::new(|| {
    let bystander = || Dispatch::new(NoSubscriber::new());
    [bystander(), bystander()]
});

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
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// What a handler saw of one call.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) peer: Option<PeerId>,
    pub(crate) traceparent: Option<String>,
    pub(crate) correlation_id: String,
    pub(crate) remaining: Duration,
}

/// A health service whose answers depend on the name that is asked for.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) held: Arc<watch::Sender<usize>>,
    pub(crate) release: Arc<watch::Sender<bool>>,
    pub(crate) onward: Option<PeerChannel>,
    shutdown: Shutdown,
}

impl Probe {
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Self {
            seen: Arc::default(),
            held: Arc::new(watch::Sender::new(0)),
            release: Arc::new(watch::Sender::new(false)),
            onward: None,
            shutdown,
        }
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn note(&self, request: &Request<HealthCheckRequest>) {
        let extensions = request.extensions();
        let traceparent = request.metadata().get("traceparent");
        self.seen.lock().unwrap().push(Seen {
            peer: extensions.get::<PeerId>().cloned(),
            traceparent: traceparent.map(|value| value.to_str().unwrap().to_owned()),
            correlation_id: extensions.get::<CorrelationId>().unwrap().to_string(),
            remaining: extensions.get::<Deadline>().unwrap().remaining(),
        });
    }

    async fn hold(&self) {
        self.held.send_modify(|held| *held += 1);
        let mut release = self.release.subscribe();
        release.wait_for(|released| *released).await.unwrap();
    }
}

fn serving() -> HealthCheckResponse {
    HealthCheckResponse {
        status: ServingStatus::Serving.into(),
    }
}

#[tonic::async_trait]
impl Health for Probe {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.note(&request);
        match request.get_ref().service.as_str() {
            "hold" => self.hold().await,
            "onward" => {
                let channel = self.onward.clone().unwrap();
                HealthClient::new(channel).check(asking("")).await?;
            }
            "fail" => return Err(Status::internal("a secret text")),
            "panic" => panic!("a secret panic"),
            _ => {}
        }
        Ok(Response::new(serving()))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.note(&request);
        let endless = tokio_stream::once(Ok(serving())).chain(tokio_stream::pending());
        let stream: Self::WatchStream = match request.get_ref().service.as_str() {
            "polite" => Box::pin(self.shutdown.end_stream(endless)),
            _ => Box::pin(endless),
        };
        Ok(Response::new(stream))
    }
}

pub(crate) fn asking(service: &str) -> Request<HealthCheckRequest> {
    Request::new(HealthCheckRequest {
        service: service.to_owned(),
    })
}

/// Settings of a test server.
pub(crate) struct Start {
    pub(crate) listen: SocketAddr,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) callers: Callers,
    pub(crate) timings: Timings,
    pub(crate) limits: ConnectionLimits,
    pub(crate) telemetry: Option<Telemetry>,
    pub(crate) onward: Option<PeerChannel>,
}

impl Start {
    /// Opens the probe to every peer of zone `exchange`.
    pub(crate) fn new(credentials: Arc<Credentials>) -> Self {
        let table = CallerTable::new("example.org")
            .unwrap()
            .allow(CHECK, &["exchange/*"])
            .unwrap()
            .allow(WATCH, &["exchange/*"])
            .unwrap();
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            credentials,
            callers: Callers::Table(table),
            timings: Timings {
                lame_duck: Duration::ZERO,
                max_call: HANG,
                ..Timings::default()
            },
            limits: ConnectionLimits::default(),
            telemetry: None,
            onward: None,
        }
    }

    pub(crate) async fn run(self) -> Running {
        LazyLock::force(&BYSTANDERS);
        let main = TcpListener::bind(self.listen).await.unwrap();
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, admin_addr) = (main.local_addr().unwrap(), admin.local_addr().unwrap());
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let mut probe = Probe::new(shutdown.clone());
        probe.onward = self.onward;
        let mut app = App::new(Routes::new(HealthServer::new(probe.clone())), self.callers);
        app.limits = self.limits;
        let server = Server {
            app,
            credentials: self.credentials,
            telemetry: self.telemetry.unwrap_or_else(quiet_telemetry),
            timings: self.timings,
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        };
        let (signals, receiver) = Signals::injected();
        let listeners = Listeners { main, admin };
        Running {
            addr,
            admin_addr,
            probe,
            signals,
            tasks,
            task: tokio::spawn(server.serve(listeners, receiver)),
        }
    }
}

fn quiet_telemetry() -> Telemetry {
    let config = TelemetryConfig {
        process: "test".to_owned(),
        log_filter: "off".to_owned(),
        otlp_endpoint: None,
    };
    Telemetry::build(&config, std::io::sink).unwrap().0
}

/// A server that runs in the test's own process.
pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) probe: Probe,
    pub(crate) signals: SignalSender,
    pub(crate) tasks: Tasks,
    pub(crate) task: JoinHandle<Result<Ended, ServeError>>,
}

impl Running {
    pub(crate) fn channel(&self, credentials: Arc<Credentials>, id: &str) -> PeerChannel {
        channel(self.addr, credentials, id)
    }

    pub(crate) fn client(&self, credentials: Arc<Credentials>) -> HealthClient<PeerChannel> {
        HealthClient::new(self.channel(credentials, SERVER_ID))
    }

    pub(crate) async fn ended(self) -> Result<Ended, ServeError> {
        within("the server's end", self.task).await.unwrap()
    }
}

pub(crate) const SERVER: &str = "exchange/server";
pub(crate) const SERVER_ID: &str = "spiffe://example.org/exchange/server";
pub(crate) const CLIENT: &str = "exchange/client";

pub(crate) fn channel(addr: SocketAddr, credentials: Arc<Credentials>, id: &str) -> PeerChannel {
    let target = Target {
        address: format!("localhost:{}", addr.port()),
        id: id.parse().unwrap(),
    };
    let limits = ClientLimits {
        connect_timeout: HANG,
        default_deadline: HANG,
        ..ClientLimits::default()
    };
    PeerChannel::new(target, credentials, limits).unwrap()
}

/// One HTTP/1.1 request in plain text; the whole answer.
pub(crate) async fn http_get(addr: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within("an HTTP answer", stream.read_to_string(&mut answer))
        .await
        .unwrap();
    answer
}
