//! Receipts go when their retention has ended; tombstones stay, and the log as it was.

use std::time::Duration;

use cl_receipt_store::core::routing::{SubjectTag, Tenant};
use cl_receipt_store::store::{Selector, Slot, number};
use cl_testbed::{refusal, refused, within};
use cl_wire::receipt::v1::receipt_admin_service_client::ReceiptAdminServiceClient;
use cl_wire::receipt::v1::{
    EraseReceiptsRequest, GetReceiptResponse, ListReceiptsRequest, ListReceiptsResponse,
    RecordedReceipt,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::failpoints::Action;
use crate::requests::{
    append, append_of, begin, complete, consumer_append, consumption, get, members, operation_id,
    tag, with,
};
use crate::support::{
    AUDITOR, Client, ENGINE, ISSUER, OPERATOR, START_MS, World, kv_store, open_intents,
    verified_entries, verify, verify_proof,
};

pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A world whose store looks for ended retention all the time.
pub(crate) fn sweeping() -> World {
    World {
        retention_interval: Duration::from_millis(5),
        ..World::new()
    }
}

pub(crate) async fn all(auditor: &mut Client) -> ListReceiptsResponse {
    let request = ListReceiptsRequest {
        tenant: "acme".to_owned(),
        page_size: 1000,
        ..ListReceiptsRequest::default()
    };
    auditor.list_receipts(request).await.unwrap().into_inner()
}

pub(crate) fn erased(receipts: &[RecordedReceipt]) -> Vec<u64> {
    let erased = receipts.iter().filter(|it| it.tombstone.is_some());
    erased
        .map(|it| it.entry.as_ref().unwrap().sequence)
        .collect()
}

/// Waits until so many receipts are erased, and gives all.
pub(crate) async fn until_erased(auditor: &mut Client, count: usize) -> Vec<RecordedReceipt> {
    within("an erasure", async {
        loop {
            let receipts = all(auditor).await.receipts;
            if erased(&receipts).len() >= count {
                // What is listed while it is erased may lack the receipt of that.
                return all(auditor).await.receipts;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Waits until all that a time ends was looked for; a settled time is stored to the hour.
pub(crate) async fn until_settled(world: &World, now_ms: i64) {
    let stored = kv_store(world);
    within("a sweep", async {
        loop {
            let settled = number(stored.get(&Slot::Settled).unwrap().as_ref()).unwrap();
            let settled = settled.and_then(|it| i64::try_from(it).ok());
            if settled.is_some_and(|settled| settled + 3_600_000 > now_ms) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn metadata(receipt: &RecordedReceipt) -> Value {
    let receipt: Value = serde_json::from_slice(&receipt.receipt).unwrap();
    assert_eq!(receipt["operation"], "receipts.erase");
    receipt["metadata"].clone()
}

fn erase(byte: u8) -> EraseReceiptsRequest {
    EraseReceiptsRequest {
        tenant: "acme".to_owned(),
        subject_tag: tag(byte),
        reason: "subject.request".to_owned(),
    }
}

#[tokio::test]
async fn each_class_ends_after_its_days_and_leaves_tombstones() {
    let world = sweeping();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    let mut answers = Vec::new();
    for number in 0..4 {
        let operation = ["policy.decide", "policy.revoke"][(number % 2) as usize];
        let members = with(members(number), json!({"operation": operation}));
        let answer = writer.append(append_of(number, &members)).await.unwrap();
        answers.push(answer.into_inner());
    }
    let before = all(auditor).await.receipts;
    // The day on which they are two days old is not over.
    let midnight_ms = START_MS - START_MS % DAY_MS + 3 * DAY_MS;
    world.clock.set(midnight_ms - 1);
    until_settled(&world, midnight_ms - 1).await;
    assert!(erased(&all(auditor).await.receipts).is_empty());
    world.clock.set(midnight_ms);
    let receipts = until_erased(auditor, 2).await;
    assert_eq!(erased(&receipts), [1, 3]);

    // What is left says nothing of the receipt, and is the same entry at the same time.
    let tombstone = &receipts[0];
    let buried = tombstone.tombstone.as_ref().unwrap();
    assert_eq!(buried.retention_class, "short");
    assert_eq!(buried.leaf.len(), 33);
    let only = RecordedReceipt {
        entry: Some(cl_wire::receipt::v1::LogEntry {
            sequence: 1,
            ..Default::default()
        }),
        recorded_at: before[0].recorded_at,
        tombstone: Some(buried.clone()),
        ..RecordedReceipt::default()
    };
    assert_eq!(*tombstone, only);

    // Proofs from before still verify, the log does too, and it says who erased what.
    let checkpoint = verify_proof("acme", &before[2].receipt, &answers[2].proof);
    assert_eq!(checkpoint.size(), 3);
    let checked = verify(auditor).await;
    assert_eq!((checked.checked_entries, checked.erased_entries), (5, 2));
    let facts = metadata(&receipts[4]);
    assert_eq!(facts["reason"], "retention.ended");
    assert_eq!(
        (
            &facts["erased"],
            &facts["first_entry"],
            &facts["last_entry"]
        ),
        (&json!("2"), &json!("1"), &json!("3"))
    );
    let reference = &answers[0].entry.as_ref().unwrap().receipt_ref;
    let gone = auditor.get_receipt(get("acme", reference)).await;
    assert_eq!(refusal(gone), refused(Code::NotFound, "RECEIPT_ERASED"));

    // The other class goes later; so do the receipts of erasures at last.
    world.clock.set(midnight_ms + 8 * DAY_MS);
    let receipts = until_erased(auditor, 4).await;
    assert_eq!(erased(&receipts), [1, 2, 3, 4]);
    assert_eq!(verified_entries(auditor).await, 6);
}

#[tokio::test]
async fn searches_find_nothing_of_what_was_erased() {
    let world = sweeping();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    for number in 0..6 {
        let operation = ["policy.decide", "policy.revoke"][(number % 2) as usize];
        let members = with(members(number), json!({"operation": operation}));
        writer.append(append_of(number, &members)).await.unwrap();
    }
    world.clock.advance(4 * DAY_MS);
    until_erased(auditor, 3).await;
    let search = |operation: Option<&str>| ListReceiptsRequest {
        tenant: "acme".to_owned(),
        subject_tag: Some(tag(1)),
        operation: operation.map(str::to_owned),
        page_size: 2,
        ..ListReceiptsRequest::default()
    };
    for (operation, found) in [
        (None, [2, 4].as_slice()),
        (Some("policy.revoke"), &[2, 4]),
        (Some("policy.decide"), &[]),
    ] {
        let page = auditor.list_receipts(search(operation)).await.unwrap();
        let page = page.into_inner();
        assert_eq!(page.total_size, if found.is_empty() { 0 } else { 3 });
        let sequences = page
            .receipts
            .iter()
            .map(|it| it.entry.as_ref().unwrap().sequence);
        assert_eq!(sequences.collect::<Vec<_>>(), found);
    }
    // Beside the entries nothing leads to them.
    let stored = kv_store(&world);
    let tenant = Tenant::parse("acme").unwrap();
    let subject = Selector::Subject(SubjectTag::parse(&tag(1)).unwrap());
    let places = stored.places(&tenant, &subject, 0, 100).unwrap();
    assert_eq!(places, [2, 4, 6]);
    let decisions = Selector::Operation("policy.decide".to_owned());
    assert!(
        stored
            .places(&tenant, &decisions, 0, 100)
            .unwrap()
            .is_empty()
    );
    assert!(
        stored
            .get(&Slot::Size(tenant, decisions))
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_clock_that_jumps_erases_nothing_until_it_has_lasted() {
    let world = World {
        max_clock_step: Duration::from_secs(20 * 3600),
        ..sweeping()
    };
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    writer.append(append(1)).await.unwrap();
    until_settled(&world, START_MS).await;
    world.clock.advance(30 * DAY_MS);
    // Ample time for what must not happen.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(erased(&all(auditor).await.receipts).is_empty());
    // Nor does a restart make it true: the settled time is stored.
    store.end().await;
    let store = world.start().await;
    let auditor = &mut world.client(store.addr, AUDITOR);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(erased(&all(auditor).await.receipts).is_empty());
    // Time that passes does.
    for half_days in 0..8 {
        let now_ms = START_MS + half_days * DAY_MS / 2;
        world.clock.set(now_ms);
        until_settled(&world, now_ms).await;
    }
    until_erased(auditor, 1).await;
}

#[tokio::test]
async fn a_fault_at_any_step_of_a_sweep_erases_all_or_nothing() {
    for action in [
        Action::Fail,
        Action::FailAfter,
        Action::Kill,
        Action::KillAfter,
    ] {
        for step in 0..2 {
            let mut world = World::new();
            let store = world.start().await;
            let writer = &mut world.client(store.addr, ENGINE);
            for number in 0..3 {
                writer.append(append(number)).await.unwrap();
            }
            store.end().await;
            world.clock.advance(4 * DAY_MS);
            world.retention_interval = Duration::from_millis(5);
            // The step after the first is the pin of the batch.
            world.points.plan(step, action);
            let store = world.start().await;
            within("the fault", async {
                while world.points.done().is_empty() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
            store.end().await;
            world.points = std::sync::Arc::default();
            let store = world.start().await;
            let auditor = &mut world.client(store.addr, AUDITOR);
            let receipts = until_erased(auditor, 3).await;
            assert_eq!(erased(&receipts), [1, 2, 3], "{action:?} {step}");
            assert_eq!(
                receipts.len(),
                4,
                "{action:?} {step}: one batch, one receipt"
            );
            assert_eq!(verified_entries(auditor).await, 4);
            store.end().await;
        }
    }
}

#[tokio::test]
async fn a_subject_is_erased_in_batches() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..600 {
        let mut request = append(number);
        let other = number % 10 == 0;
        request.routing.as_mut().unwrap().subject_tag = Some(tag(if other { 2 } else { 1 }));
        let mut writer = writer.clone();
        calls.spawn(async move { writer.append(request).await.map(drop) });
    }
    for answer in calls.join_all().await {
        answer.unwrap();
    }
    let operator = store.channel(world.authority.credentials(OPERATOR));
    let operator = &mut ReceiptAdminServiceClient::new(operator);
    let told = operator
        .erase_receipts(erase(1))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((told.erased, told.held), (540, 0));
    let told = operator
        .erase_receipts(erase(1))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((told.erased, told.held), (0, 0));
    let left = all(auditor).await;
    assert_eq!(erased(&left.receipts).len(), 540);
    let records = left.receipts.iter().filter(|it| it.routing.is_some());
    assert_eq!(records.count(), 60 + 3, "and a receipt for each batch");
    let checked = verify(auditor).await;
    assert_eq!(
        (checked.checked_entries, checked.erased_entries),
        (603, 540)
    );
}

#[tokio::test]
async fn what_was_done_cannot_be_done_again() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    let auditor = &mut world.client(store.addr, AUDITOR);
    writer.append(append(1)).await.unwrap();
    writer.begin(begin(2)).await.unwrap();
    writer.complete(complete(2)).await.unwrap();
    issuer
        .append(consumer_append(consumption(3)))
        .await
        .unwrap();
    // An operation that nobody ended in time.
    writer.begin(begin(4)).await.unwrap();
    world.clock.advance(70_000);
    within("the store's own receipt", async {
        while all(auditor).await.total_size < 4 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let operator = store.channel(world.authority.credentials(OPERATOR));
    let operator = &mut ReceiptAdminServiceClient::new(operator);
    let told = operator
        .erase_receipts(erase(1))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(told.erased, 4);
    let gone = refused(Code::NotFound, "RECEIPT_ERASED");
    assert_eq!(refusal(writer.append(append(1)).await), gone);
    assert_eq!(refusal(writer.begin(begin(2)).await), gone);
    assert_eq!(refusal(writer.complete(complete(2)).await), gone);
    assert_eq!(refusal(writer.complete(complete(4)).await), gone);
    assert_eq!(open_intents(writer).await.total_size, 0);
    let again = issuer.append(consumer_append(consumption(3))).await;
    assert_eq!(refusal(again), gone);
    let another = issuer.append(consumer_append(consumption(5))).await;
    let replay = refused(Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT");
    assert_eq!(refusal(another), replay);
    assert_eq!(verified_entries(auditor).await, 5);
}

#[tokio::test]
async fn what_superseded_an_erased_receipt_stays_and_nothing_new_supersedes_one() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    let first = first.entry.unwrap().receipt_ref;
    let correcting = |number| {
        let mut request = append_of(
            number,
            &with(members(number), json!({"supersedes_ref": first})),
        );
        request.routing.as_mut().unwrap().subject_tag = Some(tag(2));
        request
    };
    writer.append(correcting(2)).await.unwrap();
    let operator = store.channel(world.authority.credentials(OPERATOR));
    let operator = &mut ReceiptAdminServiceClient::new(operator);
    operator.erase_receipts(erase(1)).await.unwrap();
    assert_eq!(verified_entries(auditor).await, 3);
    let invalid = refused(Code::InvalidArgument, "INVALID_RECEIPT");
    assert_eq!(refusal(writer.append(correcting(3)).await), invalid);
}

#[tokio::test]
async fn an_erasure_is_refused_as_it_should_be() {
    let world = World::new();
    let store = world.start().await;
    let operator = store.channel(world.authority.credentials(OPERATOR));
    let operator = &mut ReceiptAdminServiceClient::new(operator);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    let changed = |change: fn(&mut EraseReceiptsRequest)| {
        let mut request = erase(1);
        change(&mut request);
        request
    };
    for request in [
        changed(|it| it.tenant.clear()),
        changed(|it| it.subject_tag.clear()),
        changed(|it| it.reason.clear()),
        changed(|it| it.reason = "A person's name".to_owned()),
        changed(|it| it.reason = "a".repeat(65)),
    ] {
        assert_eq!(refusal(operator.erase_receipts(request).await), invalid);
    }
    for path in [ENGINE, AUDITOR, ISSUER, "vault/cl-vault", "owner/one"] {
        let stranger = store.channel(world.authority.credentials(path));
        let stranger = &mut ReceiptAdminServiceClient::new(stranger);
        let denied = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
        assert_eq!(refusal(stranger.erase_receipts(erase(1)).await), denied);
    }
    // While the log cannot be written nothing goes, for the erasure would leave no receipt.
    let writer = &mut world.client(store.addr, ENGINE);
    let answer = writer.append(append(1)).await.unwrap().into_inner();
    world.points.plan(0, Action::Fail);
    let unavailable = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(
        refusal(operator.erase_receipts(erase(1)).await),
        unavailable
    );
    let auditor = &mut world.client(store.addr, AUDITOR);
    let asked = get("acme", &answer.entry.unwrap().receipt_ref);
    let GetReceiptResponse { receipt, .. } = auditor.get_receipt(asked).await.unwrap().into_inner();
    assert_eq!(
        receipt.unwrap().routing.unwrap().operation_id,
        operation_id(1)
    );
}
