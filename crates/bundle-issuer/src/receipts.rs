//! The receipt store, as the issuer needs it.

use cl_host::client::PeerChannel;
use cl_model::operation::TenantName;
use cl_model::urn::ReceiptId;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::{AppendRequest, ConsumerReceipt, LogEntry, PreflightRequest, Routing};
use cl_wire::unconfirmed::Unconfirmed;
use tonic::Code;

use crate::core::evidence::Operation;
use crate::store::OutboxEntry;

/// The port to the receipt store.
///
/// **Durable when?** When an append has returned `Ok`.
///
/// **Who retries?** The caller, as often as it likes: an append is idempotent by operation id, so
/// one that failed may have been written, and a repeat writes nothing twice.
#[tonic::async_trait]
pub trait Receipts: Send + Sync {
    /// Whether the store would take a receipt of the operation now. It reserves nothing.
    async fn preflight(&self, tenant: &TenantName, operation: Operation)
    -> Result<(), Unconfirmed>;

    /// Makes a receipt of the issuer's own durable, and tells its id.
    async fn append(&self, entry: &OutboxEntry) -> Result<ReceiptId, Unconfirmed>;

    /// Makes a receipt that a consumer made durable.
    async fn append_consumers(
        &self,
        routing: Routing,
        receipt: ConsumerReceipt,
    ) -> Result<LogEntry, Unconfirmed>;
}

/// The receipt store over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcReceipts {
    client: ReceiptServiceClient<PeerChannel>,
}

impl GrpcReceipts {
    /// Calls the store over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: ReceiptServiceClient::new(channel),
        }
    }

    async fn append_body(&self, routing: Routing, body: Body) -> Result<LogEntry, Unconfirmed> {
        let request = AppendRequest {
            routing: Some(routing),
            body: Some(body),
        };
        let answer = self.client.clone().append(request).await?.into_inner();
        answer
            .entry
            .ok_or(Unconfirmed::without_reason(Code::DataLoss))
    }
}

#[tonic::async_trait]
impl Receipts for GrpcReceipts {
    async fn preflight(
        &self,
        tenant: &TenantName,
        operation: Operation,
    ) -> Result<(), Unconfirmed> {
        let request = PreflightRequest {
            tenant: tenant.as_str().to_owned(),
            operations: vec![operation.as_str().to_owned()],
        };
        let answer = self.client.clone().preflight(request).await?;
        if answer.into_inner().ok {
            return Ok(());
        }
        Err(Unconfirmed::without_reason(Code::Unavailable))
    }

    async fn append(&self, entry: &OutboxEntry) -> Result<ReceiptId, Unconfirmed> {
        let routing = Routing {
            tenant: entry.tenant.as_str().to_owned(),
            operation_id: entry.operation_id.as_str().to_owned(),
            subject_tag: entry.subject_tag.clone(),
        };
        let body = Body::Members(entry.members.clone());
        let written = self.append_body(routing, body).await?;
        ReceiptId::parse(&written.receipt_ref).ok_or(Unconfirmed::without_reason(Code::DataLoss))
    }

    async fn append_consumers(
        &self,
        routing: Routing,
        receipt: ConsumerReceipt,
    ) -> Result<LogEntry, Unconfirmed> {
        let body = Body::ConsumerReceipt(receipt);
        self.append_body(routing, body).await
    }
}
