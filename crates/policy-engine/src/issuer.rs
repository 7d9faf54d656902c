//! The bundle issuer, as the engine needs it.

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_model::urn::BundleId;
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use cl_wire::bundle::v1::{IssueBundleRequest, RevokeBundlesRequest};
use tonic::{Code, Request, Status};

/// The port to the bundle issuer.
///
/// **Who retries?** The caller: a repeat for the same decision returns the same bundle.
#[tonic::async_trait]
pub trait Issuer: Send + Sync {
    /// Has the bundle of a decision issued, within a time.
    async fn issue(
        &self,
        request: IssueBundleRequest,
        time: Duration,
    ) -> Result<BundleId, NotIssued>;

    /// Has the bundle of a decision ended, within a time, also one that is not issued yet. Says how
    /// the call ended if the issuer does not confirm.
    async fn revoke(&self, request: RevokeBundlesRequest, time: Duration) -> Result<(), Code>;
}

/// Why there is no bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotIssued {
    /// There never will be one, for this reason.
    #[error("no bundle can be issued: {0}")]
    Never(String),
    /// It is worth another try.
    #[error("no bundle yet: {code:?}")]
    NotYet {
        /// How the call ended.
        code: Code,
        /// The stable code that the issuer gave, if any.
        reason: Option<String>,
    },
}

impl From<Status> for NotIssued {
    fn from(status: Status) -> Self {
        let (code, reason) = (status.code(), cl_wire::status::reason(&status));
        // Clocks that differ, a trust file or a caller table that is not everywhere yet: such
        // refusals pass, and the request is asked for again until its decision ends.
        let has_ended = reason.as_deref() == Some("GRANT_EXPIRED");
        let is_final = code == Code::FailedPrecondition || has_ended;
        match reason {
            Some(reason) if is_final => Self::Never(reason),
            reason => Self::NotYet { code, reason },
        }
    }
}

/// The bundle issuer over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcIssuer {
    client: BundleServiceClient<PeerChannel>,
}

impl GrpcIssuer {
    /// Calls the issuer over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: BundleServiceClient::new(channel),
        }
    }
}

#[tonic::async_trait]
impl Issuer for GrpcIssuer {
    async fn issue(
        &self,
        request: IssueBundleRequest,
        time: Duration,
    ) -> Result<BundleId, NotIssued> {
        let mut request = Request::new(request);
        request.set_timeout(time);
        let answer = self
            .client
            .clone()
            .issue_bundle(request)
            .await?
            .into_inner();
        BundleId::parse(&answer.bundle_ref).ok_or(NotIssued::NotYet {
            code: Code::DataLoss,
            reason: None,
        })
    }

    async fn revoke(&self, request: RevokeBundlesRequest, time: Duration) -> Result<(), Code> {
        let mut request = Request::new(request);
        request.set_timeout(time);
        let answer = self.client.clone().revoke_bundles(request).await;
        answer.map(|_| ()).map_err(|status| status.code())
    }
}
