//! One span, one counter and one duration per RPC.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::{Instrument, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::propagation::{self, CorrelationId, RemoteContext};
use crate::identity::PeerId;
use crate::status::{self, PlainHttp};

/// Upper bounds of the duration histogram, in seconds.
const DURATION_BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Label of a method that the process does not serve, so that callers cannot grow the metrics.
const OTHER_METHOD: &str = "other";

/// Counter and duration of the RPCs that a process serves.
#[derive(Clone, Debug)]
pub struct RpcMetrics {
    calls: Counter<u64>,
    duration: Histogram<f64>,
    methods: Arc<BTreeSet<String>>,
}

impl RpcMetrics {
    /// Measures `methods` by name and everything else together.
    pub fn new(meter: &Meter, methods: BTreeSet<String>) -> Self {
        Self {
            calls: meter
                .u64_counter("rpc_server_calls")
                .with_description("Finished calls by method and code; HTTP status for plain HTTP.")
                .build(),
            duration: meter
                .f64_histogram("rpc_server_duration")
                .with_unit("s")
                .with_description("Time from the request's headers to the end of the answer.")
                .with_boundaries(DURATION_BOUNDS.to_vec())
                .build(),
            methods: Arc::new(methods),
        }
    }

    fn label(&self, path: &str) -> String {
        match self.methods.get(path) {
            Some(method) => method.clone(),
            None => OTHER_METHOD.to_owned(),
        }
    }
}

/// Puts each RPC into a span that continues the caller's trace, and measures it.
#[derive(Clone, Debug)]
pub struct RpcLayer {
    metrics: RpcMetrics,
    remote: RemoteContext,
    plain_http: Option<PlainHttp>,
}

impl RpcLayer {
    /// Measures with `metrics`.
    pub fn new(metrics: RpcMetrics, remote: RemoteContext) -> Self {
        Self {
            metrics,
            remote,
            plain_http: None,
        }
    }

    /// Answers callers of plain HTTP in their own form.
    #[must_use]
    pub fn plain_http(self, plain_http: Option<PlainHttp>) -> Self {
        Self { plain_http, ..self }
    }
}

impl<S> Layer<S> for RpcLayer {
    type Service = RpcService<S>;

    fn layer(&self, inner: S) -> RpcService<S> {
        RpcService {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service that [`RpcLayer`] makes.
#[derive(Clone, Debug)]
pub struct RpcService<S> {
    inner: S,
    layer: RpcLayer,
}

impl<S> Service<Request<Body>> for RpcService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let method = self.layer.metrics.label(request.uri().path());
        let span = server_span(&method, &request, self.layer.remote);
        let correlation_id = CorrelationId::of(&span);
        span.record("correlation_id", field::display(correlation_id));
        request.extensions_mut().insert(correlation_id);

        let call = Call {
            metrics: self.layer.metrics.clone(),
            method,
            span: span.clone(),
            started: Instant::now(),
            outcome: None,
        };
        let plain_http = self.layer.plain_http.clone();
        let to_grpc = status::is_grpc(request.headers());
        let answer = span.in_scope(|| self.inner.call(request)).instrument(span);
        Box::pin(async move {
            // Dropped before it has an answer, `call` counts as cancelled.
            let mut call = call;
            let response = match (CatchPanic {
                answer: Box::pin(answer),
            })
            .await
            {
                Ok(answer) => answer?,
                Err(Panicked) => {
                    let status = status::internal(correlation_id);
                    status::answer(&status, to_grpc, plain_http.as_ref())
                }
            };
            call.look_at_head(&response);
            Ok(response.map(|body| Body::new(Measured { body, call })))
        })
    }
}

fn server_span(method: &str, request: &Request<Body>, remote: RemoteContext) -> Span {
    let peer = request.extensions().get::<PeerId>();
    let span = tracing::info_span!(
        "rpc",
        otel.name = method,
        otel.kind = "server",
        rpc.system = "grpc",
        rpc.method = method,
        peer = peer.map(|peer| field::display(&peer.id)),
        correlation_id = field::Empty,
        rpc.status = field::Empty,
    );
    let adopted = match remote {
        RemoteContext::Continue => span.set_parent(propagation::extract(request.headers())),
        RemoteContext::Ignore => Ok(()),
    };
    if let Err(error) = adopted {
        tracing::debug!(%error, "trace context not continued");
    }
    span
}

/// A call until its end, whatever that is; reports itself when dropped.
#[derive(Debug)]
struct Call {
    metrics: RpcMetrics,
    method: String,
    span: Span,
    started: Instant,
    outcome: Option<Outcome>,
}

impl Call {
    fn look_at_head(&mut self, response: &Response<Body>) {
        if status::is_grpc(response.headers()) {
            self.look_at(response.headers());
        } else {
            self.outcome = Some(Outcome::Http(response.status()));
        }
    }

