//! Every rpc is closed to all but its own callers.

use cl_wire::policy::v1::policy_admin_service_client::PolicyAdminServiceClient;
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::policy::v1::{
    ActivateSnapshotRequest, GetRequestRequest, GetSnapshotRequest, ListSnapshotsRequest,
    PutSnapshotRequest, ReplayDecisionRequest, SubmitRequestRequest,
};
use tonic::Code;

use crate::support::{World, refusal, refused};

#[tokio::test]
async fn refuses_the_wrong_caller_on_every_rpc() {
    let world = World::new().await;
    let running = world.start().await;
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    for (path, is_gateway, is_operator) in [
        ("edge/cl-gateway", true, false),
        ("operator/ann", false, true),
        ("operator/acme/ann", false, false),
        ("owner/acme", false, false),
        ("client/acme/agent", false, false),
        ("exchange/cl-gateway", false, false),
        ("exchange/cl-bundle-issuer", false, false),
        ("exchange/cl-policy-engine", false, false),
    ] {
        let channel = running.serving.channel(world.authority.credentials(path));
        let mut policy = PolicyServiceClient::new(channel.clone());
        let mut admin = PolicyAdminServiceClient::new(channel);
        let for_gateway = [
            refusal(policy.submit_request(SubmitRequestRequest::default()).await),
            refusal(policy.get_request(GetRequestRequest::default()).await),
        ];
        let for_operators = [
            refusal(admin.put_snapshot(PutSnapshotRequest::default()).await),
            refusal(admin.get_snapshot(GetSnapshotRequest::default()).await),
            refusal(admin.list_snapshots(ListSnapshotsRequest::default()).await),
            refusal(
                admin
                    .activate_snapshot(ActivateSnapshotRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .replay_decision(ReplayDecisionRequest::default())
                    .await,
            ),
        ];
        let gateway_is_refused = for_gateway.iter().all(|found| *found == not_allowed);
        let operator_is_refused = for_operators.iter().all(|found| *found == not_allowed);
        assert_eq!(gateway_is_refused, !is_gateway, "{path}");
        assert_eq!(operator_is_refused, !is_operator, "{path}");
        let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
        if is_gateway {
            assert!(for_gateway.iter().all(|found| *found == invalid));
        }
        if is_operator {
            assert!(for_operators.iter().all(|found| *found == invalid));
        }
    }
}
