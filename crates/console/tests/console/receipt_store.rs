//! A receipt store that keeps the contract of its reading calls in memory. Each receipt is the one
//! entry of a log of its own, signed by the key in `trust.json`.

use std::sync::{Arc, Mutex};

use cl_model::leaf::{self, Salt};
use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::time::UnixTime;
use cl_testbed::TRUST_DOMAIN;
use cl_tlog::{Checkpoint, Ed25519Signer, Hash, KeyName, ProofFile, SignedCheckpoint};
use cl_wire::receipt::v1 as wire;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;
use tonic::{Code, Request, Response, Status};

use crate::engine::refusal;
use crate::items::{TENANT, at};

const SALT: [u8; 32] = [4; 32];

/// Clones share one store.
#[derive(Clone)]
pub(crate) struct FakeReceiptStore {
    signer: Arc<Ed25519Signer>,
    log: Arc<Mutex<Vec<wire::RecordedReceipt>>>,
    asked: Arc<Mutex<Vec<wire::ListReceiptsRequest>>>,
}

impl FakeReceiptStore {
    pub(crate) fn new() -> Self {
        let name = KeyName::new(&leaf::origin(TRUST_DOMAIN, TENANT)).unwrap();
        Self {
            signer: Arc::new(Ed25519Signer::from_seed(name, &[6; 32]).unwrap()),
            log: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// The file by which its logs are trusted.
    pub(crate) fn trust(&self) -> String {
        let key = self.signer.verifier_key().to_string();
        let key = key.rsplit('+').next().unwrap();
        let bytes = data_encoding::BASE64.decode(key.as_bytes()).unwrap();
        json!({"keys": [{
            "kid": "urn:cl:key:receipts:test", "purpose": "receipts", "alg": "Ed25519",
            "x": BASE64URL_NOPAD.encode(&bytes[1..]),
            "not_before": null, "not_after": null, "revoked": false,
        }]})
        .to_string()
    }

    pub(crate) fn asked(&self) -> Vec<wire::ListReceiptsRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Appends a receipt about a subject; the part of its URN behind the prefix.
    pub(crate) fn append(&self, operation: &'static str, tag: Option<&str>) -> String {
        let now = UnixTime::from_milliseconds(crate::world::NOW_S * 1000);
        let draft = Draft::new(
            operation,
            "spiffe://example.org/exchange/cl-policy-engine",
            "urn:cl:alias:a1",
            Outcome::Success,
            "It was done.",
            now,
        );
        let draft = draft
            .about_decision("urn:cl:request:r1", "urn:cl:decision:d1")
            .with_metadata("decision", "allow");
        let record = draft.finish().unwrap();
        let receipt = record.text().as_bytes().to_vec();
        let id = record.into_value()["id"].as_str().unwrap().to_owned();
        self.log.lock().unwrap().push(wire::RecordedReceipt {
            entry: Some(wire::LogEntry {
                sequence: 1,
                receipt_ref: id.clone(),
                supersedes_ref: None,
            }),
            receipt,
            routing: Some(wire::Routing {
                tenant: TENANT.to_owned(),
                operation_id: String::new(),
                subject_tag: tag.map(str::to_owned),
            }),
            writer: "spiffe://example.org/exchange/cl-policy-engine".to_owned(),
            attestation: wire::Attestation::Authority.into(),
            recorded_at: Some(at(0)),
            salt: SALT.to_vec(),
            tombstone: None,
        });
        id.strip_prefix("urn:cl:receipt:").unwrap().to_owned()
    }

    /// Makes the store give another salt than the one that the log commits to.
    pub(crate) fn forge(&self) {
        for receipt in self.log.lock().unwrap().iter_mut() {
            receipt.salt = vec![5; 32];
        }
    }

    fn proof(&self, receipt: &[u8]) -> String {
        let text = std::str::from_utf8(receipt).unwrap();
        let entry = leaf::entry(&Salt::new(SALT), text);
        let origin = leaf::origin(TRUST_DOMAIN, TENANT);
        let checkpoint = Checkpoint::new(&origin, 1, Hash::of_leaf(&entry)).unwrap();
        let proof = ProofFile {
            extra: SALT.to_vec(),
            index: 0,
            proof: Vec::new(),
            checkpoint: SignedCheckpoint::sign(checkpoint, &[&*self.signer]).unwrap(),
        };
        proof.to_string()
    }
}

fn not_for_the_console<T>() -> Result<Response<T>, Status> {
    Err(refusal(Code::PermissionDenied, "CALLER_NOT_ALLOWED"))
}

#[tonic::async_trait]
impl ReceiptService for FakeReceiptStore {
    async fn get_receipt(
        &self,
        request: Request<wire::GetReceiptRequest>,
    ) -> Result<Response<wire::GetReceiptResponse>, Status> {
        let message = request.into_inner();
        let log = self.log.lock().unwrap();
        let named = |it: &&wire::RecordedReceipt| {
            it.entry.as_ref().unwrap().receipt_ref == message.receipt_ref
        };
        let found = log.iter().find(named).cloned();
        let found = found.ok_or_else(|| refusal(Code::NotFound, "RECEIPT_NOT_FOUND"))?;
        Ok(Response::new(wire::GetReceiptResponse {
            proof: self.proof(&found.receipt),
            receipt: Some(found),
        }))
    }

    async fn list_receipts(
        &self,
        request: Request<wire::ListReceiptsRequest>,
    ) -> Result<Response<wire::ListReceiptsResponse>, Status> {
        let message = request.into_inner();
        self.asked.lock().unwrap().push(message.clone());
        let log = self.log.lock().unwrap();
        let fits = |it: &&wire::RecordedReceipt| {
            let routing = it.routing.as_ref().unwrap();
            routing.tenant == message.tenant && routing.subject_tag == message.subject_tag
        };
        let receipts: Vec<_> = log.iter().filter(fits).cloned().collect();
        Ok(Response::new(wire::ListReceiptsResponse {
            total_size: u64::try_from(receipts.len()).unwrap(),
            receipts,
            next_page_token: String::new(),
        }))
    }

    async fn preflight(
        &self,
        _: Request<wire::PreflightRequest>,
    ) -> Result<Response<wire::PreflightResponse>, Status> {
        not_for_the_console()
    }

    async fn append(
        &self,
        _: Request<wire::AppendRequest>,
    ) -> Result<Response<wire::AppendResponse>, Status> {
        not_for_the_console()
    }

    async fn begin(
        &self,
        _: Request<wire::BeginRequest>,
    ) -> Result<Response<wire::BeginResponse>, Status> {
        not_for_the_console()
    }

    async fn complete(
        &self,
        _: Request<wire::CompleteRequest>,
    ) -> Result<Response<wire::CompleteResponse>, Status> {
        not_for_the_console()
    }

    async fn list_open(
        &self,
        _: Request<wire::ListOpenRequest>,
    ) -> Result<Response<wire::ListOpenResponse>, Status> {
        not_for_the_console()
    }

    async fn verify_log(
        &self,
        _: Request<wire::VerifyLogRequest>,
    ) -> Result<Response<wire::VerifyLogResponse>, Status> {
        not_for_the_console()
    }
}
