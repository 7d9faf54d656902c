//! Dialling a peer and checking that it is the one that was meant.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::{Code, Status, TimeoutExpired};
use tower::Service;

use super::{Target, unavailable};
use crate::deadline;
use crate::identity::{InvalidPeer, PeerId, SpiffeId};
use crate::status;
use crate::tls::Credentials;

/// An address that is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not host:port: {0}")]
pub struct InvalidTarget(pub String);

/// Why a peer could not be dialled.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection broke or the library refused the peer's chain, name or validity.
    #[error("handshake: {0}")]
    Handshake(#[source] io::Error),
    /// The peer's certificate names nobody.
    #[error("server certificate: {0}")]
    Peer(#[from] InvalidPeer),
    /// The certificate is good, but of somebody else.
    #[error("expected {expected}, found {found}")]
    WrongPeer {
        /// Who was meant.
        expected: SpiffeId,
        /// Who answered.
        found: SpiffeId,
    },
}

impl DialError {
    fn is_unverified_peer(&self) -> bool {
        match self {
            Self::Connect(_) => false,
            Self::Handshake(error) => matches!(
                tls_error(error),
                Some(
                    rustls::Error::InvalidCertificate(_)
                        | rustls::Error::NoCertificatesPresented
                        | rustls::Error::UnsupportedNameType
                )
            ),
            Self::Peer(_) | Self::WrongPeer { .. } => true,
        }
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// tonic's connector: TCP, TLS, then the SPIFFE id.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    shared: Arc<DialerParts>,
}

#[derive(Debug)]
struct DialerParts {
    target: Target,
    server_name: ServerName<'static>,
    credentials: Arc<Credentials>,
}

impl Dialer {
    pub(super) fn new(
        target: Target,
        credentials: Arc<Credentials>,
    ) -> Result<Self, InvalidTarget> {
        let invalid = || InvalidTarget(target.address.clone());
        let (host, port) = target.address.rsplit_once(':').ok_or_else(invalid)?;
        port.parse::<u16>().map_err(|_| invalid())?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let server_name = ServerName::try_from(host.to_owned()).map_err(|_| invalid())?;
        Ok(Self {
            shared: Arc::new(DialerParts {
                target,
                server_name,
                credentials,
            }),
        })
    }

    pub(super) fn target(&self) -> &Target {
        &self.shared.target
    }
}

impl DialerParts {
    async fn dial(&self) -> Result<TlsStream<TcpStream>, DialError> {
        let stream = TcpStream::connect(&self.target.address)
            .await
            .map_err(DialError::Connect)?;
        stream.set_nodelay(true).map_err(DialError::Connect)?;
        let connector = TlsConnector::from(self.credentials.client_config());
        let stream = connector
            .connect(self.server_name.clone(), stream)
            .await
            .map_err(DialError::Handshake)?;
        let leaf = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        let found = PeerId::from_certificate(leaf.ok_or(InvalidPeer::Malformed)?)?.id;
        if found != self.target.id {
            return Err(DialError::WrongPeer {
                expected: self.target.id.clone(),
                found,
            });
        }
        Ok(stream)
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Connection>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _origin: Uri) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let dialled = shared.dial().await;
            if let Err(error) = &dialled {
                tracing::warn!(peer = %shared.target.id, %error, "cannot dial");
            }
            dialled.map(|stream| TokioIo::new(Connection(stream)))
        })
    }
}

/// What a failure below gRPC means to the caller. The detail was logged by the dialler.
pub(super) fn status_of(error: &(dyn Error + 'static)) -> Status {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(dial) = error.downcast_ref::<DialError>() {
            return status_of_dial(dial);
        }
        // tonic's channel reads `grpc-timeout` too, and may be the first to give up.
        if error.is::<TimeoutExpired>() {
            return deadline::exceeded();
        }
        if let Some(io) = error.downcast_ref::<io::Error>()
            && io.kind() == OWN_CERTIFICATE_REFUSED
        {
            return unavailable(
                status::OWN_CERTIFICATE_REFUSED,
                "the peer refused this process's certificate",
            );
        }
        cause = error.source();
    }
    Status::new(Code::Unavailable, UNREACHABLE)
}

fn status_of_dial(error: &DialError) -> Status {
    if error.is_unverified_peer() {
        return unavailable(
            status::PEER_NOT_VERIFIED,
            "the peer is not the expected one",
        );
    }
    Status::new(Code::Unavailable, UNREACHABLE)
}

const UNREACHABLE: &str = "the peer cannot be reached";

/// The kind that [`Connection`] gives to a refusal; the one part of an error that HTTP/2 passes on.
const OWN_CERTIFICATE_REFUSED: io::ErrorKind = io::ErrorKind::PermissionDenied;

/// A dialled connection that recognises when the server refuses the client's certificate.
///
/// In TLS 1.3 it does so when the client's handshake is over already, so the alert arrives with the
/// first read.
#[derive(Debug)]
pub(super) struct Connection(TlsStream<TcpStream>);

fn recognise_refusal(error: io::Error) -> io::Error {
    let refused = matches!(
        tls_error(&error),
        Some(rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::UnsupportedCertificate
        ))
    );
    if refused {
        tracing::warn!(%error, "own certificate refused");
        return io::Error::new(OWN_CERTIFICATE_REFUSED, error);
    }
    error
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        read.map_err(recognise_refusal)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
