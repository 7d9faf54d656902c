//! The receipt store, as the engine needs it.

use cl_host::client::PeerChannel;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::{AppendRequest, PreflightRequest, Routing};
use cl_wire::unconfirmed::Unconfirmed;
use tonic::Code;

use crate::core::evidence::Operation;
use crate::core::operation::TenantName;
use crate::store::OutboxEntry;

/// The port to the receipt store.
///
/// **Durable when?** When [`append`](Self::append) has returned `Ok`.
///
/// **Who retries?** The caller, as often as it likes: an append is idempotent by operation id, so
/// one that failed may have been written, and a repeat writes nothing twice.
#[tonic::async_trait]
pub trait Receipts: Send + Sync {
    /// Whether the store would take a receipt of the operation now. It reserves nothing.
    async fn preflight(&self, tenant: &TenantName, operation: Operation)
    -> Result<(), Unconfirmed>;

    /// Makes a receipt durable.
    async fn append(&self, entry: &OutboxEntry) -> Result<(), Unconfirmed>;
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

    async fn append(&self, entry: &OutboxEntry) -> Result<(), Unconfirmed> {
        let request = AppendRequest {
            routing: Some(Routing {
                tenant: entry.tenant.as_str().to_owned(),
                operation_id: entry.operation_id.as_str().to_owned(),
                subject_tag: entry.subject_tag.clone(),
            }),
            body: Some(Body::Members(entry.members.clone())),
        };
        let answer = self.client.clone().append(request).await?;
        if answer.into_inner().entry.is_some() {
            return Ok(());
        }
        Err(Unconfirmed::without_reason(Code::DataLoss))
    }
}
