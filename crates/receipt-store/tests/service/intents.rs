//! Announced operations, on time and late.

use cl_testbed::{refusal, refused, spiffe_id, within};
use cl_wire::receipt::v1::{BeginRequest, BeginResponse, CompleteRequest, IntentState};
use serde_json::{Value, json};
use tonic::Code;

use crate::requests::{
    append, begin, begun_members, bytes, complete, get, operation_id, tag, time,
};
use crate::support::{
    AUDITOR, Client, ENGINE, GATEWAY, ISSUER, START_MS, STORE, World, open_intents,
    verified_entries,
};

async fn begun(writer: &mut Client, number: u64) -> BeginResponse {
    writer.begin(begin(number)).await.unwrap().into_inner()
}

async fn receipt(reader: &mut Client, reference: &str) -> (Value, String) {
    let found = reader.get_receipt(get("acme", reference)).await.unwrap();
    let found = found.into_inner().receipt.unwrap();
    (
        serde_json::from_slice(&found.receipt).unwrap(),
        found.writer,
    )
}

/// Waits until the store has noticed by itself that a deadline passed.
async fn overdue(writer: &mut Client) {
    within("the store's own receipt", async {
        loop {
            let open = open_intents(writer).await;
            if open.intents[0].state() == IntentState::Overdue {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_intent_becomes_an_entry_when_it_is_completed() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);

    let state = begun(writer, 1).await;
    assert_eq!((state.state(), state.entry), (IntentState::Open, None));
    assert_eq!(verified_entries(auditor).await, 0);
    let open = open_intents(writer).await;
    assert_eq!((open.intents.len(), open.total_size), (1, 1));
    assert_eq!(open.intents[0].state(), IntentState::Open);
    assert_eq!(open.intents[0].members, begin(1).members);
    assert_eq!(open.intents[0].deadline, begin(1).deadline);
    assert_eq!(open.intents[0].begun_at, Some(time(START_MS)));
    assert_eq!(begun(writer, 1).await.state(), IntentState::Open);

    let first = writer.complete(complete(1)).await.unwrap().into_inner();
    let repeat = writer.complete(complete(1)).await.unwrap().into_inner();
    assert_eq!(first, repeat);
    assert_eq!(first.entry.as_ref().unwrap().supersedes_ref, None);
    let state = begun(writer, 1).await;
    assert_eq!(
        (state.state(), state.entry),
        (IntentState::Settled, first.entry)
    );
    assert_eq!(open_intents(writer).await.total_size, 0);
    assert_eq!(verified_entries(auditor).await, 1);
}

fn about(number: u64, bundle: &str) -> BeginRequest {
    let mut members = begun_members(number);
    members["bundle_ref"] = json!(bundle);
    BeginRequest {
        members: bytes(&members),
        ..begin(number)
    }
}

#[tokio::test]
async fn an_indeterminate_operation_blocks_others_about_its_bundle_until_it_is_settled() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let (one, other) = ("urn:cl:bundle:one", "urn:cl:bundle:other");
    // Two that run side by side do not block each other.
    let intents = [about(1, one), about(2, one)];
    for intent in &intents {
        writer.begin(intent.clone()).await.unwrap();
    }
    world.clock.advance(60_000);
    overdue(writer).await;
    let later = |number, bundle| BeginRequest {
        deadline: Some(time(START_MS + 120_000)),
        ..about(number, bundle)
    };
    let unsettled = refused(Code::FailedPrecondition, "BUNDLE_UNSETTLED");
    for number in [1, 2] {
        let blocked = writer.begin(later(3, one)).await;
        assert_eq!(refusal(blocked), unsettled, "{number} is open");
        // Neither a repeat of the operation itself, nor one about another bundle or about none.
        writer.begin(intents[0].clone()).await.unwrap();
        writer.begin(later(4, other)).await.unwrap();
        writer.begin(begin_at(5, START_MS + 120_000)).await.unwrap();
        writer.complete(complete_about(number)).await.unwrap();
        writer.complete(complete_about(number)).await.unwrap();
    }
    writer.begin(later(3, one)).await.unwrap();
    // One that is completed past its deadline, before the store has noticed, blocks nobody.
    world.clock.advance(60_000);
    writer.complete(complete_about(3)).await.unwrap();
    let next = BeginRequest {
        deadline: Some(time(START_MS + 180_000)),
        ..about(6, one)
    };
    writer.begin(next).await.unwrap();
}

fn complete_about(number: u64) -> CompleteRequest {
    let mut members: Value = serde_json::from_slice(&complete(number).members).unwrap();
    members.as_object_mut().unwrap().remove("bundle_ref");
    CompleteRequest {
        members: bytes(&members),
        ..complete(number)
    }
}

fn begin_at(number: u64, deadline_ms: i64) -> BeginRequest {
    BeginRequest {
        deadline: Some(time(deadline_ms)),
        ..begin(number)
    }
}

#[tokio::test]
async fn the_store_records_what_is_overdue_and_a_late_receipt_supersedes_it() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    let auditor = &mut world.client(store.addr, AUDITOR);
    begun(writer, 1).await;
    world.clock.advance(59_999);
    assert_eq!(begun(writer, 1).await.state(), IntentState::Open);
    world.clock.advance(1);
    overdue(writer).await;

    let open = open_intents(writer).await;
    let entry = open.intents[0].entry.clone().unwrap();
    let state = begun(writer, 1).await;
    assert_eq!(state.state(), IntentState::Overdue);
    assert_eq!(state.entry.as_ref(), Some(&entry));
    let (own, author) = receipt(reader, &entry.receipt_ref).await;
    assert_eq!(author, spiffe_id(STORE));
    assert_eq!(own["actor"], spiffe_id(STORE).as_str());
    assert_eq!(own["outcome"], "indeterminate");
    assert_eq!(own["operation"], "operation.overdue");
    assert_eq!(own["subject_ref"], "urn:cl:alias:subject");
    assert_eq!(own["request_ref"], "urn:cl:request:r1");
    assert_eq!(own["completed_at"], "2030-03-17T17:47:40.000Z");
    let metadata = json!({"operation": "policy.decide", "operation_id": operation_id(1)});
    assert_eq!(own["metadata"], metadata);

    let late = writer.complete(complete(1)).await.unwrap().into_inner();
    let late = late.entry.unwrap();
    assert_eq!(
        late.supersedes_ref.as_deref(),
        Some(entry.receipt_ref.as_str())
    );
    let (receipt, author) = receipt(reader, &late.receipt_ref).await;
    assert_eq!(receipt["supersedes_ref"], entry.receipt_ref.as_str());
    assert_eq!(
        (receipt["outcome"].as_str(), author),
        (Some("success"), spiffe_id(ENGINE))
    );
    assert_eq!(open_intents(writer).await.total_size, 0);
    let repeat = writer.complete(complete(1)).await.unwrap().into_inner();
    assert_eq!(repeat.entry, Some(late));
    assert_eq!(verified_entries(auditor).await, 2);
}

#[tokio::test]
async fn what_became_overdue_while_the_store_was_down_is_recorded_at_the_start() {
    let world = World::new();
    let store = world.start().await;
    for number in 0..3 {
        begun(&mut world.client(store.addr, ENGINE), number).await;
    }
    store.end().await;
    world.clock.advance(60_000);
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    // A late completion that comes first finds the deadline passed as well.
    let late = writer.complete(complete(0)).await.unwrap().into_inner();
    assert!(late.entry.unwrap().supersedes_ref.is_some());
    overdue(writer).await;
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 4);
    assert_eq!(open_intents(writer).await.total_size, 2);
}

