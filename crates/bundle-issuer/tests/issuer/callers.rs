//! Every rpc is closed to all but its own callers.

use cl_testbed::{refusal, refused};
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use cl_wire::bundle::v1::{
    CheckBundleRequest, IssueBundleRequest, RecordConsumerReceiptRequest, RedeemBundleRequest,
    RevokeBundlesRequest,
};
use tonic::Code;

use crate::support::World;

#[tokio::test]
async fn refuses_the_wrong_caller_on_every_rpc() {
    let world = World::new().await;
    let running = world.start().await;
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    for (path, may_issue, is_gateway, may_revoke) in [
        ("exchange/cl-policy-engine", true, false, true),
        ("edge/cl-gateway", false, true, false),
        ("vault/cl-vault", false, false, true),
        ("operator/ann", false, false, true),
        ("operator/acme/ann", false, false, false),
        ("exchange/cl-semantic-proxy", false, false, false),
        ("exchange/cl-bundle-issuer", false, false, false),
        ("exchange/cl-gateway", false, false, false),
        ("edge/cl-policy-engine", false, false, false),
        ("edge/cl-console", false, false, false),
        ("owner/acme", false, false, false),
        ("client/acme/agent", false, false, false),
    ] {
        let channel = running
            .serving
            .channel(world.peers.authority.credentials(path));
        let mut client = BundleServiceClient::new(channel);
        let expected = |may| {
            if may {
                invalid.clone()
            } else {
                not_allowed.clone()
            }
        };
        let issue = client.issue_bundle(IssueBundleRequest::default()).await;
        assert_eq!(refusal(issue), expected(may_issue), "{path}");
        let redeem = client.redeem_bundle(RedeemBundleRequest::default()).await;
        assert_eq!(refusal(redeem), expected(is_gateway), "{path}");
        let check = client.check_bundle(CheckBundleRequest::default()).await;
        assert_eq!(refusal(check), expected(is_gateway), "{path}");
        let record = RecordConsumerReceiptRequest::default();
        let record = client.record_consumer_receipt(record).await;
        assert_eq!(refusal(record), expected(is_gateway), "{path}");
        let revoke = client.revoke_bundles(RevokeBundlesRequest::default()).await;
        assert_eq!(refusal(revoke), expected(may_revoke), "{path}");
    }
}
