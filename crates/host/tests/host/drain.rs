//! The end of a process, in order and in bounded time.

use std::time::Duration;

use cl_host::life::{Ended, ServeError};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::peers::connect;
use crate::pki::{Authority, credentials};
use crate::support::{CLIENT, Running, SERVER, Start, asking, http_get, within};

/// Far more than a prompt end takes, far less than a deadline of [`LONG`].
const PROMPT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);

async fn server(authority: &Authority, lame_duck: Duration, drain_deadline: Duration) -> Running {
    let mut start = Start::new(credentials(authority, SERVER));
    start.timings.lame_duck = lame_duck;
    start.timings.drain_deadline = drain_deadline;
    // Only the drain may end a silent connection here.
    start.limits.handshake_timeout = LONG;
    start.limits.first_request_timeout = LONG;
    start.run().await
}

async fn end_promptly(server: Running) -> Result<Ended, ServeError> {
    let started = Instant::now();
    server.signals.send();
    let ended = server.ended().await;
    assert!(started.elapsed() < PROMPT, "{:?}", started.elapsed());
    ended
}

#[tokio::test]
async fn an_idle_server_ends_at_once() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, LONG).await;
    let mut client = server.client(credentials(&authority, CLIENT));
    client.check(asking("")).await.unwrap();
    let addr = server.addr;
    assert_eq!(end_promptly(server).await.unwrap(), Ended::Drained);
    assert!(TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn an_open_stream_is_cut_at_the_deadline() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, Duration::from_millis(200)).await;
    let mut client = server.client(credentials(&authority, CLIENT));
    let mut stream = client.watch(asking("open")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    assert_eq!(end_promptly(server).await.unwrap(), Ended::CutOff);
    assert!(within("the stream's end", stream.message()).await.is_err());
}

#[tokio::test]
async fn a_stream_that_listens_to_shutdown_ends_at_once() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, LONG).await;
    let mut client = server.client(credentials(&authority, CLIENT));
    let mut stream = client.watch(asking("polite")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    assert_eq!(end_promptly(server).await.unwrap(), Ended::Drained);
    let status = within("the stream's end", stream.message())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_peer_that_is_silent_after_the_handshake_is_cut_at_the_deadline() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, Duration::from_millis(200)).await;
    let own = credentials(&authority, CLIENT);
    let mut silent = connect(server.addr, own.client_config()).await.unwrap();
    // The server's first frame shows that its side of the connection is up.
    silent.read_u8().await.unwrap();
    assert_eq!(end_promptly(server).await.unwrap(), Ended::CutOff);
    let _end = within("the cut", silent.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn a_peer_that_is_silent_before_the_handshake_is_not_waited_for() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, LONG).await;
    let mut silent = TcpStream::connect(server.addr).await.unwrap();
    // Connections are accepted in order: one that is served shows that the silent one is too.
    let mut client = server.client(credentials(&authority, CLIENT));
    client.check(asking("")).await.unwrap();
    assert_eq!(end_promptly(server).await.unwrap(), Ended::Drained);
    let _end = within("the cut", silent.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn a_running_call_is_answered_before_the_end() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, LONG).await;
    let mut client = server.client(credentials(&authority, CLIENT));
    let (probe, addr) = (server.probe.clone(), server.addr);
    let call = tokio::spawn(async move { client.check(asking("hold")).await });
    let mut held = probe.held.subscribe();
    within("the handler", held.wait_for(|held| *held == 1))
        .await
        .unwrap();

    server.signals.send();
    crate::support::eventually("the port to close", || {
        std::net::TcpStream::connect(addr).is_err()
    })
    .await;
    assert!(!server.task.is_finished());
    probe.release.send_replace(true);
    within("the answer", call).await.unwrap().unwrap();
    assert_eq!(server.ended().await.unwrap(), Ended::Drained);
}

#[tokio::test]
async fn health_flips_first_and_a_second_signal_aborts() {
    let authority = Authority::new("A");
    let server = server(&authority, LONG, LONG).await;
    let own = credentials(&authority, CLIENT);
    let endpoint = format!("http://{}", server.admin_addr);
    let endpoint = tonic::transport::Endpoint::from_shared(endpoint).unwrap();
    let mut probes = HealthClient::new(endpoint.connect_lazy());
    let mut watch = probes.watch(asking("")).await.unwrap().into_inner();
    let serving = i32::from(ServingStatus::Serving);
    while watch.message().await.unwrap().unwrap().status != serving {}
    assert!(
        http_get(server.admin_addr, "/readyz")
            .await
            .starts_with("HTTP/1.1 200")
    );

    server.signals.send();
    let status = within("the flip", watch.message())
        .await
        .unwrap()
        .unwrap()
        .status;
    assert_eq!(status, i32::from(ServingStatus::NotServing));
    let by_name = probes.check(asking("grpc.health.v1.Health")).await.unwrap();
    assert_eq!(by_name.into_inner().status, status);
    assert!(
        http_get(server.admin_addr, "/readyz")
            .await
            .starts_with("HTTP/1.1 503")
    );
    assert!(
        http_get(server.admin_addr, "/livez")
            .await
            .starts_with("HTTP/1.1 200")
    );

    // Lame duck: new connections are still served.
    let mut client = server.client(own);
    client.check(asking("")).await.unwrap();
    let mut stream = client.watch(asking("open")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    assert_eq!(end_promptly(server).await.unwrap(), Ended::Aborted);
    assert!(within("the stream's end", stream.message()).await.is_err());
}

#[tokio::test]
async fn a_dead_task_takes_the_process_down() {
    let authority = Authority::new("A");
    let server = server(&authority, Duration::ZERO, LONG).await;
    server.tasks.spawn("outbox", async {});
    let ended = server.ended().await;
    assert!(
        matches!(ended, Err(ServeError::TaskDied("outbox"))),
        "{ended:?}"
    );
}
