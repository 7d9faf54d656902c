//! Every rpc is closed to all but its own callers.

use cl_testbed::{refusal, refused};
use cl_wire::vault::v1::capture_service_client::CaptureServiceClient;
use cl_wire::vault::v1::memory_service_client::MemoryServiceClient;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use cl_wire::vault::v1::vault_service_client::VaultServiceClient;
use cl_wire::vault::v1::{
    CaptureEventsRequest, EraseEventRequest, EraseSubjectRequest, ExplainClaimRequest,
    ListClaimsRequest, ListEventsRequest, ResolveClaimsRequest, StorePayloadRequest,
    SubmitProposalRequest,
};
use tonic::Code;

use crate::documents::{SUBJECT, TENANT, operation};
use crate::support::World;

#[tokio::test]
async fn refuses_the_wrong_caller_on_every_rpc() {
    let world = World::new().await;
    let running = world.start().await;
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    for (path, opens) in [
        ("exchange/cl-semantic-proxy", "proxy"),
        ("vault/cl-capture", "capture"),
        ("owner/acme", "owner"),
        ("edge/cl-gateway", "gateway"),
        ("operator/ann", ""),
        ("owner/acme/ann", ""),
        ("client/acme/agent", ""),
        ("vault/cl-vault", ""),
        ("exchange/cl-policy-engine", ""),
        ("exchange/cl-bundle-issuer", ""),
        ("edge/cl-console", ""),
    ] {
        let channel = running.serving.channel(world.authority.credentials(path));
        let mut proxy = VaultServiceClient::new(channel.clone());
        let mut capture = CaptureServiceClient::new(channel.clone());
        let mut owner = OwnerServiceClient::new(channel.clone());
        let mut gateway = MemoryServiceClient::new(channel);
        let nothing = tokio_stream::iter([StorePayloadRequest::default()]);
        let answers = [
            (
                "proxy",
                refusal(proxy.resolve_claims(ResolveClaimsRequest::default()).await),
            ),
            (
                "capture",
                refusal(
                    capture
                        .capture_events(CaptureEventsRequest::default())
                        .await,
                ),
            ),
            ("capture", refusal(capture.store_payload(nothing).await)),
            (
                "owner",
                refusal(owner.list_events(ListEventsRequest::default()).await),
            ),
            (
                "owner",
                refusal(owner.list_claims(ListClaimsRequest::default()).await),
            ),
            (
                "owner",
                refusal(owner.explain_claim(ExplainClaimRequest::default()).await),
            ),
            (
                "owner",
                refusal(owner.erase_subject(EraseSubjectRequest::default()).await),
            ),
            (
                "owner",
                refusal(owner.erase_event(EraseEventRequest::default()).await),
            ),
            (
                "gateway",
                refusal(
                    gateway
                        .submit_proposal(SubmitProposalRequest::default())
                        .await,
                ),
            ),
        ];
        let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
        for (of, answer) in answers {
            let expected = if of == opens { &invalid } else { &not_allowed };
            assert_eq!(answer, *expected, "{path} at {of}");
        }
    }
}

#[tokio::test]
async fn an_owner_has_no_way_to_another_tenant() {
    let world = World::new().await;
    let running = world.start().await;
    let channel = running
        .serving
        .channel(world.authority.credentials("owner/globex"));
    let mut owner = OwnerServiceClient::new(channel);
    let (tenant, subject_ref) = (TENANT.to_owned(), SUBJECT.to_owned());
    let events = ListEventsRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        ..ListEventsRequest::default()
    };
    let claims = ListClaimsRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        ..ListClaimsRequest::default()
    };
    let explanation = ExplainClaimRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        claim_ref: "urn:cl:claim:a".to_owned(),
    };
    let subject = EraseSubjectRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        operation_id: operation(1),
    };
    let event = EraseEventRequest {
        tenant,
        subject_ref,
        event_ref: "urn:cl:event:a".to_owned(),
        operation_id: operation(1),
    };
    let answers = [
        refusal(owner.list_events(events).await),
        refusal(owner.list_claims(claims).await),
        refusal(owner.explain_claim(explanation).await),
        refusal(owner.erase_subject(subject).await),
        refusal(owner.erase_event(event).await),
    ];
    for answer in answers {
        assert_eq!(
            answer,
            refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED")
        );
    }
}
