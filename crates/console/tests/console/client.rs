//! What a browser sends and gets, without a browser: HTTP/1.1 over TLS, one connection a call.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use cl_testbed::within;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    /// The cookie that it sets, as the browser sends it back.
    pub(crate) fn cookie(&self, name: &str) -> String {
        let mut cookies = self.headers.get_all("set-cookie").iter();
        let found = cookies.find_map(|value| {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            pair.starts_with(&format!("{name}="))
                .then(|| pair.to_owned())
        });
        found.unwrap_or_else(|| panic!("no cookie {name}"))
    }

    /// The value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        self.after(&format!("name=\"{name}\" value=\""))
    }

    pub(crate) fn attribute(&self, name: &str) -> String {
        self.after(&format!("{name}=\""))
    }

    fn after(&self, start: &str) -> String {
        let text = self.text();
        let rest = text.split_once(start);
        let (_, rest) = rest.unwrap_or_else(|| panic!("no {start} in {text}"));
        rest.split('"').next().unwrap().to_owned()
    }

    /// The stable code on the page of a refusal.
    pub(crate) fn code(&self) -> String {
        let text = self.text();
        let rest = text.split_once("<code data-code>");
        let (_, rest) = rest.unwrap_or_else(|| panic!("no code in {text}"));
        rest.split('<').next().unwrap().to_owned()
    }

    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status.as_u16(), self.code())
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    addr: SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Client {
    pub(crate) fn new(addr: SocketAddr, root: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            addr,
            tls: Arc::new(tls),
        }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        within("an HTTP call", async {
            let stream = TcpStream::connect(self.addr).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let connector = TlsConnector::from(Arc::clone(&self.tls));
            let io = TokioIo::new(connector.connect(name, stream).await.unwrap());
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            let connection = tokio::spawn(connection);
            let response = sender.send_request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let answer = Answer {
                status: parts.status,
                headers: parts.headers,
                body: body.collect().await.unwrap().to_bytes(),
            };
            connection.abort();
            answer
        })
        .await
    }
}

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

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str, fields: &[(&str, String)]) -> Self {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        let call = Self::new(Method::POST, path).body(form.finish());
        call.header("content-type", "application/x-www-form-urlencoded")
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
        self.request.headers_mut().append(name, value);
        self
    }

    /// The header in place of what is there; empty: without it.
    pub(crate) fn instead(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().remove(name);
        if value.is_empty() {
            return self;
        }
        self.header(name, value)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        *self.request.body_mut() = Full::new(body.into());
        self
    }

    pub(crate) async fn by(self, client: &Client) -> Answer {
        client.send(self.request).await
    }
}
