//! A gateway that keeps the contract of the exchange for one bundle: one delivery, one
//! consumption, receipts by content. Faults can be set between calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cl_model::object::Receipt;
use cl_model::receipt;
use cl_pki::{Authority, Leaf, Validity};
use cl_sdk::{Client, ClientConfig, Clock, Credential, Delivery};
use cl_wire::exchange::v1::exchange_service_server::{ExchangeService, ExchangeServiceServer};
use cl_wire::exchange::v1::{self as wire, BundleState};
use cl_wire::status::StatusBuilder;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status};

use crate::deployment::{RECIPIENT, TOKEN, bundle_ref, trust_file};

/// What the gateway knows and how it misbehaves.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) bundle: Option<BundleState>,
    pub(crate) receipts: Vec<Value>,
    pub(crate) proposals: Vec<Value>,
    /// This many receipts are refused as if their store were away.
    pub(crate) refused_receipts: u32,
    /// Its one bundle is handed out under any name.
    pub(crate) answers_for_any: bool,
    /// Checks fail.
    pub(crate) is_check_down: bool,
    keys: HashMap<String, ()>,
}

#[derive(Clone)]
pub(crate) struct Gateway {
    delivery: Delivery,
    pub(crate) state: Arc<Mutex<State>>,
}

pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) url: String,
    authorities: String,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.abort();
    }
}

const VALID: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 3_786_912_000,
};

impl Running {
    pub(crate) async fn start(delivery: Delivery) -> Self {
        let authority = Authority::new("test", VALID).unwrap();
        let leaf = Leaf {
            uris: &["spiffe://example.org/edge/cl-gateway"],
            names: &["localhost"],
            validity: VALID,
            serial: 7,
        };
        let issued = authority.issue(&leaf).unwrap();
        let identity = Identity::from_pem(&issued.chain_pem, issued.key_pem.as_bytes());
        let gateway = Gateway {
            delivery,
            state: Arc::new(Mutex::new(State {
                bundle: Some(BundleState::Live),
                ..State::default()
            })),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = ExchangeServiceServer::new(gateway.clone());
        let server = tokio::spawn(async move {
            Server::builder()
                .tls_config(ServerTlsConfig::new().identity(identity))
                .unwrap()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        Self {
            gateway,
            url: format!("https://localhost:{port}"),
            authorities: authority.pem().to_owned(),
            server,
        }
    }

    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig {
            gateway: self.url.clone(),
            authorities_pem: self.authorities.clone().into_bytes(),
            credential: Credential::bearer(TOKEN),
            recipient: RECIPIENT.to_owned(),
            trust: trust_file(),
        }
    }

    pub(crate) fn client(&self, clock: Arc<dyn Clock>) -> Client {
        Client::connect_with_clock(self.config(), clock).unwrap()
    }

    /// Changes or reads the state.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.gateway.state.lock().unwrap())
    }

    /// The operations and outcomes of the receipts so far.
    pub(crate) fn receipts(&self) -> Vec<(String, String)> {
        self.with(|state| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let receipts = state.receipts.iter();
            receipts
                .map(|receipt| (text(&receipt["operation"]), text(&receipt["outcome"])))
                .collect()
        })
    }
}

fn refusal(code: Code, reason: &str) -> Status {
    StatusBuilder::new(code, reason, "refused").build()
}

fn away(reason: &str) -> Status {
    StatusBuilder::new(Code::Unavailable, reason, "away")
        .retry_delay(Duration::from_millis(1))
        .build()
}

impl Gateway {
    fn authenticate<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let header = request.metadata().get("authorization");
        let expected = format!("Bearer {TOKEN}");
        if header.and_then(|value| value.to_str().ok()) == Some(&expected) {
            return Ok(());
        }
        Err(refusal(Code::Unauthenticated, "CALLER_UNAUTHENTICATED"))
    }

    fn known(&self, reference: &str) -> Result<(), Status> {
        let answers_for_any = self.state.lock().unwrap().answers_for_any;
        if answers_for_any || reference == bundle_ref(&self.delivery) {
            return Ok(());
        }
        Err(refusal(Code::NotFound, "BUNDLE_NOT_FOUND"))
    }
}

#[tonic::async_trait]
impl ExchangeService for Gateway {
    type WatchRequestStream = tokio_stream::Empty<Result<wire::WatchRequestResponse, Status>>;

    async fn watch_request(
        &self,
        _: Request<wire::WatchRequestRequest>,
    ) -> Result<Response<Self::WatchRequestStream>, Status> {
        Err(Status::unimplemented("no part of these tests"))
    }