#[tokio::test]
async fn time_does_not_run_backwards_in_the_log() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    writer.append(append(1)).await.unwrap();
    world.clock.advance(-3_600_000);
    let entry = writer.append(append(2)).await.unwrap().into_inner().entry;
    let found = reader
        .get_receipt(get("acme", &entry.unwrap().receipt_ref))
        .await;
    let found = found.unwrap().into_inner().receipt.unwrap();
    assert_eq!(found.recorded_at, Some(time(START_MS)));
}

#[tokio::test]
async fn a_jump_ahead_that_is_taken_back_ends_nothing_that_begins_after_it() {
    const YEAR_MS: i64 = 365 * 24 * 3_600_000;
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    world.clock.advance(YEAR_MS);
    writer.append(append(1)).await.unwrap();
    world.clock.advance(-YEAR_MS);
    begun(writer, 2).await;
    let entry = writer.complete(complete(2)).await.unwrap().into_inner();
    assert_eq!(entry.entry.unwrap().supersedes_ref, None);
}

#[tokio::test]
async fn operation_ids_stand_for_one_content() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");

    begun(writer, 1).await;
    let mut other = begin(1);
    other.deadline = Some(time(START_MS + 50_000));
    assert_eq!(refusal(writer.begin(other).await), conflict);
    assert_eq!(refusal(writer.append(append(1)).await), conflict);
    writer.complete(complete(1)).await.unwrap();
    let mut other = complete(1);
    other.members = bytes(&json!({"outcome": "failure"}));
    assert_eq!(refusal(writer.complete(other).await), conflict);

    writer.append(append(2)).await.unwrap();
    assert_eq!(refusal(writer.begin(begin(2)).await), conflict);
    let mut other = append(2);
    other.routing.as_mut().unwrap().subject_tag = None;
    assert_eq!(refusal(writer.append(other).await), conflict);
}

