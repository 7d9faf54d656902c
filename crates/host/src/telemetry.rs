//! Logs, traces and metrics of one process.
//!
//! Logs are JSON lines on stderr. Traces and metrics go to an OTLP collector when one is
//! configured; metrics are always there as Prometheus text too. Neither holds a request's content,
//! its metadata, or a status message: only method, code, caller, duration and identifiers.

mod propagation;
mod rpc;

use std::io;
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use prometheus::{Registry, TextEncoder};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{self, FilterExt};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer};

pub(crate) use self::propagation::inject;
pub use self::propagation::{CorrelationId, RemoteContext, inject_current};
pub use self::rpc::{RpcLayer, RpcMetrics, RpcService};

/// Crates of this workspace; their targets may log at every level.
const OWN_TARGETS: &str = "cl_";

/// Settings of [`Telemetry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// Name of the process in traces and metrics.
    pub process: String,
    /// Which logs are written, for example `info,cl_vault=debug`.
    pub log_filter: String,
    /// Address of an OTLP collector, `http://..`, usually an agent on the same node; off without.
    pub otlp_endpoint: Option<String>,
}

/// Why telemetry did not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log filter does not parse.
    #[error("log filter: {0}")]
    Filter(#[from] filter::ParseError),
    /// The collector's address is not `http://..`.
    #[error("the OTLP endpoint must start with http://")]
    Endpoint,
    /// An OTLP exporter refused its settings.
    #[error("OTLP: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The Prometheus registry refused the exporter.
    #[error("metrics: {0}")]
    Metrics(#[from] OTelSdkError),
    /// Another subscriber is installed already.
    #[error("logs: {0}")]
    Installed(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// The telemetry of one process; keep it until the end and [`Telemetry::shutdown`] it.
#[derive(Clone, Debug)]
pub struct Telemetry {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    registry: Registry,
}

impl Telemetry {
    /// Starts telemetry with logs to stderr, for the whole process. Needs a tokio runtime.
    pub fn install(config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        let (telemetry, subscriber) = Self::build(config, io::stderr)?;
        tracing::subscriber::set_global_default(subscriber)?;
        Ok(telemetry)
    }

    /// Starts telemetry with logs to `writer`; the caller installs the subscriber. Needs a tokio
    /// runtime.
    pub fn build<W>(
        config: &TelemetryConfig,
        writer: W,
    ) -> Result<(Self, impl Subscriber + Send + Sync + use<W>), TelemetryError>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        if let Some(endpoint) = &config.otlp_endpoint
            && !endpoint.starts_with("http://")
        {
            return Err(TelemetryError::Endpoint);
        }
        let registry = Registry::new();
        let telemetry = Self {
            tracers: tracers(config)?,
            meters: meters(config, &registry)?,
            registry,
        };
        let subscriber = subscriber(config, &telemetry.tracers, writer)?;
        Ok((telemetry, subscriber))
    }

    /// Where the process's own instruments come from.
    pub fn meter(&self) -> Meter {
        self.meters.meter("context-layer")
    }

    /// All metrics in Prometheus text form.
    pub fn prometheus_text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// Sends what is buffered and stops; gives up after `limit`.
    pub async fn shutdown(&self, limit: Duration) {
        let Self {
            tracers, meters, ..
        } = self.clone();
        // Both calls block until the collector answered.
        let flush = tokio::task::spawn_blocking(move || {
            let traces = tracers.shutdown_with_timeout(limit);
            let metrics = meters.shutdown_with_timeout(limit);
            traces.and(metrics)
        });
        match tokio::time::timeout(limit, flush).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "telemetry not flushed"),
            Ok(Err(error)) => tracing::warn!(%error, "telemetry not flushed"),
            Err(_) => tracing::warn!("telemetry not flushed in time"),
        }
    }
}

fn resource(config: &TelemetryConfig) -> Resource {
    Resource::builder()
        .with_service_name(config.process.clone())
        .build()
}

/// Spans are made without a collector too: their trace id correlates the logs of all processes. They
/// keep nothing then; with one they do, whatever the caller's process has.
fn tracers(config: &TelemetryConfig) -> Result<SdkTracerProvider, ExporterBuildError> {
    let builder = SdkTracerProvider::builder().with_resource(resource(config));
    let Some(endpoint) = &config.otlp_endpoint else {
        return Ok(builder.with_sampler(Sampler::AlwaysOff).build());
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint.as_str())
        .build()?;
    let builder = builder.with_sampler(Sampler::AlwaysOn);
    Ok(builder.with_batch_exporter(exporter).build())
}

fn meters(
    config: &TelemetryConfig,
    registry: &Registry,
) -> Result<SdkMeterProvider, TelemetryError> {
    let prometheus = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .scope_info_enabled(false)
        .build()?;
    let mut builder = SdkMeterProvider::builder()
        .with_resource(resource(config))
        .with_reader(prometheus);
    if let Some(endpoint) = &config.otlp_endpoint {
        let exporter = opentelemetry_otlp::MetricExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint.as_str())
            .build()?;
        builder = builder.with_periodic_exporter(exporter);
    }
    Ok(builder.build())
}

fn subscriber<W>(
    config: &TelemetryConfig,
    tracers: &SdkTracerProvider,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, filter::ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let logs = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(writer)
        .with_filter(EnvFilter::try_new(&config.log_filter)?.and(filter::filter_fn(may_log)));
    let traces = tracing_opentelemetry::layer()
        .with_tracer(tracers.tracer("context-layer"))
        .with_location(false)
        .with_threads(false)
        .with_filter(filter::filter_fn(may_trace));
    Ok(tracing_subscriber::registry().with(logs).with(traces))
}

/// Foreign crates print frames, headers and bodies below INFO; no configuration turns that on.
fn may_log(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OWN_TARGETS) || *metadata.level() <= Level::INFO
}

/// Only this workspace's spans leave the process, and of its events those that matter.
fn may_trace(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OWN_TARGETS) && *metadata.level() <= Level::INFO
}
