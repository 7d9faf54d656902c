//! Who gets through the handshake, in both directions.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cl_host::Callers;
use cl_host::accept::ConnectionLimits;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::ManualClock;
use cl_host::life::Ended;
use cl_host::status;
use cl_host::tls::{Credentials, TlsError};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::{Code, Status};
use tonic_health::pb::health_client::HealthClient;

use crate::pki::{Authority, Folder, IN_THE_PAST_UNIX_S, credentials, id};
use crate::support::{
    CHECK, CLIENT, HANG, Running, SERVER, SERVER_ID, Start, asking, http_get, within,
};

async fn server(authority: &Authority) -> Running {
    Start::new(credentials(authority, SERVER)).run().await
}

pub(crate) async fn connect(
    addr: SocketAddr,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(addr).await?;
    TlsConnector::from(config)
        .connect("localhost".try_into().unwrap(), stream)
        .await
}

/// A configuration that trusts what `like` trusts and shows no certificate.
pub(crate) fn anonymous(authority: &Authority, alpn: &[u8]) -> Arc<ClientConfig> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

async fn call(server: &Running, credentials: Arc<Credentials>) -> Result<(), Status> {
    let mut client = server.client(credentials);
    within("a call", client.check(asking(""))).await.map(|_| ())
}

#[tokio::test]
async fn accepts_a_peer_and_tells_the_handler_who_it_is() {
    let authority = Authority::new("A");
    let server = server(&authority).await;
    let issued = authority.issue(CLIENT);
    let own = Folder::new(&issued, &authority.pem()).load().unwrap();
    call(&server, Arc::clone(&own)).await.unwrap();
    let peer = server.probe.last().peer.unwrap();
    assert_eq!(peer.id.to_string(), id(CLIENT));
    assert_eq!(peer.serial, issued.serial);
    assert_eq!(peer, own.own());
}

#[tokio::test]
async fn refuses_a_connection_without_a_certificate() {
    let authority = Authority::new("A");
    let server = server(&authority).await;
    // In TLS 1.3 the client learns of the refusal with its first read.
    let mut stream = connect(server.addr, anonymous(&authority, b"h2"))
        .await
        .unwrap();
    let error = within("the alert", stream.read_u8()).await.unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    assert_eq!(server.probe.calls(), 0);
}

#[tokio::test]
async fn refuses_a_client_of_another_authority() {
    let (authority, other) = (Authority::new("A"), Authority::new("B"));
    let server = server(&authority).await;
    let stranger = Folder::new(&other.issue(CLIENT), &authority.pem())
        .load()
        .unwrap();
    let status = call(&server, stranger).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(
        status::reason(&status).as_deref(),
        Some(status::OWN_CERTIFICATE_REFUSED)
    );
    assert_eq!(server.probe.calls(), 0);
}

#[tokio::test]
async fn refuses_a_client_whose_certificate_ended() {
    let authority = Authority::new("A");
    let server = server(&authority).await;
    let folder = Folder::new(
        &authority.issue_for(&[&id(CLIENT)], IN_THE_PAST_UNIX_S),
        &authority.pem(),
    );
    let in_2019 = ManualClock::new(1_560_000_000_000);
    let outdated = folder.load_at(Arc::new(in_2019)).unwrap();
    let status = call(&server, outdated).await.unwrap_err();
    assert_eq!(
        status::reason(&status).as_deref(),
        Some(status::OWN_CERTIFICATE_REFUSED)
    );
    assert_eq!(server.probe.calls(), 0);
}

#[tokio::test]
async fn refuses_a_client_without_exactly_one_spiffe_id() {
    let authority = Authority::new("A");
    let server = server(&authority).await;
    for uris in [
        &[][..],
        &[
            "spiffe://example.org/exchange/client",
            "spiffe://example.org/exchange/other",
        ],
        &["https://example.org/exchange/client"],
    ] {
        let issued = authority.issue_for(uris, i64::from(u32::MAX));
        let folder = Folder::new(&issued, &authority.pem());
        assert!(matches!(folder.load(), Err(TlsError::Own(_))), "{uris:?}");

        let mut stream = connect(server.addr, shows(&authority, &issued.chain, &issued.key))
            .await
            .unwrap();
        let end = within("the server's close", stream.read_u8()).await;
        assert!(end.is_err(), "{uris:?}");
    }
    assert_eq!(server.probe.calls(), 0);
}

