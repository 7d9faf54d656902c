//! A store that fails under the log: nothing is acknowledged that is not durable.

use cl_kv::Fault;
use cl_testbed::{refusal, refused};
use cl_wire::receipt::v1::PreflightRequest;
use tonic::Code;

use crate::failpoints::Action;
use crate::requests::{append, begin, complete, consumer_append, consumption};
use crate::support::{AUDITOR, ENGINE, ISSUER, World, open_intents, verified_entries};

const FAULTS: [Fault; 2] = [Fault::Full, Fault::BeforePersist];

fn unavailable() -> (Code, String) {
    refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE")
}

#[tokio::test]
async fn what_was_not_stored_is_not_acknowledged_and_can_be_repeated() {
    for fault in FAULTS {
        let world = World::new();
        let store = world.start().await;
        let writer = &mut world.client(store.addr, ENGINE);
        let auditor = &mut world.client(store.addr, AUDITOR);

        world.engine.plan(fault);
        let status = writer.append(append(1)).await.unwrap_err();
        assert!(cl_wire::status::retry_delay(&status).is_some());
        assert_eq!(refusal(Err::<(), _>(status)), unavailable());
        assert_eq!(verified_entries(auditor).await, 0);
        let entry = writer.append(append(1)).await.unwrap().into_inner().entry;
        assert_eq!(entry.unwrap().sequence, 1);

        world.engine.plan(fault);
        assert_eq!(refusal(writer.begin(begin(2)).await), unavailable());
        assert_eq!(open_intents(writer).await.total_size, 0);
        writer.begin(begin(2)).await.unwrap();
        world.engine.plan(fault);
        assert_eq!(refusal(writer.complete(complete(2)).await), unavailable());
        assert_eq!(open_intents(writer).await.total_size, 1);
        writer.complete(complete(2)).await.unwrap();
        assert_eq!(verified_entries(auditor).await, 2);
    }
}

#[tokio::test]
async fn what_was_stored_although_the_store_failed_is_found_and_acknowledged() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    world.engine.plan(Fault::AfterPersist);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    world.engine.crash();
    let repeat = writer.append(append(1)).await.unwrap().into_inner();
    assert_eq!(first, repeat);
    world.engine.plan(Fault::AfterPersist);
    writer.begin(begin(2)).await.unwrap();
    world.engine.plan(Fault::AfterPersist);
    writer.complete(complete(2)).await.unwrap();
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 2);
}

#[tokio::test]
async fn after_a_failed_sync_only_what_is_read_back_is_acknowledged() {
    for (action, is_there) in [(Action::Fail, false), (Action::FailAfter, true)] {
        let world = World::new();
        let store = world.start().await;
        let writer = &mut world.client(store.addr, ENGINE);
        let auditor = &mut world.client(store.addr, AUDITOR);
        // Without a successful read nobody can say what the disk has.
        world.points.plan(0, action);
        world.points.fail_reads_after(action);
        assert_eq!(refusal(writer.append(append(1)).await), unavailable());
        for number in 1..3 {
            assert_eq!(refusal(writer.append(append(number)).await), unavailable());
        }
        world.points.heal_reads();
        assert_eq!(verified_entries(auditor).await, u64::from(is_there));
        let entry = writer.append(append(1)).await.unwrap().into_inner().entry;
        assert_eq!(entry.unwrap().sequence, 1);
        // With one, what is there is acknowledged, and what is not is refused.
        world.points.plan(0, action);
        let answer = writer.append(append(2)).await;
        assert_eq!(answer.is_ok(), is_there, "{action:?}");
        assert_eq!(verified_entries(auditor).await, 1 + u64::from(is_there));
    }
}

#[tokio::test]
async fn a_consumption_that_was_not_stored_does_not_exclude_another() {
    let world = World::new();
    let store = world.start().await;
    let issuer = &mut world.client(store.addr, ISSUER);
    world.engine.plan(Fault::Full);
    let request = consumer_append(consumption(1));
    assert_eq!(refusal(issuer.append(request).await), unavailable());
    issuer
        .append(consumer_append(consumption(2)))
        .await
        .unwrap();
}

#[tokio::test]
async fn preflight_fails_while_the_store_cannot_write() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let request = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    for fault in FAULTS {
        world.engine.plan(fault);
        let answer = writer.preflight(request.clone()).await;
        assert_eq!(refusal(answer), unavailable());
    }
    let answer = writer.preflight(request).await.unwrap();
    assert!(answer.into_inner().ok);
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_machine() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(1)).await.unwrap();
    writer.begin(begin(2)).await.unwrap();
    world.engine.crash();
    store.end().await;
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    assert_eq!(open_intents(writer).await.total_size, 1);
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 1);
}
