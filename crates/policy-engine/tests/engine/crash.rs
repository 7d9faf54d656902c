//! Failures between the preflight, the batch and the receipt.

use cl_kv::{Engine, Fault, Scan};
use cl_testbed::{eventually, refusal, refused};
use cl_wire::policy::v1::RequestState;
use tonic::Code;

use crate::documents::{gated, operation, request};
use crate::people::{OWNER, grant_all};
use crate::support::{World, decision};

fn stored(world: &World) -> usize {
    world.memory.scan(&Scan::new([], usize::MAX)).unwrap().len()
}

#[tokio::test]
async fn stores_nothing_while_the_receipt_store_is_away() {
    let world = World::new().await;
    let running = world.ready().await;
    let before = stored(&world);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    world.receipts.set_down(true);
    let error = running.ask(&request("r1"), 1).await.unwrap_err();
    assert!(cl_wire::status::retry_delay(&error).is_some());
    assert_eq!(refusal::<()>(Err(error)), away);
    assert_eq!(stored(&world), before);
    let missing = refused(Code::NotFound, "REQUEST_NOT_FOUND");
    assert_eq!(refusal(running.look(&request("r1")).await), missing);

    world.receipts.set_down(false);
    world.receipts.set_refusing(true);
    assert_eq!(refusal(running.ask(&request("r1"), 1).await), away);
    assert_eq!(stored(&world), before);
    world.receipts.set_refusing(false);
    running.ask(&request("r1"), 1).await.unwrap();
    assert!(stored(&world) > before);
}

#[tokio::test]
async fn a_crash_between_batch_and_receipt_leaves_one_receipt() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = request("r1");
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.ask(&request, 1).await), unsettled);
    // The decision is stored, and not told before its receipt is durable.
    assert_eq!(refusal(running.look(&request).await), unsettled);
    assert!(world.receipts.of("policy.decide").is_empty());
    running.kill().await;
    world.memory.crash();

    world.receipts.set_append_down(false);
    let again = world.start().await;
    let receipts = world.receipts.clone();
    eventually("the receipt", || !receipts.of("policy.decide").is_empty()).await;
    let status = again.look(&request).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(again.ask(&request, 1).await.unwrap(), status);
    let receipts = world.receipts.of("policy.decide");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].routing.operation_id, operation(1));
    assert_eq!(receipts[0].receipt["decision_ref"], decision(&status)["id"]);
}

#[tokio::test]
async fn a_lost_answer_of_the_receipt_store_is_no_second_receipt() {
    let world = World::new().await;
    let running = world.ready().await;
    world.receipts.set_loses_answers(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.ask(&request("r1"), 1).await), unsettled);
    let before = world.receipts.appends();
    running.kill().await;
    world.receipts.set_loses_answers(false);
    let again = world.start().await;
    let receipts = world.receipts.clone();
    eventually("another attempt", || receipts.appends() > before).await;
    again.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(world.receipts.of("policy.decide").len(), 1);
}

#[tokio::test]
async fn the_outbox_recovers_without_a_restart() {
    let world = World::new().await;
    let running = world.ready().await;
    world.receipts.set_append_down(true);
    running.ask(&request("r1"), 1).await.unwrap_err();
    world.receipts.set_append_down(false);
    let receipts = world.receipts.clone();
    eventually("the receipt", || receipts.of("policy.decide").len() == 1).await;
    running.look(&request("r1")).await.unwrap();
}

#[tokio::test]
async fn a_batch_whose_outcome_is_unknown_is_found_by_a_retry() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let world = World::new().await;
        let running = world.ready().await;
        world.memory.plan(fault);
        let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
        assert_eq!(refusal(running.ask(&request("r1"), 1).await), unsettled);
        let status = running.ask(&request("r1"), 1).await.unwrap();
        assert_eq!(status.state(), RequestState::Decided, "{fault:?}");
        assert_eq!(world.receipts.of("policy.decide").len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn requests_and_snapshots_survive_a_restart() {
    let world = World::new().await;
    let running = world.ready().await;
    let status = running.ask(&request("r1"), 1).await.unwrap();
    running.kill().await;
    let again = world.start().await;
    assert_eq!(again.look(&request("r1")).await.unwrap(), status);
    again.ask(&request("r2"), 2).await.unwrap();
    assert_eq!(world.receipts.of("policy.decide").len(), 2);
}

#[tokio::test]
async fn nothing_is_approved_while_the_receipt_store_is_away() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let open = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = open.unwrap().ceremony.unwrap();
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    let before = stored(&world);
    for is_down in [true, false] {
        world.receipts.set_down(is_down);
        world.receipts.set_refusing(!is_down);
        let session = &person.session;
        let finish = running
            .finish_answer(session, &ceremony, signed.clone(), 2)
            .await;
        assert_eq!(refusal(finish), away);
        let status = running.look(&gated("r1")).await.unwrap();
        assert_eq!(status.state(), RequestState::PendingApproval);
        assert_eq!(stored(&world), before);
    }
    // The challenge is not spent by that.
    world.receipts.set_refusing(false);
    let finish = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    assert_eq!(finish.unwrap().state(), RequestState::Decided);
}

#[tokio::test]
async fn a_crash_between_an_answer_and_its_receipts_leaves_one_of_each() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let open = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = open.unwrap().ceremony.unwrap();
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    let finish = running
        .finish_answer(&person.session, &ceremony, signed.clone(), 2)
        .await;
    assert_eq!(refusal(finish), unsettled);
    // Stored, and told to nobody.
    assert_eq!(refusal(running.look(&gated("r1")).await), unsettled);
    running.kill().await;
    world.memory.crash();
    world.receipts.set_append_down(false);
    let again = world.start().await;
    for operation in ["policy.approve", "policy.decide"] {
        let count = if operation == "policy.decide" { 2 } else { 1 };
        eventually(operation, || world.receipts.of(operation).len() == count).await;
    }
    let repeated = again
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await
        .unwrap();
    assert_eq!(repeated.state(), RequestState::Decided);
    assert_eq!(again.look(&gated("r1")).await.unwrap(), repeated);
    assert_eq!(world.receipts.of("policy.approve").len(), 1);
}

#[tokio::test]
async fn an_answer_whose_batch_has_an_unknown_outcome_is_found_by_a_retry() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let world = World::new().await;
        let running = world.ready().await;
        let person = running.person(OWNER, 0x100).await;
        running.ask(&gated("r1"), 1).await.unwrap();
        let item = running.only_item(&person.session).await;
        let open = running
            .begin_answer(grant_all(&person.session, &item))
            .await;
        let ceremony = open.unwrap().ceremony.unwrap();
        let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
        world.memory.plan(fault);
        let session = &person.session;
        let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
        let finish = running
            .finish_answer(session, &ceremony, signed.clone(), 2)
            .await;
        assert_eq!(refusal(finish), unsettled, "{fault:?}");
        let finish = running.finish_answer(session, &ceremony, signed, 2).await;
        assert_eq!(finish.unwrap().state(), RequestState::Decided, "{fault:?}");
        assert_eq!(world.receipts.of("policy.approve").len(), 1, "{fault:?}");
        assert_eq!(world.receipts.of("policy.decide").len(), 2, "{fault:?}");
    }
}
