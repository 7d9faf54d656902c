//! Accepting connections, serving them, and ending them: each one is bounded in every state.
//!
//! tonic's own loop detaches its connections and cannot end one that stays silent or holds a
//! stream open, so a process could neither drain in bounded time nor bound a connection's age.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::{Service, ServiceExt};

use crate::identity::{InvalidPeer, PeerId};
use crate::tls::{Alpn, ClientAuth, Credentials};

/// Bounds on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at a time, those in a handshake included; one more is closed at once.
    pub max_connections: usize,
    /// From accept to the end of the TLS handshake.
    pub handshake_timeout: Duration,
    /// From the handshake to the first request.
    pub first_request_timeout: Duration,
    /// After this age a connection is asked to end, so that renewed certificates take effect. Clients of
    /// this workspace leave theirs before.
    pub max_age: Duration,
    /// After being asked for this long, it is cut.
    pub age_grace: Duration,
    /// Requests at a time on one connection.
    pub max_streams: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            handshake_timeout: Duration::from_secs(10),
            first_request_timeout: Duration::from_secs(30),
            max_age: Duration::from_secs(300),
            age_grace: Duration::from_secs(60),
            max_streams: 256,
        }
    }
}

/// The two steps of ending: first everybody is asked, then everything is cut.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Stop accepting; connections finish what they have.
    pub soft: CancellationToken,
    /// Drop connections and handlers as they are.
    pub hard: CancellationToken,
}

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
const PAUSE_AFTER_ACCEPT_ERROR: Duration = Duration::from_millis(50);

/// Takes connections and serves them.
#[derive(Clone, Debug)]
pub struct Acceptor {
    credentials: Option<Arc<Credentials>>,
    limits: ConnectionLimits,
    ending: Ending,
    refused: Option<Counter<u64>>,
}

impl Acceptor {
    /// Over mutual TLS. Requests of peers with a certificate carry a [`PeerId`] extension.
    pub fn mutual_tls(
        credentials: Arc<Credentials>,
        limits: ConnectionLimits,
        ending: Ending,
    ) -> Self {
        Self {
            credentials: Some(credentials),
            limits,
            ending,
            refused: None,
        }
    }

    /// In plain text: for the admin port only.
    pub fn plain_text(limits: ConnectionLimits, ending: Ending) -> Self {
        Self {
            credentials: None,
            limits,
            ending,
            refused: None,
        }
    }

    /// Counts refused connections by cause.
    #[must_use]
    pub fn counting(self, meter: &Meter) -> Self {
        let refused = meter
            .u64_counter("connections_refused")
            .with_description("Connections that ended before their first request, by cause.")
            .build();
        Self {
            refused: Some(refused),
            ..self
        }
    }

    /// Serves `service` on every connection of `listener`.
    ///
    /// Ends when all connections and handlers ended after `ending.soft`, or at once after
    /// `ending.hard`.
    pub async fn serve<S>(self, listener: TcpListener, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let tracker = TaskTracker::new();
        let server = Server {
            service,
            tasks: Tasks {
                tracker: tracker.clone(),
                hard: self.ending.hard.clone(),
            },
            acceptor: self,
        };
        server.accept_until_soft(listener).await;
        tracker.close();
        tracker.wait().await;
    }

    /// Anyone can knock at an edge, so there it is not worth a warning.
    fn note_refusal(&self, remote: SocketAddr, refusal: &Refusal) {
        if let Some(refused) = &self.refused {
            refused.add(1, &[KeyValue::new("cause", refusal.cause())]);
        }
        let inner = self
            .credentials
            .as_ref()
            .is_some_and(|own| own.server_tls().client_auth == ClientAuth::Required);
        if inner {
            tracing::warn!(%remote, cause = %refusal, "connection refused");
        } else {
            tracing::debug!(%remote, cause = %refusal, "connection refused");
        }
    }
}

/// Why a connection ended before its first request.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("too many connections")]
    TooMany,
    #[error("handshake timed out")]
    Timeout,
    #[error("handshake: {0}")]
    Tls(#[from] io::Error),
    #[error("client certificate: {0}")]
    Peer(#[from] InvalidPeer),
    #[error("no request came")]
    NoRequest,
}

impl Refusal {
    fn cause(&self) -> &'static str {
        match self {
            Self::TooMany => "too_many",
            Self::Timeout => "timeout",
            Self::Tls(_) => "tls",
            Self::Peer(_) => "peer",
            Self::NoRequest => "no_request",
        }
    }
}

#[derive(Clone)]
struct Server<S> {
    acceptor: Acceptor,
    service: S,
    tasks: Tasks,
}

