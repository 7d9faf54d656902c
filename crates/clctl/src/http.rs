//! A small HTTP/1.1 client: one call a connection, bounded in time and size.

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

/// No answer, or not one that can be used.
#[derive(Debug)]
pub(crate) struct NoAnswer;

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
        let stream = TcpStream::connect(admin_addr).await.map_err(|_| NoAnswer)?;
        let request = Request::get("/readyz")
            .header(http::header::HOST, admin_addr.to_string())
            .body(Empty::new())
            .map_err(|_| NoAnswer)?;
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
        .map_err(|_| NoAnswer)?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|_| NoAnswer)?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES)
        .collect()
        .await
        .map_err(|_| NoAnswer)?;
    connection.abort();
    Ok(Response::from_parts(head, body.to_bytes()))
}
