//! Bundles that end between their delivery receipt and their bytes.

use cl_testbed::{Recorded, TURNS, eventually, refusal, refused};
use cl_wire::bundle::v1::BundleState;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use serde_json::Value;
use tonic::Code;

use crate::exchange::{Exchange, operation};
use crate::kept::retention_ms;
use crate::support::{Running, World};

/// The delivery receipt and the one that takes it back.
async fn both(world: &World) -> (Recorded, Recorded) {
    let receipts = world.peers.receipts.clone();
    eventually("the second receipt", || {
        receipts.of("bundle.deliver").len() == 2
    })
    .await;
    let mut both = receipts.of("bundle.deliver");
    let second = both.remove(1);
    (both.remove(0), second)
}

fn takes_back(first: &Recorded, second: &Recorded, code: &str) {
    assert_eq!(first.receipt["outcome"], "success");
    assert_eq!(first.receipt["supersedes_ref"], Value::Null);
    let (first, receipt) = (&first.receipt, &second.receipt);
    assert_eq!(receipt["outcome"], "failure");
    assert_eq!(receipt["supersedes_ref"], first["id"]);
    assert_eq!(receipt["metadata"]["code"], code);
    for member in ["bundle_ref", "decision_ref", "request_ref", "input_digest"] {
        assert_eq!(receipt[member], first[member], "{member}");
    }
    assert!(second.routing.subject_tag.is_some());
}

#[tokio::test]
async fn an_expiry_between_receipt_and_bytes_takes_the_receipt_back() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let before = world.peers.receipts.appends();
    let held = world.peers.receipts.gate.acquire_many(TURNS).await.unwrap();
    let calls = running.calls.clone();
    let redemption = tokio::spawn({
        let bundle_ref = bundle_ref.clone();
        async move { calls.redeem(&bundle_ref, Some("k"), 2).await }
    });
    let receipts = world.peers.receipts.clone();
    eventually("the append", || receipts.appends() > before).await;
    world.clock.advance(300_000);
    drop(held);
    let expired = refused(Code::FailedPrecondition, "BUNDLE_EXPIRED");
    assert_eq!(refusal(redemption.await.unwrap()), expired);
    let (first, second) = both(&world).await;
    takes_back(&first, &second, "BUNDLE_EXPIRED");
    // Nobody took it, so nobody has receipts about it, also after a restart; nothing is said twice.
    running.kill().await;
    let again = world.start().await;
    assert_eq!(
        refusal(again.redeem(&bundle_ref, Some("k"), 3).await),
        expired
    );
    assert_eq!(
        again.check(&bundle_ref).await.unwrap(),
        BundleState::Expired
    );
    assert_eq!(receipts.of("bundle.deliver").len(), 2);
}

#[tokio::test]
async fn a_revocation_between_receipt_and_bytes_takes_the_receipt_back() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    // Two replicas write the same receipts.
    let replica = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let before = world.peers.receipts.appends();
    let held = world.peers.receipts.gate.acquire_many(TURNS).await.unwrap();
    let (calls, revoker) = (running.calls.clone(), replica.calls.clone());
    let redemption = tokio::spawn({
        let bundle_ref = bundle_ref.clone();
        async move { calls.redeem(&bundle_ref, None, 2).await }
    });
    let receipts = world.peers.receipts.clone();
    eventually("the append", || receipts.appends() > before).await;
    let target = Target::BundleRef(bundle_ref.clone());
    let revocation = tokio::spawn(async move { revoker.revoke(target, 3).await });
    while running.check(&bundle_ref).await.unwrap() != BundleState::Revoked {
        tokio::task::yield_now().await;
    }
    drop(held);
    let revoked = refused(Code::FailedPrecondition, "BUNDLE_REVOKED");
    assert_eq!(refusal(redemption.await.unwrap()), revoked);
    assert_eq!(revocation.await.unwrap().unwrap(), 1);
    let (first, second) = both(&world).await;
    takes_back(&first, &second, "BUNDLE_REVOKED");
    assert_ne!(second.routing.operation_id, operation(2));
}

#[tokio::test]
async fn a_crash_before_the_second_receipt_leaves_it_to_the_outbox() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.peers.receipts.set_loses_answers(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(
        refusal(running.redeem(&bundle_ref, Some("k"), 2).await),
        away
    );
    running.kill().await;
    world.memory.crash();
    world.clock.advance(300_000);
    world.peers.receipts.set_loses_answers(false);
    let _again = world.start().await;
    let (first, second) = both(&world).await;
    takes_back(&first, &second, "BUNDLE_EXPIRED");
}

#[tokio::test]
async fn a_receipt_store_that_is_away_for_long_still_hears_of_it() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.peers.receipts.set_append_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(
        refusal(running.redeem(&bundle_ref, Some("k"), 2).await),
        away
    );
    // The bundle ends, and so does all the time that records are kept after it.
    for _ in 0..3 {
        world.clock.advance(2 * retention_ms());
        eventually_swept(&running, &bundle_ref).await;
    }
    world.peers.receipts.set_append_down(false);
    let (first, second) = both(&world).await;
    takes_back(&first, &second, "BUNDLE_EXPIRED");
    world.clock.advance(2 * retention_ms());
    let gone = refused(Code::NotFound, "BUNDLE_NOT_FOUND");
    while refusal_of(&running, &bundle_ref).await != Some(gone.clone()) {
        tokio::task::yield_now().await;
    }
}

/// Waits until the sweep has seen that the bundle has ended.
async fn eventually_swept(running: &Running, bundle_ref: &str) {
    while running.check(bundle_ref).await.ok() != Some(BundleState::Expired) {
        tokio::task::yield_now().await;
    }
}

async fn refusal_of(running: &Running, bundle_ref: &str) -> Option<(Code, String)> {
    let checked = running.check(bundle_ref).await;
    checked.is_err().then(|| refusal(checked))
}