fn shows(authority: &Authority, chain: &str, key: &str) -> Arc<ClientConfig> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let mut config = (*anonymous(authority, b"h2")).clone();
    let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let certified = rustls::sign::CertifiedKey::from_der(chain, key, config.crypto_provider());
    let resolver = rustls::sign::SingleCertAndKey::from(certified.unwrap());
    config.client_auth_cert_resolver = Arc::new(resolver);
    Arc::new(config)
}

#[tokio::test]
async fn a_client_refuses_any_server_but_the_one_it_dialled() {
    let (authority, other) = (Authority::new("A"), Authority::new("B"));
    let server = server(&authority).await;
    let trusting = credentials(&authority, CLIENT);
    let distrusting = Folder::new(&authority.issue(CLIENT), &other.pem())
        .load()
        .unwrap();
    for (own, expected) in [
        (Arc::clone(&trusting), id("exchange/server-2")),
        (Arc::clone(&trusting), id("vault/server")),
        (distrusting, SERVER_ID.to_owned()),
    ] {
        let mut client = HealthClient::new(server.channel(own, &expected));
        let status = within("a call", client.check(asking("")))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{expected}: {status:?}");
        assert_eq!(
            status::reason(&status).as_deref(),
            Some(status::PEER_NOT_VERIFIED),
            "{expected}"
        );
    }
    assert_eq!(server.probe.calls(), 0);
    call(&server, trusting).await.unwrap();
}

#[tokio::test]
async fn a_dead_peer_is_plainly_unavailable() {
    let authority = Authority::new("A");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = closed.local_addr().unwrap();
    drop(closed);
    let channel = crate::support::channel(addr, credentials(&authority, CLIENT), SERVER_ID);
    let status = HealthClient::new(channel)
        .check(asking(""))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status::reason(&status), None);
}

#[tokio::test]
async fn an_edge_takes_anonymous_peers_and_http1_and_still_reads_certificates() {
    let authority = Authority::new("A");
    let folder = Folder::new(&authority.issue(SERVER), &authority.pem());
    let mut start = Start::new(folder.load_edge());
    start.callers = Callers::Edge {
        methods: vec![CHECK.to_owned()],
    };
    let server = start.run().await;

    let mut stream = connect(server.addr, anonymous(&authority, b"http/1.1"))
        .await
        .unwrap();
    let request = b"GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // hyper closes without a TLS goodbye, which is an error to rustls after the answer.
    let _closed = within("an answer", stream.read_to_end(&mut answer)).await;
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer)
    );

    call(&server, credentials(&authority, CLIENT))
        .await
        .unwrap();
    assert_eq!(server.probe.last().peer.unwrap().id.to_string(), id(CLIENT));

    let stranger = Folder::new(&Authority::new("B").issue(CLIENT), &authority.pem());
    assert!(call(&server, stranger.load().unwrap()).await.is_err());
}

