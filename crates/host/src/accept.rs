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
use crate::tls::{Alpn, Credentials};

/// Bounds on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at a time, those in a handshake included; one more is closed at once.
    pub max_connections: usize,
    /// From accept to the end of the TLS handshake.
    pub handshake_timeout: Duration,
    /// From the handshake to the first request.
    pub first_request_timeout: Duration,
    /// After this age a connection is asked to end, so that renewed certificates take effect.
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

/// Serves `service` on every connection of `listener`: over mutual TLS with `credentials`, in plain
/// text without.
///
/// Ends when all connections and handlers ended after `ending.soft`, or at once after
/// `ending.hard`. Requests of peers with a certificate carry a [`PeerId`] extension.
pub async fn serve_connections<S>(
    listener: TcpListener,
    credentials: Option<Arc<Credentials>>,
    service: S,
    limits: ConnectionLimits,
    ending: Ending,
) where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let server = Server {
        credentials,
        service,
        limits,
        tasks: Tasks {
            tracker: TaskTracker::new(),
            hard: ending.hard.clone(),
        },
        ending,
    };
    let tracker = server.tasks.tracker.clone();
    server.accept_until_soft(listener).await;
    tracker.close();
    tracker.wait().await;
}

#[derive(Clone)]
struct Server<S> {
    credentials: Option<Arc<Credentials>>,
    service: S,
    limits: ConnectionLimits,
    tasks: Tasks,
    ending: Ending,
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
        let slots = Arc::new(Semaphore::new(self.limits.max_connections));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.ending.soft.cancelled() => return,
                () = self.ending.hard.cancelled() => return,
            };
            match (accepted, Arc::clone(&slots).try_acquire_owned()) {
                (Ok((stream, remote)), Ok(slot)) => {
                    let server = self.clone();
                    self.tasks.spawn(server.serve_stream(stream, remote, slot));
                }
                (Ok((_, remote)), Err(_)) => {
                    tracing::warn!(%remote, "connection refused: too many connections");
                }
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
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%remote, %error, "cannot set TCP_NODELAY");
        }
        let info = TcpConnectInfo {
            local_addr: stream.local_addr().ok(),
            remote_addr: Some(remote),
        };
        let Some(credentials) = self.credentials.clone() else {
            return self.serve_io(stream, info, None).await;
        };
        let handshake = handshake(&credentials, stream);
        let outcome = tokio::select! {
            outcome = timeout(self.limits.handshake_timeout, handshake) => outcome,
            () = self.ending.soft.cancelled() => return,
        };
        match outcome {
            Ok(Ok((stream, peer))) => self.serve_io(stream, info, peer).await,
            Ok(Err(error)) => tracing::warn!(%remote, %error, "handshake failed"),
            Err(_) => tracing::warn!(%remote, "handshake timed out"),
        }
    }

    async fn serve_io<IO>(self, io: IO, info: TcpConnectInfo, peer: Option<PeerId>)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let builder = self.connection_builder();
        let Self {
            service,
            limits,
            ending,
            ..
        } = self;
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
            ended = connection.as_mut() => return log_end(ended),
            () = asked_to_end(&ending.soft, limits.max_age) => connection.as_mut().graceful_shutdown(),
            () = no_request_within(limits.first_request_timeout, &first_request) => {
                tracing::debug!("connection cut: no request came");
                return;
            }
        }
        match timeout(limits.age_grace, connection).await {
            Ok(ended) => log_end(ended),
            Err(_) => tracing::debug!("connection cut: it was asked to end and did not"),
        }
    }

    fn connection_builder(&self) -> auto::Builder<Tasks> {
        let alpn = match &self.credentials {
            Some(credentials) => credentials.server_tls().alpn,
            None => Alpn::Http2AndHttp1,
        };
        let mut builder = auto::Builder::new(self.tasks.clone());
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.max_streams)
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
) -> Result<(tokio_rustls::server::TlsStream<TcpStream>, Option<PeerId>), HandshakeError> {
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

#[derive(Debug, thiserror::Error)]
enum HandshakeError {
    #[error(transparent)]
    Tls(#[from] io::Error),
    #[error("client certificate: {0}")]
    Peer(#[from] InvalidPeer),
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
