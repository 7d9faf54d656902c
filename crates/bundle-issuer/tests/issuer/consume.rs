//! Receipts that recipients make.

use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::time::UnixTime;
use cl_testbed::{refusal, refused, within};
use cl_wire::bundle::v1::{
    BundleState, RecordConsumerReceiptRequest, RecordConsumerReceiptResponse,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::exchange::{Exchange, NOW_MS, RECIPIENT, TENANT, bytes};
use crate::support::{Running, World};

struct Consumer {
    exchange: Exchange,
    bundle_ref: String,
}

impl Consumer {
    fn receipt(&self, operation: &str, outcome: Outcome) -> Value {
        let (alias, decision) = (self.exchange.alias(), self.exchange.decision_id());
        let request = self.exchange.request["id"].as_str().unwrap();
        let now = UnixTime::from_milliseconds(NOW_MS);
        let summary = "The consumer did something.";
        let draft = Draft::new(operation, RECIPIENT, &alias, outcome, summary, now);
        let draft = draft.about(request, &decision, &self.bundle_ref);
        draft.finish().unwrap().into_value()
    }

    fn message(&self, receipt: &Value) -> RecordConsumerReceiptRequest {
        RecordConsumerReceiptRequest {
            tenant: TENANT.to_owned(),
            bundle_ref: self.bundle_ref.clone(),
            recipient: RECIPIENT.to_owned(),
            receipt: bytes(receipt),
        }
    }
}

async fn send(
    running: &Running,
    message: RecordConsumerReceiptRequest,
) -> Result<RecordConsumerReceiptResponse, Status> {
    let mut gateway = running.gateway.clone();
    let answer = within("a record", gateway.record_consumer_receipt(message)).await?;
    Ok(answer.into_inner())
}

/// A changed receipt whose id and digest fit again.
fn changed(receipt: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut receipt = receipt.clone();
    let members = receipt.as_object_mut().unwrap();
    members.remove("id");
    members.remove("integrity");
    change(&mut receipt);
    let record = cl_model::record::finalize(receipt, "urn:cl:receipt:").unwrap();
    record.into_value()
}

async fn consumer(running: &Running) -> Consumer {
    let exchange = Exchange::new("r1");
    let bundle_ref = running.issued(&exchange).await;
    Consumer {
        exchange,
        bundle_ref,
    }
}

#[tokio::test]
async fn a_consumption_ends_the_retry_window() {
    let world = World::with(&Exchange::new("r1")).await;
    let running = world.start().await;
    let consumer = consumer(&running).await;
    let consumed = consumer.receipt("bundle.consume", Outcome::Success);
    let early = send(&running, consumer.message(&consumed)).await;
    let expected = refused(Code::FailedPrecondition, "BUNDLE_NOT_REDEEMED");
    assert_eq!(refusal(early), expected);
    let key = Some("k");
    running.redeem(&consumer.bundle_ref, key, 2).await.unwrap();
    running.redeem(&consumer.bundle_ref, key, 3).await.unwrap();
    let recorded = send(&running, consumer.message(&consumed)).await.unwrap();
    assert_eq!(recorded.receipt_ref, consumed["id"].as_str().unwrap());
    let state = running.check(&consumer.bundle_ref).await.unwrap();
    assert_eq!(state, BundleState::Consumed);
    let replay = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
    let again = running.redeem(&consumer.bundle_ref, key, 4).await;
    assert_eq!(refusal(again), replay);
    // A repeat of the receipt returns the same entry.
    assert_eq!(
        send(&running, consumer.message(&consumed)).await.unwrap(),
        recorded
    );
    let entry = world.peers.receipts.of("bundle.consume").remove(0);
    assert_eq!(
        entry.routing.subject_tag.as_deref(),
        Some("t".repeat(43).as_str())
    );
    // Another consumption of the same bundle is refused.
    let second = changed(&consumed, |it| it["user_summary"] = json!("Once more."));
    let conflict = refused(Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT");
    assert_eq!(
        refusal(send(&running, consumer.message(&second)).await),
        conflict
    );
}

#[tokio::test]
async fn actions_and_failures_are_recorded_and_consume_nothing() {
    let world = World::with(&Exchange::new("r1")).await;
    let running = world.start().await;
    let consumer = consumer(&running).await;
    running
        .redeem(&consumer.bundle_ref, Some("k"), 2)
        .await
        .unwrap();
    for (operation, outcome) in [
        ("bundle.consume", Outcome::Failure),
        ("email.create_draft", Outcome::Success),
        ("email.create_draft", Outcome::Indeterminate),
    ] {
        let receipt = consumer.receipt(operation, outcome);
        send(&running, consumer.message(&receipt)).await.unwrap();
    }
    let state = running.check(&consumer.bundle_ref).await.unwrap();
    assert_eq!(state, BundleState::Redeemed);
    running
        .redeem(&consumer.bundle_ref, Some("k"), 3)
        .await
        .unwrap();
    // What was done is worth a receipt also after the end.
    world.clock.advance(3_000_000);
    let late = consumer.receipt("email.create_draft", Outcome::Failure);
    send(&running, consumer.message(&late)).await.unwrap();
}

#[tokio::test]
async fn receipts_outside_the_contract_are_refused() {
    let world = World::with(&Exchange::new("r1")).await;
    let running = world.start().await;
    let consumer = consumer(&running).await;
    running.redeem(&consumer.bundle_ref, None, 2).await.unwrap();
    let good = consumer.receipt("bundle.consume", Outcome::Success);
    let digest = format!("sha256:{}", "1".repeat(64));
    let rows: [(&str, Value); 9] = [
        ("actor", json!("urn:model:another")),
        ("subject_ref", json!("urn:cl:alias:another")),
        ("bundle_ref", json!("urn:cl:bundle:another")),
        ("bundle_ref", Value::Null),
        ("decision_ref", json!("urn:cl:decision:another")),
        ("request_ref", json!("urn:cl:request:another")),
        ("policy_snapshot", json!(digest)),
        ("operation", json!("email.send")),
        ("operation", json!("bundle.deliver")),
    ];
    let outside = refused(Code::PermissionDenied, "RECEIPT_OUTSIDE_CONTRACT");
    for (member, value) in rows {
        let receipt = changed(&good, |it| it[member] = value.clone());
        let answer = send(&running, consumer.message(&receipt)).await;
        assert_eq!(refusal(answer), outside, "{member}");
    }
    let mut broken = good.clone();
    broken["outcome"] = json!("failure");
    let answer = send(&running, consumer.message(&broken)).await;
    let expected = refused(Code::InvalidArgument, "RECORD_INTEGRITY_MISMATCH");
    assert_eq!(refusal(answer), expected);
    let mut large = consumer.message(&good);
    large.receipt = vec![b'1'; 65_537];
    let expected = refused(Code::InvalidArgument, "DOCUMENT_TOO_LARGE");
    assert_eq!(refusal(send(&running, large).await), expected);
    let mut foreign = consumer.message(&good);
    foreign.recipient = "urn:model:another".to_owned();
    let expected = refused(Code::NotFound, "BUNDLE_NOT_FOUND");
    assert_eq!(refusal(send(&running, foreign).await), expected);
    assert!(world.peers.receipts.of("bundle.consume").is_empty());
}

#[tokio::test]
async fn a_receipt_that_cannot_be_recorded_changes_nothing() {
    let world = World::with(&Exchange::new("r1")).await;
    let running = world.start().await;
    let consumer = consumer(&running).await;
    running
        .redeem(&consumer.bundle_ref, Some("k"), 2)
        .await
        .unwrap();
    let consumed = consumer.receipt("bundle.consume", Outcome::Success);
    world.peers.receipts.set_append_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(
        refusal(send(&running, consumer.message(&consumed)).await),
        away
    );
    let state = running.check(&consumer.bundle_ref).await.unwrap();
    assert_eq!(state, BundleState::Redeemed);
    world.peers.receipts.set_append_down(false);
    world.peers.receipts.set_loses_answers(true);
    assert_eq!(
        refusal(send(&running, consumer.message(&consumed)).await),
        away
    );
    world.peers.receipts.set_loses_answers(false);
    send(&running, consumer.message(&consumed)).await.unwrap();
    let state = running.check(&consumer.bundle_ref).await.unwrap();
    assert_eq!(state, BundleState::Consumed);
    assert_eq!(world.peers.receipts.of("bundle.consume").len(), 1);
}
