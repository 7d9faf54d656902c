//! The semantic proxy, as the issuer needs it.

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_wire::grant::REFUSALS;
use cl_wire::semantic::v1::semantic_proxy_service_client::SemanticProxyServiceClient;
use cl_wire::semantic::v1::{ProjectClaimsRequest, ProjectClaimsResponse};
use tonic::{Code, Request, Status};

/// The port to the semantic proxy.
///
/// **Who retries?** The caller: a repeat projects again, and leaves other receipts.
#[tonic::async_trait]
pub trait Proxy: Send + Sync {
    /// Projects what a grant allows.
    async fn project(
        &self,
        request: ProjectClaimsRequest,
        deadline: Option<Deadline>,
    ) -> Result<ProjectClaimsResponse, Status>;
}

/// The proxy over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcProxy {
    client: SemanticProxyServiceClient<PeerChannel>,
}

impl GrpcProxy {
    /// Calls the proxy over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: SemanticProxyServiceClient::new(channel),
        }
    }
}

#[tonic::async_trait]
impl Proxy for GrpcProxy {
    async fn project(
        &self,
        request: ProjectClaimsRequest,
        deadline: Option<Deadline>,
    ) -> Result<ProjectClaimsResponse, Status> {
        let mut request = Request::new(request);
        if let Some(deadline) = deadline {
            deadline.limit(&mut request);
        }
        Ok(self
            .client
            .clone()
            .project_claims(request)
            .await?
            .into_inner())
    }
}

/// Why the proxy gave no items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyRefusal {
    /// It does not accept the grant.
    #[error("the proxy refused the grant: {0}")]
    Grant(&'static str),
    /// Nothing may ever leave under the grant.
    #[error("nothing may leave: {0}")]
    Final(&'static str),
    /// It, or the vault behind it, is away.
    #[error("the proxy failed: {0}")]
    Unavailable(&'static str),
}

const FINAL_CODES: [&str; 5] = [
    "DISCLOSURE_LEAK",
    "PREDICATE_NOT_REGISTERED",
    "VALUE_NOT_OF_DATATYPE",
    "TOO_MANY_CLAIMS",
    "VAULT_ANSWER_INVALID",
];

const PASSING_CODES: [&str; 2] = ["VAULT_UNAVAILABLE", "RECEIPT_STORE_UNAVAILABLE"];

impl ProxyRefusal {
    /// What a status of the proxy's means here. Only codes that this process knows are passed on;
    /// anything else is a proxy that failed.
    pub fn of(status: &Status) -> Self {
        let reason = cl_wire::status::reason(status).unwrap_or_default();
        let known = |codes: &'static [&'static str]| {
            let mut codes = codes.iter().copied();
            codes.find(|code| *code == reason)
        };
        let refusal = if status.code() == Code::PermissionDenied {
            known(&REFUSALS).map(Self::Grant)
        } else if status.code() == Code::FailedPrecondition {
            known(&FINAL_CODES).map(Self::Final)
        } else if status.code() == Code::Unavailable {
            known(&PASSING_CODES).map(Self::Unavailable)
        } else {
            None
        };
        refusal.unwrap_or(Self::Unavailable("SEMANTIC_PROXY_UNAVAILABLE"))
    }
}
