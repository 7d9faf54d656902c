//! The connection to the exchange.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cl_model::delivery::{Delivery, Trust, VerifiedDelivery};
use cl_model::document::Signed;
use cl_model::key::Signature;
use cl_model::session::{Revocation, Stored};
use cl_model::time::UnixTime;
use cl_model::trust::TrustFile;
use cl_wire::exchange::v1 as wire;
use cl_wire::exchange::v1::exchange_service_client::ExchangeServiceClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};
use zeroize::Zeroizing;

use crate::bundle::OpenBundle;
use crate::clock::{Clock, SystemClock};
use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer: a bundle with its documents.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// How often a receipt is sent before it counts as not durable.
const RECEIPT_ATTEMPTS: u32 = 4;
const RECEIPT_PAUSE: Duration = Duration::from_millis(100);

/// How a client proves who it is.
#[derive(Clone)]
pub enum Credential {
    /// An OAuth 2.0 access token.
    Bearer(Zeroizing<String>),
    /// A client certificate of the deployment, with its key; both PEM.
    Certificate {
        /// The chain, the client's own certificate first.
        chain_pem: Vec<u8>,
        /// The private key, PKCS#8.
        key_pem: Zeroizing<Vec<u8>>,
    },
}

impl Credential {
    /// An access token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::Bearer(Zeroizing::new(token.into()))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bearer(_) => "Bearer(..)",
            Self::Certificate { .. } => "Certificate(..)",
        })
    }
}

/// What a client needs to know.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The gateway: `https://host:port`.
    pub gateway: String,
    /// The authorities of the gateway's certificate, PEM.
    pub authorities_pem: Vec<u8>,
    /// How the client proves who it is.
    pub credential: Credential,
    /// The principal that bundles are opened for; the credential's own.
    pub recipient: String,
    /// The trust file (`trust.json`): whose signatures are believed.
    pub trust: Vec<u8>,
}

/// A client of one exchange, for one recipient. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    exchange: ExchangeServiceClient<InterceptedService<Channel, Authorization>>,
    recipient: String,
    trust: Arc<TrustFile>,
    clock: Arc<dyn Clock>,
}

impl Client {
    /// Prepares a client; the connection is made by its first call.
    ///
    /// # Errors
    ///
    /// [`Error::Configuration`], or [`Error::Refused`] for a trust file that cannot be used.
    pub fn connect(config: ClientConfig) -> Result<Self, Error> {
        Self::connect_with_clock(config, Arc::new(SystemClock))
    }