impl<S> Server<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    /// Owns the listener, so that the port closes when accepting stops.
    async fn accept_until_soft(self, listener: TcpListener) {
        let Ending { soft, hard } = &self.acceptor.ending;
        let slots = Arc::new(Semaphore::new(self.acceptor.limits.max_connections));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = soft.cancelled() => return,
                () = hard.cancelled() => return,
            };
            match (accepted, Arc::clone(&slots).try_acquire_owned()) {
                (Ok((stream, remote)), Ok(slot)) => {
                    let server = self.clone();
                    self.tasks.spawn(server.serve_stream(stream, remote, slot));
                }
                (Ok((_, remote)), Err(_)) => self.acceptor.note_refusal(remote, &Refusal::TooMany),
                (Err(error), _) => {
                    // Out of file descriptors, mostly: give connections time to end.
                    tracing::warn!(%error, "cannot accept");
                    sleep(PAUSE_AFTER_ACCEPT_ERROR).await;
                }
            }
        }
    }

    async fn serve_stream(self, stream: TcpStream, remote: SocketAddr, slot: OwnedSemaphorePermit) {
        let _held_until_the_connection_ends = slot;
        let acceptor = self.acceptor.clone();
        let serving = self.serve_unless_refused(stream, remote);
        if let Err(refusal) = serving.await {
            acceptor.note_refusal(remote, &refusal);
        }
    }

    async fn serve_unless_refused(
        self,
        stream: TcpStream,
        remote: SocketAddr,
    ) -> Result<(), Refusal> {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%remote, %error, "cannot set TCP_NODELAY");
        }
        let info = TcpConnectInfo {
            local_addr: stream.local_addr().ok(),
            remote_addr: Some(remote),
        };
        let Some(credentials) = self.acceptor.credentials.clone() else {
            return self.serve_io(stream, info, None).await;
        };
        let limit = self.acceptor.limits.handshake_timeout;
        let shaken = tokio::select! {
            shaken = timeout(limit, handshake(&credentials, stream)) => shaken,
            () = self.acceptor.ending.soft.cancelled() => return Ok(()),
        };
        let (stream, peer) = shaken.map_err(|_| Refusal::Timeout)??;
        self.serve_io(stream, info, peer).await
    }

    async fn serve_io<IO>(
        self,
        io: IO,
        info: TcpConnectInfo,
        peer: Option<PeerId>,
    ) -> Result<(), Refusal>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let builder = self.connection_builder();
        let Self {
            service, acceptor, ..
        } = self;
        let Acceptor { limits, ending, .. } = acceptor;
        let first_request = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&first_request);
        let service = service.map_request(move |request: Request<Incoming>| {
            seen.store(true, Ordering::Relaxed);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(info.clone());
            if let Some(peer) = &peer {
                request.extensions_mut().insert(peer.clone());
            }
            request
        });
        let mut connection =
            pin!(builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service)));
        tokio::select! {
            ended = connection.as_mut() => {
                log_end(ended);
                return Ok(());
            }
            () = asked_to_end(&ending.soft, limits.max_age) => {
                connection.as_mut().graceful_shutdown();
            }
            () = no_request_within(limits.first_request_timeout, &first_request) => {
                return Err(Refusal::NoRequest);
            }
        }
        match timeout(limits.age_grace, connection).await {
            Ok(ended) => log_end(ended),
            Err(_) => tracing::debug!("connection cut: it was asked to end and did not"),
        }
        Ok(())
    }

    fn connection_builder(&self) -> auto::Builder<Tasks> {
        let alpn = match &self.acceptor.credentials {
            Some(credentials) => credentials.server_tls().alpn,
            None => Alpn::Http2AndHttp1,
        };
        let mut builder = auto::Builder::new(self.tasks.clone());
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.acceptor.limits.max_streams)
            .max_header_list_size(MAX_HEADER_LIST_BYTES)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        // With a timer, hyper bounds the wait for HTTP/1.1 headers.
        builder.http1().timer(TokioTimer::new());
        match alpn {
            Alpn::Http2 => builder.http2_only(),
            Alpn::Http2AndHttp1 => builder,
        }
    }
}

async fn asked_to_end(soft: &CancellationToken, max_age: Duration) {
    tokio::select! {
        () = soft.cancelled() => {}
        () = sleep(max_age) => {}
    }
}

/// Ends only if the time passed without a request.
async fn no_request_within(time: Duration, first_request: &AtomicBool) {
    sleep(time).await;
    if first_request.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

fn log_end(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(error, "connection ended with an error");
    }
}

async fn handshake(
    credentials: &Credentials,
    stream: TcpStream,
) -> Result<(tokio_rustls::server::TlsStream<TcpStream>, Option<PeerId>), Refusal> {
    // Made per connection: the configuration may have been swapped since the last one.
    let acceptor = TlsAcceptor::from(credentials.server_config());
    let stream = acceptor.accept(stream).await?;
    let peer = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first)
        .map(PeerId::from_certificate)
        .transpose()?;
    Ok((stream, peer))
}

/// Spawns connections and hyper's request handlers, so that draining waits for them and a hard end
/// drops them.
#[derive(Clone)]
struct Tasks {
    tracker: TaskTracker,
    hard: CancellationToken,
}

impl Tasks {
    fn spawn<F>(&self, task: F)
    where
        F: Future + Send + 'static,
    {
        let hard = self.hard.clone();
        self.tracker.spawn(async move {
            hard.run_until_cancelled(task).await;
        });
    }
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
