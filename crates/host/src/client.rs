//! Calls to a named peer over mutual TLS.

mod dial;
mod retry;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::{Service, ServiceExt};
use tracing::{Instrument, Span, field};

use self::dial::Dialer;
pub use self::dial::{DialError, InvalidTarget};
pub use self::retry::{Retry, RetryBudget};
use crate::deadline::{self, GRPC_TIMEOUT};
use crate::identity::SpiffeId;
use crate::status;
use crate::telemetry;
use crate::tls::Credentials;

/// A process to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `host:port`; the host must be a DNS or IP name in the peer's certificate.
    pub address: String,
    /// The SPIFFE id that the peer's certificate must have.
    pub id: SpiffeId,
}

/// Bounds on calls to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// For the TCP connection and the TLS handshake together.
    pub connect_timeout: Duration,
    /// For a call that names no deadline of its own.
    pub default_deadline: Duration,
    /// Silence after which a connection is probed.
    pub keep_alive_interval: Duration,
    /// Time for the answer to a probe.
    pub keep_alive_timeout: Duration,
    /// After this age a connection gets no further call. Less than servers let one become: a call that
    /// is sent while its server ends the connection may be lost.
    pub max_connection_age: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            default_deadline: Duration::from_secs(10),
            keep_alive_interval: Duration::from_secs(20),
            keep_alive_timeout: Duration::from_secs(10),
            max_connection_age: Duration::from_secs(240),
        }
    }
}

/// A connection to one peer, made when the first call needs it and again after it broke. Clones
/// share it. Generated clients take it in place of a tonic `Channel`.
///
/// Each call has a deadline (sent as `grpc-timeout`, enforced here up to the head of the answer), a
/// client span, and carries the W3C trace context. After a certificate reload, and when the connection
/// has become old, new calls use a new one; running ones finish on the old one.
///
/// Failures below gRPC become `UNAVAILABLE`. Two of them carry a reason and are not worth a retry:
/// [`status::PEER_NOT_VERIFIED`] and [`status::OWN_CERTIFICATE_REFUSED`].
#[derive(Clone, Debug)]
pub struct PeerChannel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dialer: Dialer,
    credentials: Arc<Credentials>,
    limits: ClientLimits,
    endpoint: Endpoint,
    current: Mutex<Option<Dialled>>,
}

#[derive(Clone, Debug)]
struct Dialled {
    generation: u64,
    /// Before the connection was made.
    since: Instant,
    channel: Channel,
}

impl Dialled {
    fn is_good(&self, generation: u64, limits: &ClientLimits) -> bool {
        self.generation == generation && self.since.elapsed() < limits.max_connection_age
    }
}

impl PeerChannel {
    /// Prepares calls to `target`; connects nothing yet.
    pub fn new(
        target: Target,
        credentials: Arc<Credentials>,
        limits: ClientLimits,
    ) -> Result<Self, InvalidTarget> {
        // A plain scheme, since tonic would otherwise want a TLS stack of its own.
        let endpoint = Endpoint::from_shared(format!("http://{}", target.address))
            .map_err(|_| InvalidTarget(target.address.clone()))?
            .connect_timeout(limits.connect_timeout)
            .http2_keep_alive_interval(limits.keep_alive_interval)
            .keep_alive_timeout(limits.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let dialer = Dialer::new(target, Arc::clone(&credentials))?;
        Ok(Self {
            shared: Arc::new(Shared {
                dialer,
                credentials,
                limits,
                endpoint,
                current: Mutex::new(None),
            }),
        })
    }

    /// The peer that is called.
    pub fn target(&self) -> &Target {
        self.shared.dialer.target()
    }
}

impl Shared {
    fn channel(&self) -> Channel {
        let generation = self.credentials.generation();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let dialled = match current.take() {
            Some(dialled) if dialled.is_good(generation, &self.limits) => dialled,
            Some(_) | None => Dialled {
                generation,
                since: Instant::now(),
                channel: self
                    .endpoint
                    .connect_with_connector_lazy(self.dialer.clone()),
            },
        };
        current.insert(dialled).channel.clone()
    }

    async fn call(&self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let time = match deadline::requested(request.headers())? {
            Some(time) => time,
            None => {
                let time = self.limits.default_deadline;
                set_timeout(request.headers_mut(), time);
                time
            }
        };
        let answer = self.channel().oneshot(request);
        match timeout(time, answer).await {
            Ok(answer) => answer.map_err(|error| dial::status_of(&error)),
            Err(_) => Err(deadline::exceeded()),
        }
    }
}

impl Service<Request<Body>> for PeerChannel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let span = client_span(request.uri().path(), self.target());
        telemetry::inject(&span, request.headers_mut());
        let shared = Arc::clone(&self.shared);
        let call = async move {
            let outcome = shared.call(request).await;
            if let Err(status) = &outcome {
                let code = status.code();
                Span::current().record("rpc.status", field::debug(code));
                tracing::info!(
                    ?code,
                    reason = status::reason(status),
                    "call to a peer failed"
                );
            }
            outcome
        };
        Box::pin(call.instrument(span))
    }
}

fn client_span(method: &str, target: &Target) -> Span {
    tracing::info_span!(
        "call",
        otel.name = method,
        otel.kind = "client",
        rpc.system = "grpc",
        rpc.method = method,
        peer = %target.id,
        rpc.status = field::Empty,
    )
}

fn set_timeout(headers: &mut HeaderMap, time: Duration) {
    const MAX_COUNT: u128 = 99_999_999;

    let ms = time.as_millis().min(MAX_COUNT);
    if let Ok(value) = HeaderValue::try_from(format!("{ms}m")) {
        headers.insert(GRPC_TIMEOUT, value);
    }
}

fn unavailable(reason: &'static str, message: &'static str) -> Status {
    status::refusal(Code::Unavailable, reason, message)
}