    async fn submit_request(
        &self,
        request: Request<wire::SubmitRequestRequest>,
    ) -> Result<Response<wire::SubmitRequestResponse>, Status> {
        self.authenticate(&request)?;
        Ok(Response::new(wire::SubmitRequestResponse {
            status: Some(wire::RequestStatus {
                request_ref: "urn:cl:request:sdk-1".to_owned(),
                state: wire::RequestState::Issued.into(),
                decision: request.into_inner().request,
                bundle_ref: Some(bundle_ref(&self.delivery)),
                failure_code: None,
                retry_after_seconds: None,
            }),
        }))
    }

    async fn get_request(
        &self,
        request: Request<wire::GetRequestRequest>,
    ) -> Result<Response<wire::GetRequestResponse>, Status> {
        self.authenticate(&request)?;
        Err(refusal(Code::NotFound, "REQUEST_NOT_FOUND"))
    }

    async fn redeem_bundle(
        &self,
        request: Request<wire::RedeemBundleRequest>,
    ) -> Result<Response<wire::RedeemBundleResponse>, Status> {
        self.authenticate(&request)?;
        let request = request.into_inner();
        self.known(&request.bundle_ref)?;
        let mut state = self.state.lock().unwrap();
        let key = request.idempotency_key.unwrap_or_default();
        let is_retry = state.keys.contains_key(&key);
        if state.bundle != Some(BundleState::Live) && !is_retry {
            return Err(refusal(Code::FailedPrecondition, "BUNDLE_REPLAY"));
        }
        state.keys.insert(key, ());
        state.bundle = Some(BundleState::Redeemed);
        Ok(Response::new(wire::RedeemBundleResponse {
            envelope: self.delivery.envelope.clone(),
            scope_statement: self.delivery.scope.document.clone(),
            scope_signature: self.delivery.scope.signature.as_bytes().to_vec(),
            notes: self.delivery.notes.document.clone(),
            notes_signature: self.delivery.notes.signature.as_bytes().to_vec(),
        }))
    }

    async fn check_bundle(
        &self,
        request: Request<wire::CheckBundleRequest>,
    ) -> Result<Response<wire::CheckBundleResponse>, Status> {
        self.authenticate(&request)?;
        self.known(&request.get_ref().bundle_ref)?;
        let state = self.state.lock().unwrap();
        if state.is_check_down {
            return Err(away("SERVICE_UNAVAILABLE"));
        }
        Ok(Response::new(wire::CheckBundleResponse {
            state: state.bundle.unwrap_or_default().into(),
            expires_at: None,
        }))
    }

    async fn submit_receipt(
        &self,
        request: Request<wire::SubmitReceiptRequest>,
    ) -> Result<Response<wire::SubmitReceiptResponse>, Status> {
        self.authenticate(&request)?;
        let request = request.into_inner();
        self.known(&request.bundle_ref)?;
        let receipt: Value = serde_json::from_slice(&request.receipt).unwrap();
        let _: Receipt = receipt::check(&receipt).unwrap();
        let mut state = self.state.lock().unwrap();
        if state.refused_receipts > 0 {
            state.refused_receipts -= 1;
            return Err(away("RECEIPT_STORE_UNAVAILABLE"));
        }
        if !state.receipts.contains(&receipt) {
            if receipt["operation"] == "bundle.consume" {
                if state.bundle == Some(BundleState::Consumed) {
                    return Err(refusal(Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT"));
                }
                state.bundle = Some(BundleState::Consumed);
            }
            state.receipts.push(receipt.clone());
        }
        Ok(Response::new(wire::SubmitReceiptResponse {
            receipt_ref: receipt["id"].as_str().unwrap().to_owned(),
            sequence: u64::try_from(state.receipts.len()).unwrap(),
        }))
    }

    async fn get_receipt(
        &self,
        request: Request<wire::GetReceiptRequest>,
    ) -> Result<Response<wire::GetReceiptResponse>, Status> {
        self.authenticate(&request)?;
        Err(refusal(Code::NotFound, "RECEIPT_NOT_FOUND"))
    }

    async fn submit_proposal(
        &self,
        request: Request<wire::SubmitProposalRequest>,
    ) -> Result<Response<wire::SubmitProposalResponse>, Status> {
        self.authenticate(&request)?;
        let proposal: Value = serde_json::from_slice(&request.get_ref().proposal).unwrap();
        cl_model::memory::check(&proposal).unwrap();
        self.state.lock().unwrap().proposals.push(proposal.clone());
        Ok(Response::new(wire::SubmitProposalResponse {
            proposal_ref: proposal["id"].as_str().unwrap().to_owned(),
            proposal: request.into_inner().proposal,
        }))
    }
}
