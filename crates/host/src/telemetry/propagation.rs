//! W3C trace context over gRPC headers.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, TraceId};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Whether a caller's trace context is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteContext {
    /// Callers are processes of this system.
    Continue,
    /// Callers are outside: each call starts a trace of its own.
    Ignore,
}

/// Names one call in the logs of every process that took part: the trace id, in hex. In the
/// extensions of every request, for error answers that point to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrelationId(TraceId);

impl CorrelationId {
    pub(super) fn of(span: &Span) -> Self {
        Self(span.context().span().span_context().trace_id())
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Writes the current span's context as `traceparent` and `tracestate`.
pub fn inject_current(headers: &mut HeaderMap) {
    inject(&Span::current(), headers);
}

pub(crate) fn inject(span: &Span, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(&span.context(), &mut Headers(headers));
}

pub(super) fn extract(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &ReadHeaders(headers))
}

struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        // Both are ASCII by the W3C grammar; anything else stays out.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(key.as_bytes()),
            HeaderValue::try_from(value),
        ) {
            self.0.insert(name, value);
        }
    }
}

struct ReadHeaders<'a>(&'a HeaderMap);

impl Extractor for ReadHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