#[tokio::test]
async fn only_the_open_members_can_be_completed() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let mut request = begin(1);
    request.routing.as_mut().unwrap().subject_tag = None;
    let mut members = begun_members(1);
    members["bundle_ref"] = Value::Null;
    request.members = bytes(&members);
    writer.begin(request).await.unwrap();

    let conflict = refused(Code::FailedPrecondition, "RECEIPT_MEMBER_CONFLICT");
    let completing = |name: &str, value: Value| {
        let mut members: Value = serde_json::from_slice(&complete(1).members).unwrap();
        members[name] = value;
        CompleteRequest {
            members: bytes(&members),
            ..complete(1)
        }
    };
    for (name, value) in [
        ("actor", json!("urn:cl:policy-engine:other")),
        ("request_ref", Value::Null),
        ("supersedes_ref", json!("urn:cl:receipt:x")),
    ] {
        let answer = writer.complete(completing(name, value)).await;
        assert_eq!(refusal(answer), conflict, "{name}");
    }
    let invalid = completing("outcome", json!("perhaps"));
    let answer = writer.complete(invalid).await;
    assert_eq!(
        refusal(answer),
        refused(Code::InvalidArgument, "INVALID_RECEIPT")
    );
    // A null member was open, the same value is no conflict, and a tag may be added.
    let mut request = completing("bundle_ref", json!("urn:cl:bundle:b1"));
    request.routing.as_mut().unwrap().subject_tag = Some(tag(3));
    assert!(writer.complete(request).await.is_ok());

    writer.begin(begin(2)).await.unwrap();
    let mut request = complete(2);
    request.routing.as_mut().unwrap().subject_tag = Some(tag(3));
    assert_eq!(refusal(writer.complete(request).await), conflict);
}

#[tokio::test]
async fn intents_belong_to_their_writer_and_tenant() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    begun(writer, 1).await;
    let not_found = refused(Code::NotFound, "INTENT_NOT_FOUND");
    let other = &mut world.client(store.addr, ISSUER);
    assert_eq!(refusal(other.complete(complete(1)).await), not_found);
    let mut request = complete(1);
    request.routing.as_mut().unwrap().tenant = "beta".to_owned();
    assert_eq!(refusal(writer.complete(request).await), not_found);
    assert_eq!(refusal(writer.complete(complete(2)).await), not_found);
}
