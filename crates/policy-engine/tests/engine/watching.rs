//! Following a request until it is final.

use cl_testbed::{refusal, refused, within};
use cl_wire::policy::v1::{RequestState, WatchRequestRequest, WatchRequestResponse};
use tonic::{Code, Streaming};

use crate::documents::{TENANT, facts, gated, request};
use crate::people::{OWNER, grant_all};
use crate::support::{Running, World};

async fn watch(
    running: &Running,
    request_ref: &str,
) -> Result<Streaming<WatchRequestResponse>, tonic::Status> {
    let message = WatchRequestRequest {
        tenant: TENANT.to_owned(),
        request_ref: request_ref.to_owned(),
        facts: Some(facts()),
    };
    let mut policy = running.policy.clone();
    let answer = within("a watch", policy.watch_request(message)).await?;
    Ok(answer.into_inner())
}

async fn next(stream: &mut Streaming<WatchRequestResponse>) -> Option<RequestState> {
    let message = within("a change", stream.message()).await.unwrap()?;
    Some(message.status.unwrap().state())
}

#[tokio::test]
async fn a_watch_tells_each_change_until_the_request_is_final() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let mut stream = watch(&running, "urn:cl:request:r1").await.unwrap();
    assert_eq!(next(&mut stream).await, Some(RequestState::PendingApproval));
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    running.answer(&person, answer, 2).await.unwrap();
    let mut seen = Vec::new();
    while let Some(state) = next(&mut stream).await {
        seen.push(state);
    }
    // Between decided and issued, a look may come too late for the first.
    assert_eq!(seen.last(), Some(&RequestState::Issued));
    let mut again = watch(&running, "urn:cl:request:r1").await.unwrap();
    assert_eq!(next(&mut again).await, Some(RequestState::Issued));
    assert_eq!(next(&mut again).await, None);
}

#[tokio::test]
async fn a_watch_tells_what_the_clock_alone_changes() {
    let world = World::new().await;
    let running = world.ready().await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let mut stream = watch(&running, "urn:cl:request:r1").await.unwrap();
    assert_eq!(next(&mut stream).await, Some(RequestState::PendingApproval));
    world.clock.advance(480_000);
    assert_eq!(next(&mut stream).await, Some(RequestState::Expired));
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test]
async fn only_the_requester_watches() {
    let world = World::new().await;
    let running = world.ready().await;
    let unknown = watch(&running, "urn:cl:request:none").await;
    assert_eq!(
        refusal(unknown),
        refused(Code::NotFound, "REQUEST_NOT_FOUND")
    );
    running.ask(&request("r1"), 1).await.unwrap();
    let mut other = facts();
    other.principal = "urn:agent:other".to_owned();
    let message = WatchRequestRequest {
        tenant: TENANT.to_owned(),
        request_ref: "urn:cl:request:r1".to_owned(),
        facts: Some(other),
    };
    let answer = running.policy.clone().watch_request(message).await;
    assert_eq!(
        refusal(answer),
        refused(Code::NotFound, "REQUEST_NOT_FOUND")
    );
}

#[tokio::test]
async fn a_watch_ends_with_the_engine() {
    let world = World::new().await;
    let running = world.ready().await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let mut stream = watch(&running, "urn:cl:request:r1").await.unwrap();
    assert_eq!(next(&mut stream).await, Some(RequestState::PendingApproval));
    running.end().await;
    // Ended in order: not by the deadline of the drain.
    assert_eq!(next(&mut stream).await, None);
}
