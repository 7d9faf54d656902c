//! Bundles after decisions: at once, and again after whatever went wrong.

use std::time::Duration;

use cl_testbed::{TURNS, eventually, refusal, refused};
use cl_wire::policy::v1::RequestState;
use serde_json::json;
use tonic::{Code, Request};

use crate::documents::{gated, request, submission};
use crate::support::{Running, World, decision};

async fn eventually_state(running: &Running, tail: &str, state: RequestState) {
    let request = request(tail);
    cl_testbed::within("the state", async {
        while running.look(&request).await.unwrap().state() != state {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_ordinary_answer_already_names_the_bundle() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let status = running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Issued);
    assert_eq!(decision(&status)["decision"], "allow");
    assert!(status.bundle_ref().starts_with("urn:cl:bundle:"));
    assert_eq!(
        (status.failure_code.clone(), status.retry_after_seconds),
        (None, None)
    );
    assert_eq!(running.look(&request("r1")).await.unwrap(), status);
    // The same submission once more asks nobody.
    assert_eq!(running.ask(&request("r1"), 1).await.unwrap(), status);
    assert_eq!(world.issuer.calls().len(), 1);
    // Another one under the same id is refused as ever.
    let mut other = request("r1");
    other["purpose"] = json!("another purpose");
    let conflict = refused(Code::AlreadyExists, "REQUEST_ID_CONFLICT");
    assert_eq!(refusal(running.ask(&other, 2).await), conflict);
    // An issued request does not run out.
    world.clock.advance(3_600_000);
    assert_eq!(running.look(&request("r1")).await.unwrap(), status);
}

#[tokio::test]
async fn nobody_is_asked_for_what_is_not_allowed() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let mut denied = request("r1");
    denied["selectors"] = json!([{"predicate": "somebody_elses"}]);
    let status = running.ask(&denied, 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(status.retry_after_seconds, None);
    let status = running.ask(&gated("r2"), 2).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
    assert!(world.issuer.calls().is_empty());
}

#[tokio::test]
async fn a_refusal_for_good_is_stored_with_its_code() {
    for (code, reason) in [
        (Code::FailedPrecondition, "NO_CONTEXT_GRANTED"),
        (Code::FailedPrecondition, "DISCLOSURE_LEAK"),
        (Code::PermissionDenied, "GRANT_EXPIRED"),
    ] {
        let world = World::with_issuer().await;
        let running = world.ready().await;
        world.issuer.set_refusing(Some((code, reason)));
        let status = running.ask(&request("r1"), 1).await.unwrap();
        assert_eq!(status.state(), RequestState::Failed);
        assert_eq!(status.failure_code.as_deref(), Some(reason));
        assert_eq!(status.bundle_ref, None);
        world.issuer.set_refusing(None);
        running.kill().await;
        let again = world.start().await;
        assert_eq!(again.ask(&request("r1"), 1).await.unwrap(), status);
        assert_eq!(world.issuer.issued(), 0);
    }
}

#[tokio::test]
async fn an_id_that_no_receipt_could_name_is_refused() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let refused = running.ask(&request(&"r".repeat(500)), 1).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    let status = running.ask(&request(&"r".repeat(497)), 2).await.unwrap();
    assert_eq!(status.state(), RequestState::Issued);
}

#[tokio::test]
async fn what_passes_is_tried_again_without_a_restart() {
    for (code, reason) in [
        (Code::Unavailable, "SEMANTIC_PROXY_UNAVAILABLE"),
        (Code::Aborted, "ISSUE_IN_PROGRESS"),
        (Code::Internal, "INTERNAL"),
        (Code::PermissionDenied, "GRANT_NOT_YET_VALID"),
        (Code::PermissionDenied, "UNTRUSTED_DOCUMENT_KEY"),
        (Code::PermissionDenied, "CALLER_NOT_ALLOWED"),
    ] {
        let world = World::with_issuer().await;
        let running = world.ready().await;
        world.issuer.set_refusing(Some((code, reason)));
        let status = running.ask(&request("r1"), 1).await.unwrap();
        assert_eq!(status.state(), RequestState::Decided);
        assert_eq!(status.retry_after_seconds, Some(1));
        world.issuer.set_refusing(None);
        eventually_state(&running, "r1", RequestState::Issued).await;
        assert_eq!(world.issuer.issued(), 1, "{reason}");
    }
}

#[tokio::test]
async fn a_crash_or_a_lost_answer_leads_to_the_same_bundle() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    world.issuer.set_loses_answers(true);
    let status = running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(world.issuer.issued(), 1);
    running.kill().await;
    world.memory.crash();
    world.issuer.set_loses_answers(false);
    let again = world.start().await;
    eventually_state(&again, "r1", RequestState::Issued).await;
    assert_eq!(world.issuer.issued(), 1);
}

#[tokio::test]
async fn no_bundle_before_the_decision_has_its_receipt() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.ask(&request("r1"), 1).await), unsettled);
    running.kill().await;
    assert!(world.issuer.calls().is_empty());
    world.receipts.set_append_down(false);
    let again = world.start().await;
    eventually_state(&again, "r1", RequestState::Issued).await;
    assert_eq!(world.receipts.of("policy.decide").len(), 1);
}

#[tokio::test]
async fn it_is_given_up_when_the_decision_ends() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let away = Some((Code::Unavailable, "SEMANTIC_PROXY_UNAVAILABLE"));
    world.issuer.set_refusing(away);
    running.ask(&request("r1"), 1).await.unwrap();
    // No call may be on its way when the grant ends: the fake takes no grant that has ended.
    running.kill().await;
    world.clock.advance(3_600_000);
    world.issuer.set_refusing(None);
    let calls = world.issuer.calls().len();
    let again = world.start().await;
    eventually_state(&again, "r1", RequestState::Expired).await;
    let status = again.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Expired);
    assert_eq!(world.issuer.calls().len(), calls);
}

#[tokio::test]
async fn a_slow_issuer_does_not_cost_the_answer() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let turns = world.issuer.gate.clone();
    let held = turns.acquire_many(TURNS).await.unwrap();
    let mut call = Request::new(submission(&request("r1"), 1));
    call.set_timeout(Duration::from_secs(3));
    let answer = running.policy.clone().submit_request(call).await.unwrap();
    let status = answer.into_inner().status.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    drop(held);
    eventually_state(&running, "r1", RequestState::Issued).await;
    let issuer = world.issuer.clone();
    eventually("one bundle", || issuer.issued() == 1).await;
}

#[tokio::test]
async fn without_an_issuer_a_request_stays_decided() {
    let world = World::new().await;
    let running = world.ready().await;
    let status = running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(status.retry_after_seconds, None);
}
