//! A caller outside: HTTP/1.1 over TLS, one connection a call.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use cl_testbed::within;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const MEDIA_TYPE: &str = "application/vnd.context-layer+json";
pub(crate) const REQUESTS: &str = "/context/v1/requests";
pub(crate) const BUNDLES: &str = "/context/v1/bundles";
pub(crate) const RECEIPTS: &str = "/context/v1/receipts";
pub(crate) const PROPOSALS: &str = "/context/v1/memory-proposals";

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    async fn of(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status and code of a refusal, whose form is checked on the way.
    pub(crate) fn refusal(&self) -> (u16, String) {
        use cl_model::json::{self, Limits};
        use cl_model::object::{ErrorObject, ProtocolObject};

        let value = json::parse(&self.body, Limits::network(4096)).unwrap();
        let object = ErrorObject::read(&value).unwrap();
        self.check_common_headers();
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(object.retryable, self.headers.contains_key("retry-after"));
        assert!(object.id.as_str().len() > 36);
        (self.status.as_u16(), object.code.as_str().to_owned())
    }

    pub(crate) fn check_common_headers(&self) {
        assert_eq!(self.header("content-type"), Some(MEDIA_TYPE));
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(self.header("context-layer-version"), Some("0.2-draft"));
        assert!(self.headers.contains_key("cache-control"));
    }
}

/// A way to reach a gateway, with or without a certificate.
#[derive(Clone)]
pub(crate) struct Client {
    addr: SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Client {
    pub(crate) fn new(
        addr: SocketAddr,
        root: CertificateDer<'static>,
        own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let tls = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap(),
        };
        Self {
            addr,
            tls: Arc::new(tls),
        }
    }

    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        connector.connect(name, stream).await.unwrap()
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        within("an HTTP call", async {
            let io = TokioIo::new(self.connect().await);
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            let connection = tokio::spawn(connection);
            let response = sender.send_request(request).await.unwrap();
            let answer = Answer::of(response).await;
            connection.abort();
            answer
        })
        .await
    }

    /// Sends a request over HTTP/2, where its address needs scheme and authority.
    pub(crate) async fn send_http2(&self, request: Request<Full<Bytes>>) -> Answer {
        within("an HTTP/2 call", async {
            let io = TokioIo::new(self.connect().await);
            let executor = TokioExecutor::new();
            let handshake = hyper::client::conn::http2::handshake(executor, io);
            let (mut sender, connection) = handshake.await.unwrap();
            let connection = tokio::spawn(connection);
            let response = sender.send_request(request).await.unwrap();
            let answer = Answer::of(response).await;
            connection.abort();
            answer
        })
        .await
    }

    /// Writes bytes, and reads all that comes back until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        within("a raw call", async {
            let mut stream = self.connect().await;
            // The server may answer and close before it has read everything.
            let _written = stream.write_all(bytes).await;
            let _flushed = stream.flush().await;
            let mut answer = Vec::new();
            let _closed = stream.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        })
        .await
    }
}

/// A request under construction.
pub(crate) struct Call {
    request: Request<Full<Bytes>>,
}

impl Call {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .body(Full::default())
            .unwrap();
        Self { request }
    }

    /// A submission of a request with everything but a credential.
    pub(crate) fn submit(body: impl Into<Bytes>) -> Self {
        Self::post(REQUESTS, body)
    }

    /// A read of a request with everything but a credential.
    pub(crate) fn read(id: &str) -> Self {
        Self::get(&format!("{REQUESTS}/{id}"))
    }

    pub(crate) fn redeem(bundle: &str) -> Self {
        Self::get(&format!("{BUNDLES}/{bundle}"))
    }

    pub(crate) fn check(bundle: &str) -> Self {
        Self::get(&format!("{BUNDLES}/{bundle}/status"))
    }

    pub(crate) fn record(bundle: &str, body: impl Into<Bytes>) -> Self {
        Self::post(&format!("{BUNDLES}/{bundle}/receipts"), body)
    }

    pub(crate) fn receipt(id: &str) -> Self {
        Self::get(&format!("{RECEIPTS}/{id}"))
    }

    pub(crate) fn propose(body: impl Into<Bytes>) -> Self {
        Self::post(PROPOSALS, body)
    }

    fn get(path: &str) -> Self {
        Self::new(Method::GET, path).header("context-layer-version", "0.2-draft")
    }

    fn post(path: &str, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path)
            .header("context-layer-version", "0.2-draft")
            .header("content-type", MEDIA_TYPE)
            .body(body)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
        self.request.headers_mut().append(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.request.headers_mut().remove(name);
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        *self.request.body_mut() = Full::new(body.into());
        self
    }

    pub(crate) async fn by(self, client: &Client) -> Answer {
        client.send(self.request).await
    }

    pub(crate) async fn by_http2(mut self, client: &Client) -> Answer {
        let path = self.request.uri().path_and_query().unwrap();
        let address = format!("https://localhost{path}");
        *self.request.uri_mut() = address.parse().unwrap();
        self.request.headers_mut().remove("host");
        client.send_http2(self.request).await
    }
}
