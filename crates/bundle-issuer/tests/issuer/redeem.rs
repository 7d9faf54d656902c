//! Handing out: once, to one recipient, and again only for a lost answer.

use cl_testbed::{refusal, refused};
use cl_wire::bundle::v1::{BundleState, CheckBundleRequest, RedeemBundleRequest};
use tonic::Code;

use crate::exchange::{Exchange, TENANT, operation};
use crate::support::{World, redeem_message};

type Change = fn(&mut RedeemBundleRequest);

#[tokio::test]
async fn sixty_four_parallel_redemptions_have_one_winner() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    // Two replicas on one store.
    let replica = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let calls = (0..64_u32).map(|number| {
        let calls = if number % 2 == 0 { &running } else { &replica };
        let (calls, bundle_ref) = (calls.calls.clone(), bundle_ref.clone());
        tokio::spawn(async move { calls.redeem(&bundle_ref, None, 100 + number).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut winners = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(delivery) => {
                assert!(!delivery.repeated);
                winners += 1;
            }
            Err(status) => {
                let expected = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
                assert_eq!(refusal::<()>(Err(status)), expected);
            }
        }
    }
    assert_eq!(winners, 1);
    let receipts = world.peers.receipts.of("bundle.deliver");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["bundle_ref"], bundle_ref);
    assert_eq!(
        running.check(&bundle_ref).await.unwrap(),
        BundleState::Redeemed
    );
}

#[tokio::test]
async fn parallel_calls_with_one_key_get_the_same_bytes_and_one_receipt() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let calls = (0..16_u32).map(|number| {
        let (calls, bundle_ref) = (running.calls.clone(), bundle_ref.clone());
        tokio::spawn(async move { calls.redeem(&bundle_ref, Some("k"), 100 + number).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut envelopes = Vec::new();
    for call in calls {
        envelopes.push(call.await.unwrap().unwrap().envelope);
    }
    envelopes.dedup();
    assert_eq!(envelopes.len(), 1);
    assert_eq!(world.peers.receipts.of("bundle.deliver").len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_given_again_within_the_window() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let first = running.redeem(&bundle_ref, Some("key-1"), 2).await.unwrap();
    world.clock.advance(119_000);
    let again = running.redeem(&bundle_ref, Some("key-1"), 3).await.unwrap();
    assert!(again.repeated && !first.repeated);
    assert_eq!(again.envelope, first.envelope);
    assert_eq!(again.notes, first.notes);
    let replay = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
    for key in [Some("key-2"), None] {
        assert_eq!(refusal(running.redeem(&bundle_ref, key, 4).await), replay);
    }
    world.clock.advance(1_000);
    let late = running.redeem(&bundle_ref, Some("key-1"), 5).await;
    assert_eq!(refusal(late), replay);
    assert_eq!(world.peers.receipts.of("bundle.deliver").len(), 1);
}

#[tokio::test]
async fn without_a_key_there_is_no_second_delivery() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    running.redeem(&bundle_ref, None, 2).await.unwrap();
    let replay = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
    for (key, number) in [(None, 2), (None, 3), (Some("k"), 4)] {
        assert_eq!(
            refusal(running.redeem(&bundle_ref, key, number).await),
            replay
        );
    }
}

#[tokio::test]
async fn a_stranger_looks_at_an_unknown_bundle() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let unknown = format!("urn:cl:bundle:{}", "0".repeat(64));
    let mut errors = Vec::new();
    let changes: [Change; 3] = [
        |it| it.recipient = "urn:model:another".to_owned(),
        |it| it.tenant = "another".to_owned(),
        |it| it.bundle_ref = format!("urn:cl:bundle:{}", "0".repeat(64)),
    ];
    for change in changes {
        let mut message = redeem_message(&bundle_ref, Some("k"), 2);
        change(&mut message);
        errors.push(running.redeem_with(message).await.unwrap_err());
    }
    for (tenant, reference, recipient) in [
        (TENANT, &bundle_ref, "urn:model:another"),
        ("another", &bundle_ref, crate::exchange::RECIPIENT),
        (TENANT, &unknown, crate::exchange::RECIPIENT),
    ] {
        let message = CheckBundleRequest {
            tenant: tenant.to_owned(),
            bundle_ref: reference.clone(),
            recipient: recipient.to_owned(),
        };
        errors.push(
            running
                .gateway
                .clone()
                .check_bundle(message)
                .await
                .unwrap_err(),
        );
    }
    for error in &errors {
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.message(), errors[0].message());
        assert_eq!(error.details(), errors[0].details());
    }
    // Also once the bundle has ended.
    world.clock.advance(3_600_000);
    let mut message = redeem_message(&bundle_ref, None, 3);
    message.recipient = "urn:model:another".to_owned();
    let error = running.redeem_with(message).await.unwrap_err();
    assert_eq!(error.details(), errors[0].details());
}

#[tokio::test]
async fn malformed_calls_are_refused() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let changes: [Change; 8] = [
        |it| it.tenant = String::new(),
        |it| it.bundle_ref = "urn:cl:request:a".to_owned(),
        |it| it.bundle_ref = format!("urn:cl:bundle:{}", "a".repeat(600)),
        |it| it.recipient = "ab".to_owned(),
        |it| it.idempotency_key = Some(String::new()),
        |it| it.idempotency_key = Some("a b".to_owned()),
        |it| it.idempotency_key = Some("k".repeat(256)),
        |it| it.operation_id = "urn:cl:operation:1".to_owned(),
    ];
    for change in changes {
        let mut message = redeem_message(&bundle_ref, None, 2);
        change(&mut message);
        let expected = refused(Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal(running.redeem_with(message).await), expected);
    }
    // The id of another operation.
    let mut message = redeem_message(&bundle_ref, None, 1);
    message.operation_id = operation(1);
    let expected = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(running.redeem_with(message).await), expected);
    assert_eq!(running.check(&bundle_ref).await.unwrap(), BundleState::Live);
}

#[tokio::test]
async fn nothing_is_stored_or_disclosed_while_the_receipt_store_is_away() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    world.peers.receipts.set_down(true);
    assert_eq!(refusal(running.issue(&exchange).await), away);
    world.peers.receipts.set_down(false);
    world.peers.receipts.set_refusing(true);
    assert_eq!(refusal(running.issue(&exchange).await), away);
    assert_eq!(world.peers.proxy.calls(), 0);
    world.peers.receipts.set_refusing(false);
    let bundle_ref = running.issued(&exchange).await;

    world.peers.receipts.set_down(true);
    assert_eq!(refusal(running.redeem(&bundle_ref, None, 2).await), away);
    assert_eq!(running.check(&bundle_ref).await.unwrap(), BundleState::Live);
    world.peers.receipts.set_down(false);
    running.redeem(&bundle_ref, None, 3).await.unwrap();
}
