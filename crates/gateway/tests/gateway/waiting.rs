//! Waiting for a person: by preference over HTTP, by a field or a stream over gRPC.

use cl_testbed::{eventually, within};
use cl_wire::exchange::v1 as exchange;
use cl_wire::policy::v1::RequestState;
use tonic::Code;

use crate::client::Call;
use crate::documents::{canonical_bytes, request};
use crate::engine::stands;
use crate::support::{Running, World};

/// Changes every request once somebody follows one.
async fn change_when_followed(world: &World, state: RequestState) {
    eventually("a follower", || world.engine.watchers() > 0).await;
    world.engine.turn_all(&stands(state));
}

fn grpc(
    world: &World,
    gateway: &Running,
) -> exchange::exchange_service_client::ExchangeServiceClient<cl_host::client::PeerChannel> {
    let path = "client/acme/robot";
    gateway.exchange(world.authority.credentials(path))
}

#[tokio::test]
async fn a_submission_waits_as_long_as_its_caller_prefers() {
    let world = World::new().await;
    let gateway = world.start().await;
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let call = Call::submit(request("r1").to_string()).header("prefer", "wait=50");
    let (answer, ()) = tokio::join!(
        gateway.call(call),
        change_when_followed(&world, RequestState::Decided),
    );
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("context-layer-state"), Some("decided"));
    assert_eq!(answer.header("preference-applied"), Some("wait=50"));

    // In vain, and without the preference: what is known.
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let call = Call::submit(request("r2").to_string()).header("prefer", "wait=1");
    let answer = gateway.call(call).await;
    assert_eq!(answer.status, 202);
    assert!(answer.header("retry-after").is_some());
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let answer = gateway.submit(&request("r3")).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.header("preference-applied"), None);
}

#[tokio::test]
async fn a_read_waits_and_knows_what_a_person_took_back() {
    let world = World::new().await;
    let gateway = world.start().await;
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    gateway.submit(&request("r1")).await;
    let call = Call::read("urn:cl:request:r1").header("prefer", "respond-async, wait=100");
    let (answer, ()) = tokio::join!(
        gateway.call(call),
        change_when_followed(&world, RequestState::Revoked),
    );
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("context-layer-state"), Some("revoked"));
    assert_eq!(answer.header("preference-applied"), Some("wait=60"));
    // Final at once.
    let call = Call::read("urn:cl:request:r1").header("prefer", "wait=60");
    let answer = within("a final state", gateway.call(call)).await;
    assert_eq!(answer.header("context-layer-state"), Some("revoked"));
}

#[tokio::test]
async fn grpc_calls_wait_within_bounds() {
    let world = World::new().await;
    let gateway = world.start().await;
    let mut robot = grpc(&world, &gateway);
    let mut document = request("r1");
    document["id"] = "urn:cl:request:r1".into();
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let message = exchange::SubmitRequestRequest {
        request: canonical_bytes(&document),
        idempotency_key: None,
        wait_seconds: 50,
    };
    let (answer, ()) = tokio::join!(
        robot.submit_request(message.clone()),
        change_when_followed(&world, RequestState::Expired),
    );
    let status = answer.unwrap().into_inner().status.unwrap();
    assert_eq!(status.state(), exchange::RequestState::Expired);
    let too_long = exchange::SubmitRequestRequest {
        wait_seconds: 61,
        ..message
    };
    let refused = robot.submit_request(too_long).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let too_long = exchange::GetRequestRequest {
        request_ref: "urn:cl:request:r1".to_owned(),
        wait_seconds: 61,
    };
    let refused = robot.get_request(too_long).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_stream_tells_each_change_and_ends_with_the_gateway() {
    let world = World::new().await;
    let gateway = world.start().await;
    let mut robot = grpc(&world, &gateway);
    let watch = |id: &str| exchange::WatchRequestRequest {
        request_ref: id.to_owned(),
    };
    let unknown = robot.watch_request(watch("urn:cl:request:r1")).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
    let nonsense = robot.watch_request(watch("r1")).await;
    assert_eq!(nonsense.unwrap_err().code(), Code::InvalidArgument);
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let message = exchange::SubmitRequestRequest {
        request: canonical_bytes(&request("r1")),
        idempotency_key: None,
        wait_seconds: 0,
    };
    robot.submit_request(message).await.unwrap();
    let stream = robot.watch_request(watch("urn:cl:request:r1")).await;
    let mut stream = stream.unwrap().into_inner();
    let mut seen = Vec::new();
    for next in [RequestState::Decided, RequestState::Revoked] {
        let message = within("a change", stream.message()).await.unwrap().unwrap();
        seen.push(message.status.unwrap().state());
        world.engine.turn_all(&stands(next));
    }
    let message = within("a change", stream.message()).await.unwrap().unwrap();
    seen.push(message.status.unwrap().state());
    assert_eq!(
        seen,
        [
            exchange::RequestState::PendingApproval,
            exchange::RequestState::Decided,
            exchange::RequestState::Revoked,
        ]
    );
    gateway.end().await;
    assert!(within("the end", stream.message()).await.unwrap().is_none());
}

#[tokio::test]
async fn streams_of_one_caller_are_bounded() {
    let world = World::new().await;
    let gateway = world.start().await;
    let mut robot = grpc(&world, &gateway);
    world
        .engine
        .decide_next(stands(RequestState::PendingApproval));
    let message = exchange::SubmitRequestRequest {
        request: canonical_bytes(&request("r1")),
        idempotency_key: None,
        wait_seconds: 0,
    };
    robot.submit_request(message).await.unwrap();
    let watch = exchange::WatchRequestRequest {
        request_ref: "urn:cl:request:r1".to_owned(),
    };
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(
            robot
                .watch_request(watch.clone())
                .await
                .unwrap()
                .into_inner(),
        );
    }
    let refused = robot.watch_request(watch.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    drop(streams);
    within("a place", async {
        while robot.watch_request(watch.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    eventually("nobody else follows", || world.engine.watchers() <= 1).await;
}
