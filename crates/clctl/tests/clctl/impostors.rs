//! Servers that stand in for the processes: one finds a fault in its log, others are somebody else.

use std::net::SocketAddr;
use std::sync::Arc;

use cl_host::clock::SystemClock;
use cl_host::life::{Listeners, Server, Shutdown, Signals, Tasks, Timings};
use cl_host::telemetry::{Telemetry, TelemetryConfig};
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_host::{App, Callers};
use cl_wire::receipt::v1::receipt_service_server::{ReceiptService, ReceiptServiceServer};
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, ListOpenRequest, ListOpenResponse, ListReceiptsRequest,
    ListReceiptsResponse, LogFault, PreflightRequest, PreflightResponse, VerifyLogRequest,
    VerifyLogResponse,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::support::TestHome;

const STORE: &str = "cl-receipt-store";

/// Its log breaks at the third entry.
struct BrokenLog;

type Answer<T> = Result<Response<T>, Status>;

fn unused<T>() -> Answer<T> {
    Err(Status::unimplemented("not a part of this test"))
}

#[tonic::async_trait]
impl ReceiptService for BrokenLog {
    async fn preflight(&self, _: Request<PreflightRequest>) -> Answer<PreflightResponse> {
        unused()
    }

    async fn append(&self, _: Request<AppendRequest>) -> Answer<AppendResponse> {
        unused()
    }

    async fn begin(&self, _: Request<BeginRequest>) -> Answer<BeginResponse> {
        unused()
    }

    async fn complete(&self, _: Request<CompleteRequest>) -> Answer<CompleteResponse> {
        unused()
    }

    async fn list_open(&self, _: Request<ListOpenRequest>) -> Answer<ListOpenResponse> {
        unused()
    }

    async fn get_receipt(&self, _: Request<GetReceiptRequest>) -> Answer<GetReceiptResponse> {
        unused()
    }

    async fn list_receipts(&self, _: Request<ListReceiptsRequest>) -> Answer<ListReceiptsResponse> {
        unused()
    }

    async fn verify_log(&self, _: Request<VerifyLogRequest>) -> Answer<VerifyLogResponse> {
        Ok(Response::new(VerifyLogResponse {
            erased_entries: 0,
            checked_entries: 2,
            result: Some(Verdict::Fault(LogFault {
                sequence: 3,
                code: "RECEIPT_LOG_CHAIN_MISMATCH".to_owned(),
            })),
        }))
    }
}

/// Serves in the place of `process`, with the certificate of `owner`, until the test ends.
async fn serve(home: &TestHome, process: &str, owner: &str) -> SocketAddr {
    let files = TlsFiles {
        chain: home.path(&format!("pki/{owner}.pem")),
        key: home.path(&format!("pki/{owner}.key")),
        trust: home.path("pki/ca.pem"),
    };
    let config = TelemetryConfig {
        process: "test".to_owned(),
        log_filter: "off".to_owned(),
        otlp_endpoint: None,
    };
    let shutdown = Shutdown::default();
    let routes = Routes::new(ReceiptServiceServer::new(BrokenLog));
    let server = Server {
        app: App::new(
            routes,
            Callers::Edge {
                methods: Vec::new(),
            },
        ),
        credentials: Credentials::load(files, ServerTls::EDGE, Arc::new(SystemClock)).unwrap(),
        telemetry: Telemetry::build(&config, std::io::sink).unwrap().0,
        timings: Timings::default(),
        tasks: Tasks::new(shutdown.clone()),
        shutdown,
    };
    let listeners = Listeners {
        main: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        admin: TcpListener::bind("127.0.0.1:0").await.unwrap(),
    };
    let addr = listeners.main.local_addr().unwrap();
    let admin_addr = listeners.admin.local_addr().unwrap();
    let (sender, signals) = Signals::injected();
    tokio::spawn(async move {
        let _open = sender;
        server.serve(listeners, signals).await
    });
    let endpoints = json!({
        "endpoints_version": 1,
        "ready_at": "2030-01-01T00:00:00.000Z",
        "gateway_url": null,
        "processes": {
            process: {
                "addr": addr.to_string(),
                "admin_addr": admin_addr.to_string(),
                "pid": 1,
            },
        },
    });
    std::fs::write(home.path("run/endpoints.json"), endpoints.to_string()).unwrap();
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_shows_what_the_store_finds_wrong_with_its_log() {
    let home = TestHome::new();
    serve(&home, STORE, STORE).await;
    let shown = home.run(&["--json", "status"]);
    let status: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(status["receipt_log"]["error"], "RECEIPT_LOG_CHAIN_MISMATCH");
    let shown = home.run(&["status"]);
    assert!(shown.stdout.contains("entry 3"), "{}", shown.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_not_taken_for_the_one_that_was_meant() {
    let home = TestHome::new();
    serve(&home, STORE, "cl-gateway").await;
    let refused = home.failure(&["receipts", "verify"]);
    assert_eq!(refused, (1, "PEER_NOT_VERIFIED".to_owned()));

    serve(&home, "cl-gateway", STORE).await;
    let file = home.example("request");
    let refused = home.failure(&["request", &file]);
    assert_eq!(refused, (1, "PEER_NOT_VERIFIED".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_of_another_authority_is_not_accepted() {
    let (home, other) = (TestHome::new(), TestHome::new());
    serve(&home, STORE, STORE).await;
    for name in ["pki/auditor.pem", "pki/auditor.key"] {
        std::fs::copy(other.path(name), home.path(name)).unwrap();
    }
    home.certificate_is_refused(&["receipts", "verify"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_gone_cannot_be_reached() {
    let home = TestHome::new();
    let addr = serve(&home, STORE, STORE).await;
    let text = std::fs::read_to_string(home.path("run/endpoints.json")).unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = closed.local_addr().unwrap();
    drop(closed);
    let text = text.replace(&addr.to_string(), &gone.to_string());
    std::fs::write(home.path("run/endpoints.json"), text).unwrap();
    let refused = home.failure(&["receipts", "verify"]);
    assert_eq!(refused, (3, "PEER_UNREACHABLE".to_owned()));
}