#[tokio::test]
async fn bounds_the_number_and_the_silence_of_connections() {
    let authority = Authority::new("A");
    let mut start = Start::new(credentials(&authority, SERVER));
    start.limits = ConnectionLimits {
        max_connections: 2,
        handshake_timeout: Duration::from_millis(300),
        first_request_timeout: Duration::from_millis(300),
        ..ConnectionLimits::default()
    };
    let server = start.run().await;
    let own = credentials(&authority, CLIENT);

    // One says nothing at all, one says nothing after the handshake: both are cut.
    let mut silent = TcpStream::connect(server.addr).await.unwrap();
    let mut idle = connect(server.addr, own.client_config()).await.unwrap();
    let mut refused = TcpStream::connect(server.addr).await.unwrap();
    let end = within("the third to be closed", refused.read(&mut [0; 8])).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    let end = within("the silent one to be cut", silent.read(&mut [0; 8])).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    let mut rest = Vec::new();
    let _end = within("the idle one to be cut", idle.read_to_end(&mut rest)).await;

    let mut client = server.client(own);
    within("a call", client.check(asking(""))).await.unwrap();

    let metrics = http_get(server.admin_addr, "/metrics").await;
    for cause in ["too_many", "timeout", "no_request"] {
        let line = format!(r#"connections_refused_total{{cause="{cause}"}} 1"#);
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn a_connection_that_is_too_old_is_cut_with_all_its_handlers() {
    let authority = Authority::new("A");
    let mut start = Start::new(credentials(&authority, SERVER));
    start.timings.drain_deadline = Duration::from_secs(600);
    start.limits = ConnectionLimits {
        max_age: Duration::from_millis(50),
        age_grace: Duration::from_millis(50),
        ..ConnectionLimits::default()
    };
    let server = start.run().await;
    let mut client = server.client(credentials(&authority, CLIENT));
    let mut stream = client.watch(asking("open")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    let status = within("the cut call", client.check(asking("hold")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let end = within("the cut stream", stream.message()).await;
    assert!(end.is_err());

    within("a call", client.check(asking(""))).await.unwrap();
    // Had a handler outlived its connection, the drain would wait for it.
    server.signals.send();
    assert_eq!(server.ended().await.unwrap(), Ended::Drained);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_meets_the_end_of_its_connection() {
    const MAX_AGE: Duration = Duration::from_millis(1000);
    let authority = Authority::new("A");
    let mut start = Start::new(credentials(&authority, SERVER));
    start.limits = ConnectionLimits {
        max_age: MAX_AGE,
        ..ConnectionLimits::default()
    };
    let server = start.run().await;
    let target = Target {
        address: format!("localhost:{}", server.addr.port()),
        id: SERVER_ID.parse().unwrap(),
    };
    let limits = ClientLimits {
        connect_timeout: HANG,
        default_deadline: HANG,
        max_connection_age: MAX_AGE / 10,
        ..ClientLimits::default()
    };
    let channel = PeerChannel::new(target, credentials(&authority, CLIENT), limits).unwrap();
    let end = tokio::time::Instant::now() + 4 * MAX_AGE;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut client = HealthClient::new(channel.clone());
        callers.spawn(async move {
            while tokio::time::Instant::now() < end {
                client.check(asking("")).await.unwrap();
            }
        });
    }
    within("the calls", callers.join_all()).await;
}

#[tokio::test]
async fn a_channel_finds_a_restarted_peer_again() {
    let authority = Authority::new("A");
    let first = server(&authority).await;
    let mut client = first.client(credentials(&authority, CLIENT));
    client.check(asking("")).await.unwrap();
    let addr = first.addr;
    first.signals.send();
    first.ended().await.unwrap();
    let status = within("a call to nobody", client.check(asking("")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);

    let mut start = Start::new(credentials(&authority, SERVER));
    start.listen = addr;
    let _second = start.run().await;
    within("a call", client.check(asking(""))).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_accepts_and_says_nothing_is_given_up() {
    let authority = Authority::new("A");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target {
        address: silent.local_addr().unwrap().to_string(),
        id: SERVER_ID.parse().unwrap(),
    };
    let limits = ClientLimits {
        connect_timeout: Duration::from_millis(50),
        default_deadline: Duration::from_secs(600),
        ..ClientLimits::default()
    };
    let own = credentials(&authority, CLIENT);
    let mut client = HealthClient::new(PeerChannel::new(target, own, limits).unwrap());
    let status = within("the connect time-out", client.check(asking("")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
}

#[tokio::test]
async fn a_call_has_the_callers_deadline_at_both_ends() {
    let authority = Authority::new("A");
    let server = server(&authority).await;
    let mut client = server.client(credentials(&authority, CLIENT));

    client.check(asking("")).await.unwrap();
    assert!(server.probe.last().remaining <= HANG);

    // On a busy machine a short deadline may pass before the handler runs.
    let mut time = Duration::from_millis(100);
    while server.probe.calls() == 1 {
        time *= 2;
        let mut request = asking("hold");
        request.set_timeout(time);
        let status = within("the deadline", client.check(request))
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }
    assert!(server.probe.last().remaining <= time);
}

#[tokio::test]
async fn refuses_to_load_what_cannot_serve() {
    let authority = Authority::new("A");
    let trust = authority.pem();
    let good = authority.issue(SERVER);

    let ended = Folder::new(
        &authority.issue_for(&[&id(SERVER)], IN_THE_PAST_UNIX_S),
        &trust,
    )
    .load();
    assert!(matches!(ended, Err(TlsError::NotValidNow { .. })));

    let mut mixed = authority.issue(SERVER);
    mixed.key.clone_from(&good.key);
    assert!(matches!(
        Folder::new(&mixed, &trust).load(),
        Err(TlsError::Material(_))
    ));

    assert!(matches!(
        Folder::new(&good, "no pem").load(),
        Err(TlsError::Pem { .. })
    ));

    let exposed = Folder::new(&good, &trust);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(exposed.files().key, mode).unwrap();
    assert!(matches!(exposed.load(), Err(TlsError::File(_))));
}
