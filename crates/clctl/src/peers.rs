//! Connections to the running processes, each with the identity that they expect.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::files::{self, MAX_PUBLIC_BYTES};
use cl_host::identity::{PeerId, SpiffeId};
use cl_host::tls::Credentials;
use cl_wire::policy::v1::approver_admin_service_client::ApproverAdminServiceClient;
use cl_wire::policy::v1::policy_admin_service_client::PolicyAdminServiceClient;
use cl_wire::receipt::v1::receipt_admin_service_client::ReceiptAdminServiceClient;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use http::{Request, Response};
use http_body_util::Full;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::{AUDITOR, CLIENT, OPERATOR, OWNER, credentials};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::http::{NoAnswer, exchange, tls_error};
use crate::processes::{GATEWAY, POLICY_ENGINE, Process, RECEIPT_STORE, VAULT};
use crate::session::Session;

pub(crate) type PolicyAdmin = PolicyAdminServiceClient<PeerChannel>;
pub(crate) type ApproverAdmin = ApproverAdminServiceClient<PeerChannel>;
pub(crate) type Receipts = ReceiptServiceClient<PeerChannel>;
pub(crate) type ReceiptAdmin = ReceiptAdminServiceClient<PeerChannel>;
pub(crate) type Owner = OwnerServiceClient<PeerChannel>;

/// Time for one call; a check of the whole log reads all of it.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// The policy engine's service for operators, as the operator.
pub(crate) fn policy_admin(session: &Session) -> Result<PolicyAdmin, Error> {
    let endpoints = Endpoints::running(&session.home)?;
    policy_admin_at(session, endpoints.find(&POLICY_ENGINE)?.addr)
}

pub(crate) fn policy_admin_at(session: &Session, addr: SocketAddr) -> Result<PolicyAdmin, Error> {
    let channel = channel(session, OPERATOR, &POLICY_ENGINE, addr)?;
    Ok(PolicyAdmin::new(channel))
}

/// The policy engine's service about people who approve, as the operator.
pub(crate) fn approver_admin(session: &Session) -> Result<ApproverAdmin, Error> {
    let endpoints = Endpoints::running(&session.home)?;
    let addr = endpoints.find(&POLICY_ENGINE)?.addr;
    let channel = channel(session, OPERATOR, &POLICY_ENGINE, addr)?;
    Ok(ApproverAdmin::new(channel))
}

/// The receipt store, as the auditor.
pub(crate) fn receipts(session: &Session) -> Result<Receipts, Error> {
    receipt_store(session).map(Receipts::new)
}

/// The receipt store for calls of any kind, as the auditor.
pub(crate) fn receipt_store(session: &Session) -> Result<PeerChannel, Error> {
    let endpoints = Endpoints::running(&session.home)?;
    let addr = endpoints.find(&RECEIPT_STORE)?.addr;
    channel(session, AUDITOR, &RECEIPT_STORE, addr)
}

/// The receipt store's service for operators, as the operator.
pub(crate) fn receipt_admin(session: &Session) -> Result<ReceiptAdmin, Error> {
    let endpoints = Endpoints::running(&session.home)?;
    let addr = endpoints.find(&RECEIPT_STORE)?.addr;
    let channel = channel(session, OPERATOR, &RECEIPT_STORE, addr)?;
    Ok(ReceiptAdmin::new(channel))
}

/// The vault's service for the owner of its context, as the owner.
pub(crate) fn owner(session: &Session) -> Result<Owner, Error> {
    let endpoints = Endpoints::running(&session.home)?;
    let addr = endpoints.find(&VAULT)?.addr;
    Ok(Owner::new(channel(session, OWNER, &VAULT, addr)?))
}

