//! Traces, metrics and logs of running servers.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cl_host::accept::{Acceptor, ConnectionLimits, Ending};
use cl_host::telemetry::{Telemetry, TelemetryConfig};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_types::StatusExt;
use tracing::subscriber::DefaultGuard;

use crate::peers;
use crate::pki::{Authority, Folder, credentials, id};
use crate::support::{CHECK, CLIENT, Running, SERVER, Start, asking, channel, http_get, within};

/// A channel of a peer that shows no certificate.
pub(crate) fn anonymous_channel(authority: &Authority, addr: SocketAddr) -> Channel {
    let config = peers::anonymous(authority, b"h2");
    let connector = tower::service_fn(move |_| {
        let config = Arc::clone(&config);
        async move { peers::connect(addr, config).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://test").connect_with_connector_lazy(connector)
}

/// Captured log lines.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logs {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Telemetry for this thread: the test's runtime has no other.
fn telemetry(log_filter: &str, otlp_endpoint: Option<String>) -> (Telemetry, Logs, DefaultGuard) {
    let config = TelemetryConfig {
        process: "test".to_owned(),
        log_filter: log_filter.to_owned(),
        otlp_endpoint,
    };
    let logs = Logs::default();
    let writer = logs.clone();
    let (telemetry, subscriber) = Telemetry::build(&config, move || writer.clone()).unwrap();
    let guard = tracing::subscriber::set_default(subscriber);
    (telemetry, logs, guard)
}

/// An OTLP collector.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let scopes = resources
            .into_iter()
            .flat_map(|resource| resource.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let service = TraceServiceServer::new(self.clone());
        let routes = tonic::service::Routes::new(service);
        let acceptor = Acceptor::plain_text(ConnectionLimits::default(), Ending::default());
        tokio::spawn(acceptor.serve(listener, routes));
        endpoint
    }
}

/// Two servers; the first calls the second when asked "onward".
async fn two_hops(authority: &Authority, telemetry: &Telemetry) -> (Running, Running) {
    let mut start = Start::new(credentials(authority, "exchange/second"));
    start.telemetry = Some(telemetry.clone());
    let second = start.run().await;
    let own = credentials(authority, SERVER);
    let mut start = Start::new(Arc::clone(&own));
    start.telemetry = Some(telemetry.clone());
    start.onward = Some(channel(second.addr, own, &id("exchange/second")));
    (start.run().await, second)
}

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// Calls the first of two servers within a trace of a process that has no collector, and returns what
/// the second one was told of it.
async fn call_within_trace(authority: &Authority, first: &Running, second: &Running) -> String {
    let mut client = HealthClient::new(peers_channel(authority, first.addr));
    let mut request = asking("onward");
    let traceparent = format!("00-{TRACE_ID}-b7ad6b7169203331-00");
    request
        .metadata_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    within("the call", client.check(request)).await.unwrap();

    let header = second.probe.last().traceparent.unwrap();
    assert!(header.starts_with(&format!("00-{TRACE_ID}-")), "{header}");
    assert_eq!(second.probe.last().correlation_id, TRACE_ID);
    assert_eq!(first.probe.last().correlation_id, TRACE_ID);
    header
}

#[tokio::test]
async fn one_trace_spans_all_hops_without_a_collector() {
    let authority = Authority::new("A");
    let (telemetry, logs, _guard) = telemetry("debug", None);
    let (first, second) = two_hops(&authority, &telemetry).await;
    call_within_trace(&authority, &first, &second).await;
    let line = logs.text();
    assert!(line.contains(TRACE_ID), "{line}");
}

#[tokio::test]
async fn one_trace_spans_all_hops_and_reaches_the_collector() {
    let authority = Authority::new("A");
    let collector = Collector::default();
    let (telemetry, logs, _guard) = telemetry("debug", Some(collector.start().await));
    let (first, second) = two_hops(&authority, &telemetry).await;
    let header = call_within_trace(&authority, &first, &second).await;

    for server in [first, second] {
        server.signals.send();
        server.ended().await.unwrap();
    }
    within("the flush", telemetry.shutdown(Duration::from_secs(10))).await;
    let spans = collector.0.lock().unwrap().clone();
    let trace: Vec<_> = spans
        .iter()
        .filter(|span| hex(&span.trace_id) == TRACE_ID)
        .collect();
    assert_eq!(trace.len(), 3, "server, client, server: {spans:#?}");
    let outer = trace
        .iter()
        .find(|span| hex(&span.parent_span_id) == "b7ad6b7169203331")
        .unwrap();
    let hop = trace
        .iter()
        .find(|span| span.parent_span_id == outer.span_id)
        .unwrap();
    let inner = trace
        .iter()
        .find(|span| span.parent_span_id == hop.span_id)
        .unwrap();
    assert_eq!(hex(&inner.parent_span_id), header[36..52]);
    assert!(trace.iter().all(|span| span.name == CHECK));

    let line = logs.text();
    assert!(line.contains(TRACE_ID), "{line}");
}

/// A raw channel with a certificate, whose requests carry what the test puts in.
fn peers_channel(authority: &Authority, addr: SocketAddr) -> Channel {
    let own = credentials(authority, CLIENT);
    let connector = tower::service_fn(move |_| {
        let config = own.client_config();
        async move { peers::connect(addr, config).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://test").connect_with_connector_lazy(connector)
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[tokio::test]
async fn an_edge_starts_its_own_trace() {
    let authority = Authority::new("A");
    let (telemetry, _logs, _guard) = telemetry("info", None);
    let mut start = Start::new(credentials(&authority, SERVER));
    start.callers = cl_host::Callers::Edge {
        methods: Vec::new(),
    };
    start.telemetry = Some(telemetry);
    let server = start.run().await;
    let mut request = asking("");
    let foreign = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request
        .metadata_mut()
        .insert("traceparent", foreign.parse().unwrap());
    let mut client = HealthClient::new(peers_channel(&authority, server.addr));
    client.check(request).await.unwrap();
    let id = server.probe.last().correlation_id;
    assert_eq!(id.len(), 32);
    assert!(!foreign.contains(&id), "{id}");
    assert_ne!(id, "0".repeat(32));
}

#[tokio::test]
async fn metrics_count_calls_by_method_and_code() {
    let authority = Authority::new("A");
    let server = Start::new(credentials(&authority, SERVER)).run().await;
    let mut client = server.client(credentials(&authority, CLIENT));
    for service in ["", "", "fail"] {
        let _counted = client.check(asking(service)).await;
    }
    let text = http_get(server.admin_addr, "/metrics").await;
    for line in [
        format!(r#"rpc_server_calls_total{{code="OK",rpc_method="{CHECK}"}} 2"#),
        format!(r#"rpc_server_calls_total{{code="INTERNAL",rpc_method="{CHECK}"}} 1"#),
        format!(r#"rpc_server_duration_seconds_count{{rpc_method="{CHECK}"}} 3"#),
        "tls_certificate_not_after_seconds 2208988800".to_owned(),
        "tls_reload_failures_total 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn a_panicking_handler_is_an_internal_error_with_a_correlation_id() {
    let authority = Authority::new("A");
    let (telemetry, _logs, _guard) = telemetry("info", None);
    let mut start = Start::new(credentials(&authority, SERVER));
    start.telemetry = Some(telemetry);
    let server = start.run().await;
    let mut client = server.client(credentials(&authority, CLIENT));
    let status = client.check(asking("panic")).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "internal error");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "INTERNAL");
    assert_eq!(
        info.metadata["correlation_id"],
        server.probe.last().correlation_id
    );
    client.check(asking("")).await.unwrap();
}

const CANARY: &str = "canary-7f3a";

#[tokio::test]
async fn secrets_reach_neither_logs_nor_metrics() {
    let authority = Authority::new("A");
    let (telemetry, logs, _guard) = telemetry("trace", None);
    let issued = authority.issue(SERVER);
    let folder = Folder::new(&issued, &authority.pem());
    let own = folder.load().unwrap();
    let mut start = Start::new(Arc::clone(&own));
    start.telemetry = Some(telemetry.clone());
    let server = start.run().await;
    let peer = server.channel(credentials(&authority, CLIENT), &id(SERVER));
    let mut client = HealthClient::new(peer.clone());

    // In a body, in metadata, in a status text, in a path, in a panic.
    for service in [CANARY, "fail", "panic"] {
        let mut request = asking(service);
        let metadata = request.metadata_mut();
        metadata.insert("authorization", format!("Bearer {CANARY}").parse().unwrap());
        metadata.insert("grpc-timeout", format!("{CANARY}S").parse().unwrap());
        let refused = client.check(request).await;
        assert!(refused.is_err());
        let mut request = asking(service);
        let token = format!("Bearer {CANARY}").parse().unwrap();
        request.metadata_mut().insert("authorization", token);
        let _answered = client.check(request).await;
    }
    let mut raw = tonic::client::Grpc::new(peer);
    raw.ready().await.unwrap();
    let path = format!("/{CANARY}.Service/Method").parse().unwrap();
    let codec = tonic_prost::ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    assert!(raw.unary(asking(CANARY), path, codec).await.is_err());

    // In a key file that does not parse.
    let key = folder.files().key;
    for broken in [
        format!("{CANARY}\n"),
        format!("-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"),
        format!("-----BEGIN {CANARY}-----\nAAAA\n-----END {CANARY}-----\n"),
    ] {
        std::fs::write(&key, broken).unwrap();
        assert!(own.reload().is_err());
    }

    let metrics = http_get(server.admin_addr, "/metrics").await;
    server.signals.send();
    server.ended().await.unwrap();
    let logs = logs.text();
    assert!(logs.contains("certificates not reloaded"), "{logs}");
    assert!(logs.contains("call failed"), "{logs}");
    for text in [&logs, &metrics] {
        for secret in [CANARY, "a secret"] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None);
        }
    }
}
