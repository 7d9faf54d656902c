//! Whom deletions are told to.

use cl_host::client::PeerChannel;
use cl_wire::bundle::v1::RevokeBundlesRequest;
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use cl_wire::bundle::v1::revoke_bundles_request::Target as WireTarget;
use cl_wire::unconfirmed::Unconfirmed;
use tonic::Code;

use crate::store::{Notice, Party, Target};

/// The port to those who act on a deletion.
///
/// **Who retries?** The caller, as often as it likes: a notice carries its own operation id, and a
/// repeat of one that arrived changes nothing.
#[tonic::async_trait]
pub trait Notices: Send + Sync {
    /// Whether there is a way to a party. Notices to others are kept until there is.
    fn reaches(&self, party: Party) -> bool;

    /// Delivers a notice to its party, which has acted on it when this returns `Ok`.
    async fn deliver(&self, notice: &Notice) -> Result<(), Unconfirmed>;
}

/// The parties that exist, over gRPC.
#[derive(Clone, Debug, Default)]
pub struct GrpcNotices {
    bundle_issuer: Option<BundleServiceClient<PeerChannel>>,
}

impl GrpcNotices {
    /// Reaches the bundle issuer over `channel`, if there is one.
    pub fn new(bundle_issuer: Option<PeerChannel>) -> Self {
        Self {
            bundle_issuer: bundle_issuer.map(BundleServiceClient::new),
        }
    }
}

#[tonic::async_trait]
impl Notices for GrpcNotices {
    fn reaches(&self, party: Party) -> bool {
        match party {
            Party::BundleIssuer => self.bundle_issuer.is_some(),
            Party::PolicyEngine | Party::DiscoveryProxy | Party::ReceiptStore => false,
        }
    }

    async fn deliver(&self, notice: &Notice) -> Result<(), Unconfirmed> {
        let (Some(client), Some(target)) = (&self.bundle_issuer, wire_target(&notice.target))
        else {
            return Err(Unconfirmed::without_reason(Code::Unimplemented));
        };
        let request = RevokeBundlesRequest {
            tenant: notice.tenant.as_str().to_owned(),
            target: Some(target),
            reason: notice.reason.as_str().to_owned(),
            operation_id: format!("urn:cl:operation:{}", notice.id),
        };
        match client.clone().revoke_bundles(request).await {
            Ok(_) => Ok(()),
            Err(status) => Err(status.into()),
        }
    }
}

/// The issuer knows no subject tags.
fn wire_target(target: &Target) -> Option<WireTarget> {
    match target {
        Target::Decision(id) => Some(WireTarget::DecisionRef(id.as_str().to_owned())),
        Target::Alias(alias) => Some(WireTarget::SubjectAlias(alias.as_str().to_owned())),
        Target::Provenance(reference) => {
            Some(WireTarget::ProvenanceRef(reference.as_str().to_owned()))
        }
        Target::SubjectTag(_) => None,
    }
}
