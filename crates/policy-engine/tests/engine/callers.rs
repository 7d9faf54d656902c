//! Every rpc is closed to all but its own callers.

use cl_testbed::{refusal, refused};
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::approval_service_client::ApprovalServiceClient;
use cl_wire::policy::v1::approver_admin_service_client::ApproverAdminServiceClient;
use cl_wire::policy::v1::policy_admin_service_client::PolicyAdminServiceClient;
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::policy::v1::{
    ActivateSnapshotRequest, GetRequestRequest, GetSnapshotRequest, ListSnapshotsRequest,
    PutSnapshotRequest, ReplayDecisionRequest, SubmitRequestRequest,
};
use tonic::Code;

use crate::support::World;

#[tokio::test]
async fn refuses_the_wrong_caller_on_every_rpc() {
    let world = World::new().await;
    let running = world.start().await;
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    for (path, is_gateway, is_operator) in [
        ("edge/cl-console", false, false),
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
            refusal(
                admin
                    .list_recorded_decisions(wire::ListRecordedDecisionsRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .explain_decision(wire::ExplainDecisionRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .simulate_snapshot(wire::SimulateSnapshotRequest::default())
                    .await,
            ),
            refusal(admin.set_shadow(wire::SetShadowRequest::default()).await),
            refusal(
                admin
                    .clear_shadow(wire::ClearShadowRequest::default())
                    .await,
            ),
            refusal(admin.get_shadow(wire::GetShadowRequest::default()).await),
            refusal(
                admin
                    .set_anomaly_state(wire::SetAnomalyStateRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .clear_anomaly_state(wire::ClearAnomalyStateRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .list_anomaly_states(wire::ListAnomalyStatesRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .set_delegation(wire::SetDelegationRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .revoke_delegation(wire::RevokeDelegationRequest::default())
                    .await,
            ),
            refusal(
                admin
                    .list_delegations(wire::ListDelegationsRequest::default())
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

#[tokio::test]
async fn only_the_console_and_operators_meet_people() {
    let world = World::new().await;
    let running = world.start().await;
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    for (path, is_console, is_operator) in [
        ("edge/cl-console", true, false),
        ("operator/ann", false, true),
        ("edge/cl-gateway", false, false),
        ("edge/cl-surface", false, false),
        ("exchange/cl-console", false, false),
        ("client/acme/agent", false, false),
        ("owner/acme", false, false),
    ] {
        let channel = running.serving.channel(world.authority.credentials(path));
        let mut approvals = ApprovalServiceClient::new(channel.clone());
        let mut approvers = ApproverAdminServiceClient::new(channel.clone());
        let mut policy = PolicyServiceClient::new(channel);
        let for_console = [
            refusal(
                approvals
                    .finish_sign_in(wire::FinishSignInRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .end_session(wire::EndSessionRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .begin_enrolment(wire::BeginEnrolmentRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .finish_enrolment(wire::FinishEnrolmentRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .list_pending_approvals(wire::ListPendingApprovalsRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .get_pending_approval(wire::GetPendingApprovalRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .begin_answer(wire::BeginAnswerRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .finish_answer(wire::FinishAnswerRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .list_decisions(wire::ListDecisionsRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .get_decision(wire::GetDecisionRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .explain_decision(wire::ApprovalServiceExplainDecisionRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .revoke_grant(wire::RevokeGrantRequest::default())
                    .await,
            ),
            refusal(
                approvals
                    .list_subjects(wire::ListSubjectsRequest::default())
                    .await,
            ),
        ];
        let for_operators = [
            refusal(
                approvers
                    .open_enrolment(wire::OpenEnrolmentRequest::default())
                    .await,
            ),
            refusal(
                approvers
                    .list_credentials(wire::ListCredentialsRequest::default())
                    .await,
            ),
            refusal(
                approvers
                    .confirm_credential(wire::ConfirmCredentialRequest::default())
                    .await,
            ),
            refusal(
                approvers
                    .revoke_credential(wire::RevokeCredentialRequest::default())
                    .await,
            ),
            refusal(
                approvers
                    .get_approval(wire::GetApprovalRequest::default())
                    .await,
            ),
        ];
        let expected = |is_allowed| if is_allowed { &invalid } else { &not_allowed };
        for found in &for_console {
            assert_eq!(found, expected(is_console), "{path}");
        }
        for found in &for_operators {
            assert_eq!(found, expected(is_operator), "{path}");
        }
        let sign_in = approvals.begin_sign_in(wire::BeginSignInRequest {}).await;
        assert_eq!(sign_in.is_ok(), is_console, "{path}");
        let watch = policy
            .watch_request(wire::WatchRequestRequest::default())
            .await;
        assert_eq!(
            refusal(watch),
            *expected(path == "edge/cl-gateway"),
            "{path}"
        );
    }
}