    /// As [`Client::connect`], with another clock.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`].
    pub fn connect_with_clock(config: ClientConfig, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        if !config.gateway.starts_with("https://") {
            return Err(Error::Configuration("the gateway must be an https:// URL"));
        }
        let trust = Arc::new(TrustFile::parse(&config.trust)?);
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&config.authorities_pem));
        let mut authorization = Authorization(None);
        match &config.credential {
            Credential::Bearer(token) => {
                let header = Zeroizing::new(format!("Bearer {}", token.as_str()));
                let mut header = MetadataValue::try_from(header.as_str())
                    .map_err(|_| Error::Configuration("the token is not visible ASCII"))?;
                header.set_sensitive(true);
                authorization = Authorization(Some(header));
            }
            Credential::Certificate { chain_pem, key_pem } => {
                tls = tls.identity(Identity::from_pem(chain_pem, key_pem.as_slice()));
            }
        }
        let endpoint = Endpoint::from_shared(config.gateway)
            .map_err(|_| Error::Configuration("the gateway's URL is malformed"))?
            .tls_config(tls)
            .map_err(|_| Error::Configuration("certificates or key are malformed"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT);
        let exchange =
            ExchangeServiceClient::with_interceptor(endpoint.connect_lazy(), authorization)
                .max_decoding_message_size(MAX_ANSWER_BYTES);
        Ok(Self {
            exchange,
            recipient: config.recipient,
            trust,
            clock,
        })
    }

    /// Submits a context request, as canonical JSON, for a decision. A repeat of the same bytes
    /// returns where the request stands.
    ///
    /// # Errors
    ///
    /// [`Error::Exchange`], [`Error::Unreachable`], [`Error::Malformed`].
    pub async fn submit(&self, request: Vec<u8>) -> Result<RequestStatus, Error> {
        let message = wire::SubmitRequestRequest {
            request,
            idempotency_key: None,
            wait_seconds: 0,
        };
        let answer = self.exchange.clone().submit_request(message).await?;
        RequestStatus::read(answer.into_inner().status)
    }

    /// Where a request of the client's own stands.
    ///
    /// # Errors
    ///
    /// As [`Client::submit`].
    pub async fn status(&self, request_ref: &str) -> Result<RequestStatus, Error> {
        let message = wire::GetRequestRequest {
            request_ref: request_ref.to_owned(),
            wait_seconds: 0,
        };
        let answer = self.exchange.clone().get_request(message).await?;
        RequestStatus::read(answer.into_inner().status)
    }

    /// Redeems a bundle, and verifies what came. After a lost answer, the same `idempotency_key` gets
    /// the same bytes again for a short while; without that, a bundle is handed out once.
    ///
    /// # Errors
    ///
    /// As [`Client::submit`], and those of [`Delivery::verify`]; codes `BUNDLE_NOT_FOUND`,
    /// `BUNDLE_REPLAY`, `BUNDLE_EXPIRED`, `BUNDLE_REVOKED` among them.
    pub async fn redeem(
        &self,
        bundle_ref: &str,
        idempotency_key: &str,
    ) -> Result<VerifiedDelivery, Error> {
        let message = wire::RedeemBundleRequest {
            bundle_ref: bundle_ref.to_owned(),
            idempotency_key: Some(idempotency_key.to_owned()),
        };
        let answer = self.exchange.clone().redeem_bundle(message).await?;
        let answer = answer.into_inner();
        let delivery = Delivery {
            envelope: answer.envelope,
            scope: signed(answer.scope_statement, &answer.scope_signature)?,
            notes: signed(answer.notes, &answer.notes_signature)?,
        };
        let verified = delivery.verify(&Trust::of(&self.trust, self.now()))?;
        if verified.bundle.bundle().id.as_str() != bundle_ref {
            return Err(Error::Malformed("the bundle is another one"));
        }
        Ok(verified)
    }

    /// Asks whether a verified delivery was revoked, records its consumption, and only then releases
    /// what is in it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the code of the check that failed, see [`cl_model::session::Opening`].
    pub async fn open(&self, delivery: &VerifiedDelivery) -> Result<OpenBundle, Error> {
        OpenBundle::open(self.clone(), delivery.clone()).await
    }

    pub(crate) fn recipient(&self) -> &str {
        &self.recipient
    }

    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// What is known of a bundle's state; everything but a clear answer is a reason to stop.
    pub(crate) async fn check(&self, bundle_ref: &str) -> Checked {
        let message = wire::CheckBundleRequest {
            bundle_ref: bundle_ref.to_owned(),
        };
        let answer = self.exchange.clone().check_bundle(message).await;
        let state = answer.map(|answer| answer.into_inner().state());
        let (revocation, is_consumed) = match state {
            Ok(wire::BundleState::Redeemed) => (Revocation::Clear, false),
            Ok(wire::BundleState::Consumed) => (Revocation::Clear, true),
            Ok(wire::BundleState::Revoked | wire::BundleState::Expired) => {
                (Revocation::Revoked, false)
            }
            Ok(wire::BundleState::Unspecified | wire::BundleState::Live) | Err(_) => {
                (Revocation::Unknown, false)
            }
        };
        Checked {
            revocation,
            is_consumed,
        }
    }

    /// Sends a receipt until an answer says what became of it. The receipt is named by its content,
    /// so a repeat is the same receipt.
    pub(crate) async fn store_receipt(&self, bundle_ref: &str, receipt: &str) -> Stored {
        for attempt in 1..=RECEIPT_ATTEMPTS {
            let message = wire::SubmitReceiptRequest {
                bundle_ref: bundle_ref.to_owned(),
                receipt: receipt.as_bytes().to_vec(),
            };
            let answer = self.exchange.clone().submit_receipt(message).await;
            match answer.map_err(Error::from) {
                Ok(_) => return Stored::Durable,
                Err(error) if error.code() == Some("RECEIPT_REPLAY_CONFLICT") => {
                    return Stored::ReplayConflict;
                }
                Err(error) if error.is_retryable() && attempt < RECEIPT_ATTEMPTS => {
                    tokio::time::sleep(RECEIPT_PAUSE * attempt).await;
                }
                Err(_) => break,
            }
        }
        Stored::Failed
    }

    pub(crate) async fn submit_proposal(&self, proposal: &str) -> Result<String, Error> {
        let message = wire::SubmitProposalRequest {
            proposal: proposal.as_bytes().to_vec(),
        };
        let answer = self.exchange.clone().submit_proposal(message).await?;
        Ok(answer.into_inner().proposal_ref)
    }
}

