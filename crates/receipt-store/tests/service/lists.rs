//! Lists: what they hold, in pages, and for whom.

use cl_kv::{Changes, Kind, Range, Tenant};
use cl_testbed::{Serving, refusal, refused};
use cl_wire::receipt::v1::{ListOpenRequest, ListReceiptsRequest};
use serde_json::json;
use tonic::Code;

use crate::requests::{append_of, begin, get, members, tag, time, with};
use crate::support::{AUDITOR, Client, ENGINE, GATEWAY, ISSUER, START_MS, World, sealed};

/// Twelve receipts, a second apart: of two subjects, of two operations, all of one tenant.
async fn filled() -> (World, Serving) {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    for number in 0..12 {
        world
            .clock
            .set(START_MS + 1000 * i64::try_from(number).unwrap());
        let operation = ["policy.decide", "policy.revoke"][(number / 2 % 2) as usize];
        let members = with(members(number), json!({"operation": operation}));
        let mut request = append_of(number, &members);
        request.routing.as_mut().unwrap().subject_tag = Some(tag((number % 2) as u8));
        writer.append(request).await.unwrap();
    }
    (world, store)
}

fn all() -> ListReceiptsRequest {
    ListReceiptsRequest {
        tenant: "acme".to_owned(),
        ..Default::default()
    }
}