    fn look_at(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get(Status::GRPC_STATUS) {
            self.outcome = Some(Outcome::Grpc(Code::from_bytes(status.as_bytes())));
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // The answer never came to its end: the caller went away or the process ends.
        let outcome = self.outcome.unwrap_or(Outcome::Grpc(Code::Cancelled));
        let seconds = self.started.elapsed().as_secs_f64();
        let labels = [
            KeyValue::new("rpc_method", self.method.clone()),
            KeyValue::new("code", outcome.label()),
        ];
        self.metrics.calls.add(1, &labels);
        self.metrics.duration.record(seconds, &labels[..1]);
        let code = outcome.label();
        self.span.record("rpc.status", &*code);
        self.span.in_scope(|| {
            if outcome.is_success() {
                tracing::debug!(code, seconds, "call answered");
            } else {
                tracing::info!(code, seconds, "call failed");
            }
        });
    }
}

/// How a call ended; plain HTTP occurs at the edges only.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Grpc(Code),
    Http(StatusCode),
}

impl Outcome {
    fn label(self) -> String {
        match self {
            Self::Grpc(code) => name(code).to_owned(),
            Self::Http(status) => status.as_str().to_owned(),
        }
    }

    fn is_success(self) -> bool {
        match self {
            Self::Grpc(code) => code == Code::Ok,
            Self::Http(status) => !status.is_client_error() && !status.is_server_error(),
        }
    }
}

/// The code's name in the gRPC specification.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Turns a panic of the handler into a value, so that the caller gets an answer that it will not
/// take for a broken connection and repeat.
struct CatchPanic<F> {
    answer: Pin<Box<F>>,
}

struct Panicked;

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The handler is dropped after a panic and never polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| self.answer.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

/// An answer's body that looks for the code in the trailers.
struct Measured {
    body: Body,
    call: Call,
}

impl http_body::Body for Measured {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let span = self.call.span.clone();
        let polled = span.in_scope(|| Pin::new(&mut self.body).poll_frame(cx));
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    self.call.look_at(trailers);
                }
            }
            Poll::Ready(Some(Err(status))) => {
                self.call.outcome = Some(Outcome::Grpc(status.code()));
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn a_panic_behind_plain_http_is_told_in_its_own_form() {
        let plain_http = PlainHttp::new(|status| {
            assert_eq!(status.code(), Code::Internal);
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        });
        let meter = opentelemetry::global::meter("test");
        let metrics = RpcMetrics::new(&meter, BTreeSet::new());
        let layer = RpcLayer::new(metrics, RemoteContext::Ignore).plain_http(Some(plain_http));
        let panics = service_fn(async |request: Request<Body>| {
            assert!(!request.headers().is_empty(), "it panics");
            Ok::<Response<Body>, std::convert::Infallible>(Response::default())
        });
        let response = layer.layer(panics).oneshot(Request::default()).await;
        let status = response.unwrap().status();
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