/// What a check of a bundle found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) revocation: Revocation,
    pub(crate) is_consumed: bool,
}

fn signed(document: Vec<u8>, signature: &[u8]) -> Result<Signed, Error> {
    let signature = signature
        .try_into()
        .map_err(|_| Error::Malformed("a signature has 64 bytes"))?;
    Ok(Signed {
        signature: Signature::new(signature),
        document,
    })
}

/// Adds the access token to each call.
#[derive(Clone, Debug)]
struct Authorization(Option<MetadataValue<Ascii>>);

impl Interceptor for Authorization {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", header.clone());
        }
        Ok(request)
    }
}

/// The states of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// A person has to approve first.
    PendingApproval,
    /// The decision is final; no bundle exists, or not yet.
    Decided,
    /// A bundle waits to be redeemed, or has been.
    Issued,
    /// The decision allowed a bundle, and issuing it failed for good.
    Failed,
    /// The request ran out before it could be carried out.
    Expired,
    /// A person took back what was granted.
    Revoked,
}

/// Where a request stands.
#[derive(Clone, Debug)]
pub struct RequestStatus {
    /// The request.
    pub request_ref: String,
    /// Its state.
    pub state: RequestState,
    /// The newest decision, exactly as it was recorded.
    pub decision: Vec<u8>,
    /// The bundle to redeem, when issued.
    pub bundle_ref: Option<String>,
    /// Why no bundle was issued, when failed.
    pub failure_code: Option<String>,
    /// After how long asking again is worthwhile.
    pub retry_after: Option<Duration>,
}

impl RequestStatus {
    fn read(message: Option<wire::RequestStatus>) -> Result<Self, Error> {
        let message = message.ok_or(Error::Malformed("a status is missing"))?;
        let state = match message.state() {
            wire::RequestState::Unspecified => return Err(Error::Malformed("an unknown state")),
            wire::RequestState::PendingApproval => RequestState::PendingApproval,
            wire::RequestState::Decided => RequestState::Decided,
            wire::RequestState::Issued => RequestState::Issued,
            wire::RequestState::Failed => RequestState::Failed,
            wire::RequestState::Expired => RequestState::Expired,
            wire::RequestState::Revoked => RequestState::Revoked,
        };
        let seconds = message.retry_after_seconds.map(u64::from);
        Ok(Self {
            state,
            request_ref: message.request_ref,
            decision: message.decision,
            bundle_ref: message.bundle_ref,
            failure_code: message.failure_code,
            retry_after: seconds.map(Duration::from_secs),
        })
    }
}