/// The sequences on all pages, which each have at most three receipts.
async fn sequences(reader: &mut Client, mut request: ListReceiptsRequest) -> Vec<u64> {
    let mut sequences = Vec::new();
    request.page_size = 3;
    loop {
        let page = reader
            .list_receipts(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert!(page.receipts.len() <= 3);
        let receipts = page.receipts.into_iter();
        sequences.extend(receipts.map(|receipt| receipt.entry.unwrap().sequence));
        if page.next_page_token.is_empty() {
            assert_eq!(page.total_size, sequences.len() as u64);
            return sequences;
        }
        request.page_token = page.next_page_token;
    }
}

#[tokio::test]
async fn filters_combine() {
    let (world, store) = filled().await;
    let reader = &mut world.client(store.addr, GATEWAY);
    assert_eq!(sequences(reader, all()).await, (1..=12).collect::<Vec<_>>());
    let subject = ListReceiptsRequest {
        subject_tag: Some(tag(1)),
        ..all()
    };
    assert_eq!(
        sequences(reader, subject.clone()).await,
        [2, 4, 6, 8, 10, 12]
    );
    let operation = ListReceiptsRequest {
        operation: Some("policy.revoke".to_owned()),
        ..all()
    };
    assert_eq!(
        sequences(reader, operation.clone()).await,
        [3, 4, 7, 8, 11, 12]
    );
    let both = ListReceiptsRequest {
        subject_tag: Some(tag(1)),
        ..operation
    };
    assert_eq!(sequences(reader, both.clone()).await, [4, 8, 12]);
    let timed = ListReceiptsRequest {
        recorded_from: Some(time(START_MS + 3001)),
        recorded_before: Some(time(START_MS + 11_000)),
        ..both
    };
    assert_eq!(sequences(reader, timed).await, [8]);
    let from = ListReceiptsRequest {
        recorded_from: Some(time(START_MS + 3000)),
        recorded_before: Some(time(START_MS + 6000)),
        ..all()
    };
    assert_eq!(sequences(reader, from.clone()).await, [4, 5, 6]);
    let backwards = ListReceiptsRequest {
        recorded_from: from.recorded_before,
        recorded_before: from.recorded_from,
        ..all()
    };
    assert!(sequences(reader, backwards).await.is_empty());
    let nobody = ListReceiptsRequest {
        subject_tag: Some(tag(9)),
        ..all()
    };
    assert!(sequences(reader, nobody).await.is_empty());
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let (world, store) = filled().await;
    let reader = &mut world.client(store.addr, GATEWAY);
    let other = ListReceiptsRequest {
        tenant: "beta".to_owned(),
        ..all()
    };
    assert!(sequences(reader, other).await.is_empty());
    let page = reader.list_receipts(all()).await.unwrap().into_inner();
    let reference = &page.receipts[0].entry.as_ref().unwrap().receipt_ref;
    assert!(reader.get_receipt(get("acme", reference)).await.is_ok());
    let answer = reader.get_receipt(get("beta", reference)).await;
    assert_eq!(
        refusal(answer),
        refused(Code::NotFound, "RECEIPT_NOT_FOUND")
    );
    // The same operation id is free in another tenant.
    let writer = &mut world.client(store.addr, ENGINE);
    let mut request = append_of(1, &members(1));
    request.routing.as_mut().unwrap().tenant = "beta".to_owned();
    assert!(writer.append(request).await.is_ok());
}

#[tokio::test]
async fn page_tokens_hold_for_their_caller_and_query_only() {
    let (world, store) = filled().await;
    let reader = &mut world.client(store.addr, GATEWAY);
    let first = ListReceiptsRequest {
        page_size: 5,
        ..all()
    };
    let token = reader.list_receipts(first).await.unwrap().into_inner();
    let next = ListReceiptsRequest {
        page_token: token.next_page_token,
        ..all()
    };
    assert!(reader.list_receipts(next.clone()).await.is_ok());
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    let other_query = ListReceiptsRequest {
        operation: Some("policy.decide".to_owned()),
        ..next.clone()
    };
    let answer = reader.list_receipts(other_query).await;
    assert_eq!(refusal(answer), invalid);
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(refusal(auditor.list_receipts(next.clone()).await), invalid);
    let changed = ListReceiptsRequest {
        page_token: next.page_token[1..].to_owned(),
        ..next.clone()
    };
    assert_eq!(refusal(reader.list_receipts(changed).await), invalid);
    let writer = &mut world.client(store.addr, ENGINE);
    let open = ListOpenRequest {
        page_token: next.page_token,
        ..Default::default()
    };
    assert_eq!(refusal(writer.list_open(open).await), invalid);
}

#[tokio::test]
async fn open_intents_are_the_callers_own_by_deadline() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    for number in 0..5 {
        let mut request = begin(number);
        let away = 60_000 - 1000 * i64::try_from(number).unwrap();
        request.deadline = Some(time(START_MS + away));
        if number == 2 {
            request.routing.as_mut().unwrap().tenant = "beta".to_owned();
        }
        writer.begin(request).await.unwrap();
    }
    let mut request = ListOpenRequest {
        page_size: 2,
        ..Default::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = writer
            .list_open(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page.total_size, 5);
        seen.extend(
            page.intents
                .into_iter()
                .map(|it| it.routing.unwrap().operation_id),
        );
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    let expected: Vec<_> = (0..5).rev().map(crate::requests::operation_id).collect();
    assert_eq!(seen, expected);
    let other = &mut world.client(store.addr, ISSUER);
    let page = other.list_open(ListOpenRequest::default()).await.unwrap();
    assert_eq!(page.into_inner().total_size, 0);
}

/// A store whose lists have the form from before: numbered places, and no mark of the new form.
fn put_back_numbered_lists(world: &World) {
    let store = sealed(world.engine.clone());
    let tenant = Tenant::parse("acme").unwrap();
    let listed = Range::of(tenant.key(Kind::new("listed")), 1000);
    let mut changes = Changes::new().delete(Tenant::process().key(Kind::new("lists")));
    for found in store.scan(&listed).unwrap() {
        changes = changes.delete(found.key);
    }
    for number in 1..=12_u64 {
        let place = tenant.key(Kind::new("place")).number(2).private("x");
        changes = changes.put(place.number(number), vec![8, 1]);
    }
    store.apply(&changes).unwrap();
}

#[tokio::test]
async fn lists_of_the_form_before_are_made_anew() {
    let (world, store) = filled().await;
    store.end().await;
    put_back_numbered_lists(&world);
    let store = world.start().await;
    let reader = &mut world.client(store.addr, GATEWAY);
    let both = ListReceiptsRequest {
        subject_tag: Some(tag(1)),
        operation: Some("policy.revoke".to_owned()),
        ..all()
    };
    assert_eq!(sequences(reader, both).await, [4, 8, 12]);
    let subject = ListReceiptsRequest {
        subject_tag: Some(tag(1)),
        ..all()
    };
    assert_eq!(sequences(reader, subject).await, [2, 4, 6, 8, 10, 12]);
    let stored = sealed(world.engine.clone());
    let tenant = Tenant::parse("acme").unwrap();
    let numbered = Range::of(tenant.key(Kind::new("place")), 10);
    assert!(stored.scan(&numbered).unwrap().is_empty());
}
