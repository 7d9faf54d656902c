//! Ending bundles before their time.

use cl_testbed::{TURNS, eventually, refusal, refused};
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use cl_wire::bundle::v1::{BundleState, RevokeBundlesRequest};
use tonic::Code;

use crate::exchange::{Exchange, TENANT, operation};
use crate::support::{World, reference};

/// Every name by which the bundle of an exchange can be ended.
fn targets(exchange: &Exchange, bundle_ref: &str) -> [Target; 4] {
    [
        Target::BundleRef(bundle_ref.to_owned()),
        Target::DecisionRef(exchange.decision_id()),
        Target::SubjectAlias(exchange.alias()),
        Target::ProvenanceRef(reference(exchange, "e:2")),
    ]
}

#[tokio::test]
async fn every_name_ends_a_bundle_for_good() {
    for index in 0..4 {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        let bundle_ref = running.issued(&exchange).await;
        let target = targets(&exchange, &bundle_ref)[index].clone();
        assert_eq!(running.revoke(target.clone(), 2).await.unwrap(), 1);
        assert_eq!(
            running.check(&bundle_ref).await.unwrap(),
            BundleState::Revoked
        );
        let revoked = refused(Code::FailedPrecondition, "BUNDLE_REVOKED");
        assert_eq!(refusal(running.redeem(&bundle_ref, None, 3).await), revoked);
        assert_eq!(refusal(running.issue(&exchange).await), revoked);
        // A repeat, and another call, find nothing to do.
        assert_eq!(running.revoke(target.clone(), 2).await.unwrap(), 0);
        assert_eq!(running.revoke(target, 4).await.unwrap(), 0);
        let receipt = world.peers.receipts.of("bundle.revoke").remove(0);
        assert_eq!(receipt.receipt["bundle_ref"], bundle_ref);
        assert_eq!(receipt.receipt["metadata"]["reason"], "subject.erased");
        assert_eq!(receipt.receipt["metadata"]["bundles"], "1");
        assert!(receipt.routing.subject_tag.is_some());
    }
}

#[tokio::test]
async fn a_name_that_is_barred_gets_no_bundle_later() {
    for index in 1..4 {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        let target = targets(&exchange, "")[index].clone();
        assert_eq!(running.revoke(target, 2).await.unwrap(), 0);
        running.kill().await;
        let running = world.start().await;
        let revoked = refused(Code::FailedPrecondition, "BUNDLE_REVOKED");
        assert_eq!(refusal(running.issue(&exchange).await), revoked);
        // Only a source is not known before claims are projected.
        assert_eq!(world.peers.proxy.calls(), usize::from(index == 3));
        // Another exchange is not touched.
        let other = Exchange::new("r2");
        world.peers.proxy.set_items(crate::support::items(&other));
        let mut message = crate::support::issue_message(&other, other.grant());
        message.operation_id = operation(5);
        running.issue_with(message).await.unwrap();
    }
}

#[tokio::test]
async fn a_revocation_while_a_bundle_is_made_stops_it() {
    for index in 1..4 {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        let held = world.peers.proxy.gate.acquire_many(TURNS).await.unwrap();
        let calls = running.calls.clone();
        let call = tokio::spawn({
            let exchange = exchange.clone();
            async move { calls.issue(&exchange).await }
        });
        let proxy = world.peers.proxy.clone();
        eventually("the issue", || proxy.calls() == 1).await;
        let target = targets(&exchange, "")[index].clone();
        assert_eq!(running.revoke(target, 2).await.unwrap(), 0);
        drop(held);
        let revoked = refused(Code::FailedPrecondition, "BUNDLE_REVOKED");
        assert_eq!(refusal(call.await.unwrap()), revoked);
        assert_eq!(refusal(running.issue(&exchange).await), revoked);
    }
}

#[tokio::test]
async fn a_revocation_while_a_bundle_is_handed_out_keeps_it_back() {
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
    eventually("the delivery", || receipts.appends() > before).await;
    let calls = running.calls.clone();
    let revocation = tokio::spawn({
        let target = Target::BundleRef(bundle_ref.clone());
        async move { calls.revoke(target, 3).await }
    });
    eventually("the revocation", || receipts.appends() > before + 1).await;
    drop(held);
    assert_eq!(revocation.await.unwrap().unwrap(), 1);
    let revoked = refused(Code::FailedPrecondition, "BUNDLE_REVOKED");
    assert_eq!(refusal(redemption.await.unwrap()), revoked);
    let again = running.redeem(&bundle_ref, Some("k"), 4).await;
    assert_eq!(refusal(again), revoked);
}

#[tokio::test]
async fn takes_effect_while_the_receipt_store_is_away() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.peers.receipts.set_down(true);
    let target = Target::BundleRef(bundle_ref.clone());
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(running.revoke(target.clone(), 2).await), away);
    assert_eq!(
        running.check(&bundle_ref).await.unwrap(),
        BundleState::Revoked
    );
    world.peers.receipts.set_down(false);
    assert_eq!(running.revoke(target, 2).await.unwrap(), 0);
    assert_eq!(world.peers.receipts.of("bundle.revoke").len(), 1);
}

type Change = fn(&mut RevokeBundlesRequest);

#[tokio::test]
async fn malformed_and_unknown_names_are_refused() {
    let world = World::new().await;
    let running = world.start().await;
    let unknown = format!("urn:cl:bundle:{}", "0".repeat(64));
    let good = RevokeBundlesRequest {
        tenant: TENANT.to_owned(),
        target: Some(Target::BundleRef(unknown)),
        reason: "subject.erased".to_owned(),
        operation_id: operation(2),
    };
    let mut engine = running.engine.clone();
    let missing = refused(Code::NotFound, "BUNDLE_NOT_FOUND");
    assert_eq!(refusal(engine.revoke_bundles(good.clone()).await), missing);
    let changes: [Change; 9] = [
        |it| it.tenant = "A".to_owned(),
        |it| it.target = None,
        |it| it.target = Some(Target::BundleRef("x".to_owned())),
        |it| it.target = Some(Target::DecisionRef("urn:cl:bundle:x".to_owned())),
        |it| it.target = Some(Target::SubjectAlias("x".repeat(1000))),
        |it| it.target = Some(Target::ProvenanceRef(String::new())),
        |it| it.reason = "Because I say so".to_owned(),
        |it| it.reason = "a".repeat(129),
        |it| it.operation_id = String::new(),
    ];
    for change in changes {
        let mut message = good.clone();
        change(&mut message);
        let expected = refused(Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal(engine.revoke_bundles(message).await), expected);
    }
    // The same operation id for something else.
    let decision = Target::DecisionRef("urn:cl:decision:a".to_owned());
    running.revoke(decision, 3).await.unwrap();
    let other = Target::DecisionRef("urn:cl:decision:b".to_owned());
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(running.revoke(other, 3).await), conflict);
}
