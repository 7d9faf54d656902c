//! Failures between the batches and the receipts, in one process.

use cl_kv::Fault;
use cl_testbed::{TURNS, eventually, refusal, refused};
use cl_wire::bundle::v1::BundleState;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use tonic::Code;

use crate::exchange::Exchange;
use crate::support::{World, open};

#[tokio::test]
async fn a_bundle_without_its_issue_receipt_is_nobodys() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    world.peers.receipts.set_append_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(running.issue(&exchange).await), away);
    running.kill().await;
    world.memory.crash();
    world.peers.receipts.set_append_down(false);
    // The outbox makes the same bundle live; nothing is projected again.
    let again = world.start().await;
    let receipts = world.peers.receipts.clone();
    eventually("the receipt", || receipts.of("bundle.issue").len() == 1).await;
    let bundle_ref = again.issued(&exchange).await;
    let recorded = receipts.of("bundle.issue").remove(0);
    assert_eq!(recorded.receipt["bundle_ref"], bundle_ref);
    assert_eq!(world.peers.proxy.calls(), 1);
    let delivery = again.redeem(&bundle_ref, None, 2).await.unwrap();
    assert_eq!(open(&delivery.envelope).bundle().id.as_str(), bundle_ref);
    assert_eq!(receipts.of("bundle.issue").len(), 1);
}

#[tokio::test]
async fn a_delivery_without_its_receipt_discloses_nothing() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.peers.receipts.set_append_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    let key = Some("k");
    assert_eq!(refusal(running.redeem(&bundle_ref, key, 2).await), away);
    assert_eq!(running.check(&bundle_ref).await.unwrap(), BundleState::Live);
    let replay = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
    assert_eq!(refusal(running.redeem(&bundle_ref, None, 3).await), replay);
    assert_eq!(refusal(running.redeem(&bundle_ref, key, 4).await), away);
    running.kill().await;
    world.memory.crash();
    world.peers.receipts.set_append_down(false);
    let again = world.start().await;
    let delivery = again.redeem(&bundle_ref, key, 5).await.unwrap();
    assert!(delivery.repeated);
    assert_eq!(refusal(again.redeem(&bundle_ref, None, 6).await), replay);
    assert_eq!(world.peers.receipts.of("bundle.deliver").len(), 1);
}

#[tokio::test]
async fn lost_answers_of_the_receipt_store_are_no_second_receipts() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    world.peers.receipts.set_loses_answers(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(running.issue(&exchange).await), away);
    world.peers.receipts.set_loses_answers(false);
    let bundle_ref = running.issued(&exchange).await;
    world.peers.receipts.set_loses_answers(true);
    assert_eq!(
        refusal(running.redeem(&bundle_ref, Some("k"), 2).await),
        away
    );
    world.peers.receipts.set_loses_answers(false);
    running.redeem(&bundle_ref, Some("k"), 3).await.unwrap();
    world.peers.receipts.set_loses_answers(true);
    let target = Target::BundleRef(bundle_ref.clone());
    assert_eq!(refusal(running.revoke(target.clone(), 4).await), away);
    world.peers.receipts.set_loses_answers(false);
    running.revoke(target, 4).await.unwrap();
    for operation in ["bundle.issue", "bundle.deliver", "bundle.revoke"] {
        assert_eq!(world.peers.receipts.of(operation).len(), 1, "{operation}");
    }
}

#[tokio::test]
async fn the_winner_of_a_redemption_keeps_it_when_the_outbox_is_faster() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let before = world.peers.receipts.appends();
    let held = world.peers.receipts.gate.acquire_many(TURNS).await.unwrap();
    let calls = running.calls.clone();
    let redemption = tokio::spawn({
        let bundle_ref = bundle_ref.clone();
        async move { calls.redeem(&bundle_ref, None, 2).await }
    });
    // The call and the outbox both wait for the receipt store.
    let receipts = world.peers.receipts.clone();
    eventually("both appends", || receipts.appends() >= before + 2).await;
    drop(held);
    assert!(!redemption.await.unwrap().unwrap().repeated);
    assert_eq!(receipts.of("bundle.deliver").len(), 1);
}

#[tokio::test]
async fn a_batch_whose_outcome_is_unknown_is_found_by_a_retry() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        let bundle_ref = running.issued(&exchange).await;
        world.memory.plan(fault);
        let key = Some("k");
        let first = running.redeem(&bundle_ref, key, 2).await;
        // The sweep may have met the fault instead.
        if let Err(status) = first {
            let expected = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
            assert_eq!(refusal::<()>(Err(status)), expected);
        }
        running.redeem(&bundle_ref, key, 3).await.unwrap();
        assert_eq!(
            world.peers.receipts.of("bundle.deliver").len(),
            1,
            "{fault:?}"
        );
    }
}
