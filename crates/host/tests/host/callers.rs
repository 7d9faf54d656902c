//! The caller table in front of a running service.

use cl_host::callers::CallerTable;
use cl_host::{Callers, status};
use tonic::Code;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::pki::{Authority, credentials};
use crate::support::{CHECK, CLIENT, SERVER, Start, asking, http_get, within};

#[tokio::test]
async fn each_rpc_has_its_own_callers() {
    let authority = Authority::new("A");
    let mut start = Start::new(credentials(&authority, SERVER));
    let table = CallerTable::new("example.org")
        .unwrap()
        .allow(CHECK, &[CLIENT, "owner/*"])
        .unwrap();
    start.callers = Callers::Table(table);
    let server = start.run().await;

    for (path, allowed) in [
        (CLIENT, true),
        ("owner/acme", true),
        ("exchange/client-2", false),
        ("edge/cl-gateway", false),
        ("client/acme/agent", false),
    ] {
        let mut client = server.client(credentials(&authority, path));
        let outcome = within("a call", client.check(asking(""))).await;
        match outcome {
            Ok(_) => assert!(allowed, "{path}"),
            Err(status) => {
                assert!(!allowed, "{path}: {status:?}");
                assert_eq!(status.code(), Code::PermissionDenied);
                let info = status.get_details_error_info().unwrap();
                assert_eq!(info.reason, "CALLER_NOT_ALLOWED");
                assert_eq!(info.domain, "context-layer");
            }
        }
    }

    // No row: closed to everyone, and the handler is not reached.
    let calls = server.probe.calls();
    let mut client = server.client(credentials(&authority, CLIENT));
    let status = client.watch(asking("")).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(server.probe.calls(), calls);

    let metrics = http_get(server.admin_addr, "/metrics").await;
    let denied =
        format!(r#"rpc_server_calls_total{{code="PERMISSION_DENIED",rpc_method="{CHECK}"}} 3"#);
    assert!(metrics.contains(&denied), "{metrics}");
    let other = r#"rpc_server_calls_total{code="PERMISSION_DENIED",rpc_method="other"} 1"#;
    assert!(metrics.contains(other), "{metrics}");
}

#[tokio::test]
async fn an_anonymous_peer_is_asked_for_a_certificate() {
    let authority = Authority::new("A");
    let folder = crate::pki::Folder::new(&authority.issue(SERVER), &authority.pem());
    let server = Start::new(folder.load_edge()).run().await;
    // A peer without a certificate: only possible where certificates are optional.
    let channel = crate::telemetry::anonymous_channel(&authority, server.addr);
    let status = HealthClient::new(channel)
        .check(asking(""))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    assert_eq!(
        status::reason(&status).as_deref(),
        Some(status::CALLER_UNAUTHENTICATED)
    );
}
