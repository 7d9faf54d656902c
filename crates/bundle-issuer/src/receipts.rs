//! The receipt store, as the issuer needs it.

use cl_host::client::PeerChannel;
use cl_model::operation::TenantName;
use cl_model::urn::ReceiptId;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::{AppendRequest, ConsumerReceipt, LogEntry, PreflightRequest, Routing};
use tonic::{Code, Status};

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
    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), NotWritten>;

    /// Makes a receipt of the issuer's own durable, and tells its id.
    async fn append(&self, entry: &OutboxEntry) -> Result<ReceiptId, NotWritten>;

    /// Makes a receipt that a consumer made durable.
    async fn append_consumers(
        &self,
        routing: Routing,
        receipt: ConsumerReceipt,
    ) -> Result<LogEntry, NotWritten>;
}

/// The receipt store did not confirm a receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receipt store did not confirm: {code:?}")]
pub struct NotWritten {
    /// How the call ended.
    pub code: Code,
    /// The stable code that the store gave, if any.
    pub reason: Option<String>,
}

impl NotWritten {
    fn without_reason(code: Code) -> Self {
        Self { code, reason: None }
    }

    /// Whether the receipt was written, and erased since.
    pub fn is_erased(&self) -> bool {
        self.code == Code::NotFound && self.reason.as_deref() == Some("RECEIPT_ERASED")
    }
}

impl From<Status> for NotWritten {
    fn from(status: Status) -> Self {
        Self {
            code: status.code(),
            reason: cl_wire::status::reason(&status),
        }
    }
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

    async fn append_body(&self, routing: Routing, body: Body) -> Result<LogEntry, NotWritten> {
        let request = AppendRequest {
            routing: Some(routing),
            body: Some(body),
        };
        let answer = self.client.clone().append(request).await?.into_inner();
        answer
            .entry
            .ok_or(NotWritten::without_reason(Code::DataLoss))
    }
}

#[tonic::async_trait]
impl Receipts for GrpcReceipts {
    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), NotWritten> {
        let request = PreflightRequest {
            tenant: tenant.as_str().to_owned(),
            operations: vec![operation.as_str().to_owned()],
        };
        let answer = self.client.clone().preflight(request).await?;
        if answer.into_inner().ok {
            return Ok(());
        }
        Err(NotWritten::without_reason(Code::Unavailable))
    }

    async fn append(&self, entry: &OutboxEntry) -> Result<ReceiptId, NotWritten> {
        let routing = Routing {
            tenant: entry.tenant.as_str().to_owned(),
            operation_id: entry.operation_id.as_str().to_owned(),
            subject_tag: entry.subject_tag.clone(),
        };
        let body = Body::Members(entry.members.clone());
        let written = self.append_body(routing, body).await?;
        ReceiptId::parse(&written.receipt_ref).ok_or(NotWritten::without_reason(Code::DataLoss))
    }

    async fn append_consumers(
        &self,
        routing: Routing,
        receipt: ConsumerReceipt,
    ) -> Result<LogEntry, NotWritten> {
        let body = Body::ConsumerReceipt(receipt);
        self.append_body(routing, body).await
    }
}
