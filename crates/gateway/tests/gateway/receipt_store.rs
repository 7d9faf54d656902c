//! A receipt store that keeps the contract of `ReceiptService.GetReceipt` in memory.

use std::sync::{Arc, Mutex};

use cl_model::canonical;
use cl_model::json::{self, Limits};
use cl_model::receipt;
use cl_wire::receipt::v1 as wire;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use tonic::{Code, Request, Response, Status};

use crate::faults::{Faults, check_caller, refusal};

/// Clones share one log.
#[derive(Clone, Default)]
pub(crate) struct FakeReceiptStore {
    pub(crate) faults: Faults,
    log: Arc<Mutex<Vec<Entry>>>,
    /// Given instead of what is in the log.
    lie: Arc<Mutex<Option<wire::RecordedReceipt>>>,
}

struct Entry {
    tenant: String,
    id: String,
    bytes: Vec<u8>,
}

impl FakeReceiptStore {
    /// Appends a receipt once, and returns its place.
    pub(crate) fn append(&self, tenant: &str, bytes: &[u8]) -> u64 {
        let value = json::parse(bytes, Limits::network(65_536)).unwrap();
        assert_eq!(canonical::to_text(&value).as_bytes(), bytes);
        let id = receipt::check(&value).unwrap().id.as_str().to_owned();
        let mut log = self.log.lock().unwrap();
        let known = log.iter().position(|it| it.id == id && it.tenant == tenant);
        let position = known.unwrap_or(log.len());
        if known.is_none() {
            log.push(Entry {
                tenant: tenant.to_owned(),
                id,
                bytes: bytes.to_vec(),
            });
        }
        u64::try_from(position).unwrap() + 1
    }

    pub(crate) fn len(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// Answers the next read with something else.
    pub(crate) fn lie_next(&self, receipt: wire::RecordedReceipt) {
        *self.lie.lock().unwrap() = Some(receipt);
    }

    pub(crate) fn recorded(&self, tenant: &str, id: &str) -> Option<wire::RecordedReceipt> {
        let log = self.log.lock().unwrap();
        let position = log
            .iter()
            .position(|it| it.id == id && it.tenant == tenant)?;
        Some(wire::RecordedReceipt {
            entry: Some(wire::LogEntry {
                sequence: u64::try_from(position).unwrap() + 1,
                receipt_ref: id.to_owned(),
                ..wire::LogEntry::default()
            }),
            receipt: log[position].bytes.clone(),
            routing: Some(wire::Routing {
                tenant: tenant.to_owned(),
                ..wire::Routing::default()
            }),
            writer: "spiffe://example.org/exchange/cl-bundle-issuer".to_owned(),
            attestation: wire::Attestation::Consumer.into(),
            ..wire::RecordedReceipt::default()
        })
    }
}

fn not_for_the_gateway<T>() -> Result<Response<T>, Status> {
    Err(refusal(Code::PermissionDenied, "CALLER_NOT_ALLOWED"))
}

#[tonic::async_trait]
impl ReceiptService for FakeReceiptStore {
    async fn get_receipt(
        &self,
        request: Request<wire::GetReceiptRequest>,
    ) -> Result<Response<wire::GetReceiptResponse>, Status> {
        self.faults.before(&request)?;
        let message = request.into_inner();
        check_caller(&message.tenant, "any")?;
        let lie = self.lie.lock().unwrap().take();
        let found = lie.or_else(|| self.recorded(&message.tenant, &message.receipt_ref));
        // The gateway is shown nothing but what it asks for on behalf of somebody.
        assert!(message.actor.is_some_and(|actor| !actor.is_empty()));
        let found = found.ok_or_else(|| refusal(Code::NotFound, "RECEIPT_NOT_FOUND"))?;
        self.faults.after()?;
        Ok(Response::new(wire::GetReceiptResponse {
            receipt: Some(found),
            ..wire::GetReceiptResponse::default()
        }))
    }

    async fn preflight(
        &self,
        _: Request<wire::PreflightRequest>,
    ) -> Result<Response<wire::PreflightResponse>, Status> {
        not_for_the_gateway()
    }

    async fn append(
        &self,
        _: Request<wire::AppendRequest>,
    ) -> Result<Response<wire::AppendResponse>, Status> {
        not_for_the_gateway()
    }

    async fn begin(
        &self,
        _: Request<wire::BeginRequest>,
    ) -> Result<Response<wire::BeginResponse>, Status> {
        not_for_the_gateway()
    }

    async fn complete(
        &self,
        _: Request<wire::CompleteRequest>,
    ) -> Result<Response<wire::CompleteResponse>, Status> {
        not_for_the_gateway()
    }

    async fn list_open(
        &self,
        _: Request<wire::ListOpenRequest>,
    ) -> Result<Response<wire::ListOpenResponse>, Status> {
        not_for_the_gateway()
    }

    async fn list_receipts(
        &self,
        _: Request<wire::ListReceiptsRequest>,
    ) -> Result<Response<wire::ListReceiptsResponse>, Status> {
        not_for_the_gateway()
    }

    async fn verify_log(
        &self,
        _: Request<wire::VerifyLogRequest>,
    ) -> Result<Response<wire::VerifyLogResponse>, Status> {
        not_for_the_gateway()
    }
}
