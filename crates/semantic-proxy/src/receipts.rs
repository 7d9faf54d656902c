//! The receipt store, as the proxy needs it.

use cl_host::client::PeerChannel;
use cl_model::time::UnixTime;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::{self as wire, BeginRequest, CompleteRequest, ListOpenRequest};
use cl_wire::time;
use cl_wire::unconfirmed::Unconfirmed;
use tonic::Code;

use crate::core::evidence::Routing;

/// The most intents that one look returns.
const PAGE: u32 = 100;

/// The port to the receipt store.
///
/// **Durable when?** When [`begin`](Self::begin) or [`complete`](Self::complete) has returned `Ok`.
///
/// **Who retries?** The caller; both are idempotent by operation id.
#[tonic::async_trait]
pub trait Receipts: Send + Sync {
    /// Makes the intent to project durable.
    async fn begin(
        &self,
        routing: &Routing,
        members: Vec<u8>,
        deadline: UnixTime,
    ) -> Result<(), Unconfirmed>;

    /// Makes the receipt of a begun projection durable.
    async fn complete(&self, routing: wire::Routing, members: Vec<u8>) -> Result<(), Unconfirmed>;

    /// Own intents that are not settled, earliest deadline first.
    async fn open(&self) -> Result<Vec<wire::Intent>, Unconfirmed>;
}

impl From<&Routing> for wire::Routing {
    fn from(routing: &Routing) -> Self {
        Self {
            tenant: routing.tenant.as_str().to_owned(),
            operation_id: routing.operation_id.as_str().to_owned(),
            subject_tag: Some(routing.subject_tag.clone()),
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
}

#[tonic::async_trait]
impl Receipts for GrpcReceipts {
    async fn begin(
        &self,
        routing: &Routing,
        members: Vec<u8>,
        deadline: UnixTime,
    ) -> Result<(), Unconfirmed> {
        let request = BeginRequest {
            routing: Some(routing.into()),
            deadline: Some(time::to_message(deadline)),
            members,
        };
        self.client.clone().begin(request).await?;
        Ok(())
    }

    async fn complete(&self, routing: wire::Routing, members: Vec<u8>) -> Result<(), Unconfirmed> {
        let request = CompleteRequest {
            routing: Some(routing),
            members,
        };
        let answer = self.client.clone().complete(request).await?;
        if answer.into_inner().entry.is_some() {
            return Ok(());
        }
        Err(Unconfirmed::without_reason(Code::DataLoss))
    }

    async fn open(&self) -> Result<Vec<wire::Intent>, Unconfirmed> {
        let request = ListOpenRequest {
            page_size: PAGE,
            page_token: String::new(),
        };
        Ok(self
            .client
            .clone()
            .list_open(request)
            .await?
            .into_inner()
            .intents)
    }
}