fn channel(
    session: &Session,
    owner: &str,
    process: &Process,
    addr: SocketAddr,
) -> Result<PeerChannel, Error> {
    let credentials = credentials(session, owner)?;
    let target = Target {
        address: addr.to_string(),
        id: id_of(process, &credentials)?,
    };
    let limits = ClientLimits {
        default_deadline: CALL_LIMIT,
        ..ClientLimits::default()
    };
    Ok(PeerChannel::new(target, credentials, limits)?)
}

/// The SPIFFE id of a process in the trust domain of these credentials.
fn id_of(process: &Process, credentials: &Credentials) -> Result<SpiffeId, Error> {
    let own = credentials.own().id;
    let id = format!("spiffe://{}/{}", own.trust_domain(), process.spiffe_path());
    id.parse().map_err(|_| Error::TrustDomain)
}

/// How a requester shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// An access token, which is in the request already.
    Token,
    /// The client certificate of the home.
    Certificate,
}

/// The gateway's HTTP endpoint.
#[derive(Debug)]
pub(crate) struct Gateway {
    addr: SocketAddr,
    id: SpiffeId,
    tls: Arc<ClientConfig>,
}

impl Gateway {
    pub(crate) fn open(session: &Session, shows: Shows) -> Result<Self, Error> {
        let endpoints = Endpoints::running(&session.home)?;
        let client = credentials(session, CLIENT)?;
        let mut tls = match shows {
            Shows::Certificate => ClientConfig::clone(&client.client_config()),
            Shows::Token => anonymous(session)?,
        };
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            addr: endpoints.find(&GATEWAY)?.addr,
            id: id_of(&GATEWAY, &client)?,
            tls: Arc::new(tls),
        })
    }

    /// `host:port`, as requests name it.
    pub(crate) fn authority(&self) -> String {
        self.addr.to_string()
    }

    pub(crate) async fn call(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, Error> {
        let answer = timeout(CALL_LIMIT, self.dial_and_call(request)).await;
        answer.unwrap_or(Err(Error::Unreachable { peer: GATEWAY.name }))
    }

    /// Refuses whoever else is where the gateway should be.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let dialled = timeout(CALL_LIMIT, self.dial()).await;
        let dialled = dialled.unwrap_or(Err(Error::Unreachable { peer: GATEWAY.name }));
        dialled.map(|_| ())
    }

    async fn dial_and_call(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Error> {
        let peer = GATEWAY.name;
        let answer = exchange(self.dial().await?, request).await;
        answer.map_err(|no_answer| match no_answer {
            NoAnswer::Broken => Error::Unreachable { peer },
            NoAnswer::Alert => Error::CertificateRefused { peer },
        })
    }

    async fn dial(&self) -> Result<TlsStream<TcpStream>, Error> {
        let peer = GATEWAY.name;
        let stream = TcpStream::connect(self.addr)
            .await
            .map_err(|_| Error::Unreachable { peer })?;
        let name = ServerName::IpAddress(self.addr.ip().into());
        let stream = TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, stream)
            .await
            .map_err(|error| match tls_error(&error) {
                Some(_) => Error::WrongPeer { peer },
                None => Error::Unreachable { peer },
            })?;
        let chain = stream.get_ref().1.peer_certificates();
        let leaf = chain
            .and_then(<[_]>::first)
            .ok_or(Error::WrongPeer { peer })?;
        // Any process of the home has a certificate for this address: the name alone proves nothing.
        match PeerId::from_certificate(leaf) {
            Ok(peer) if peer.id == self.id => Ok(stream),
            Ok(_) | Err(_) => Err(Error::WrongPeer { peer }),
        }
    }
}

/// Trusts the home's authority and shows no certificate.
fn anonymous(session: &Session) -> Result<ClientConfig, Error> {
    let path = session.home.authority();
    let pem = files::load_public(&path, MAX_PUBLIC_BYTES)?;
    let root = CertificateDer::from_pem_slice(&pem).map_err(|_| Error::Malformed {
        path,
        expected: "a certificate, PEM",
    })?;
    let mut roots = RootCertStore::empty();
    roots.add(root)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
