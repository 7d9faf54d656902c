//! A small HTTP/1.1 client: one call a connection, bounded in time and size.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most bytes of an answer's body.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// Time for a process to say whether it is ready.
const PROBE_LIMIT: Duration = Duration::from_secs(2);

/// Why there is no answer that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The connection broke, or what came is no answer.
    Broken,
    /// The peer ended the connection with a TLS alert: in TLS 1.3 a client learns only so, after its
    /// own handshake, that its certificate is refused.
    Alert,
}

impl NoAnswer {
    fn of(error: &hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        match cause.and_then(tls_error) {
            Some(rustls::Error::AlertReceived(_)) => Self::Alert,
            Some(_) | None => Self::Broken,
        }
    }
}

/// What TLS found wrong with a connection, if that is why it failed.
pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Sends one request over a connection, and closes it.
pub(crate) async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, NoAnswer>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    send(stream, request).await
}

/// Whether a process says on its admin port that it wants calls.
pub(crate) async fn is_ready(admin_addr: SocketAddr) -> bool {
    let probe = async {
        let stream = TcpStream::connect(admin_addr)
            .await
            .map_err(|_| NoAnswer::Broken)?;
        let request = Request::get("/readyz")
            .header(http::header::HOST, admin_addr.to_string())
            .body(Empty::new())
            .map_err(|_| NoAnswer::Broken)?;
        send(stream, request).await
    };
    matches!(timeout(PROBE_LIMIT, probe).await, Ok(Ok(answer)) if answer.status() == StatusCode::OK)
}

async fn send<S, B>(stream: S, request: Request<B>) -> Result<Response<Bytes>, NoAnswer>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| NoAnswer::of(&error))?;
    let connection = tokio::spawn(connection);
    let answer = match sender.send_request(request).await {
        Ok(answer) => answer,
        Err(_) => {
            // The connection's own end says more than that the request got no answer.
            drop(sender);
            let Ok(Err(error)) = connection.await else {
                return Err(NoAnswer::Broken);
            };
            return Err(NoAnswer::of(&error));
        }
    };
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES)
        .collect()
        .await
        .map_err(|_| NoAnswer::Broken)?;
    connection.abort();
    Ok(Response::from_parts(head, body.to_bytes()))
}
