//! What each reader sees: of a tenant, of a subject, of its own; nothing else exists.

use cl_testbed::{Serving, refusal, refused};
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{GetReceiptRequest, ListReceiptsRequest};
use http::StatusCode;
use tonic::Code;

use crate::log::file;
use crate::requests::{append, append_of, consumer_append, consumption, get, members, tag, with};
use crate::support::{AUDITOR, Client, ENGINE, GATEWAY, ISSUER, OPERATOR, World, verify};

const BOB: &str = "auditor/bob";
const REQUESTS: &str = "edge/requests";
const SUBJECT: &str = "owner/one";

/// One receipt of each kind: of subject 1 by the engine, of subject 2 by the engine, without a
/// subject by the engine, and a consumer's that the issuer passed on about subject 1. Their URNs.
async fn filled() -> (World, Serving, Vec<String>) {
    let world = World::new();
    let store = world.start().await;
    let engine = &mut world.client(store.addr, ENGINE);
    let mut references = Vec::new();
    for (number, tag) in [(1, Some(tag(1))), (2, Some(tag(2))), (3, None)] {
        let mut request = append(number);
        request.routing.as_mut().unwrap().subject_tag = tag;
        let answer = engine.append(request).await.unwrap().into_inner();
        references.push(answer.entry.unwrap().receipt_ref);
    }
    let issuer = &mut world.client(store.addr, ISSUER);
    let passed_on = issuer.append(consumer_append(consumption(4))).await;
    let passed_on = passed_on.unwrap().into_inner().entry.unwrap();
    references.push(passed_on.receipt_ref);
    (world, store, references)
}

fn listed(tenant: &str) -> ListReceiptsRequest {
    ListReceiptsRequest {
        tenant: tenant.to_owned(),
        ..ListReceiptsRequest::default()
    }
}

/// The sequences that a list shows; it says how many they are.
async fn list(reader: &mut Client, request: ListReceiptsRequest) -> Vec<u64> {
    let page = reader.list_receipts(request).await.unwrap().into_inner();
    assert_eq!(page.total_size, page.receipts.len() as u64);
    assert_eq!(page.next_page_token, "");
    let receipts = page.receipts.into_iter();
    receipts.map(|it| it.entry.unwrap().sequence).collect()
}

/// Which of these receipts can be read.
async fn read(reader: &mut Client, references: &[String], actor: Option<&str>) -> Vec<u64> {
    let mut found = Vec::new();
    for (sequence, reference) in (1..).zip(references) {
        let request = GetReceiptRequest {
            actor: actor.map(str::to_owned),
            ..get("acme", reference)
        };
        match reader.get_receipt(request).await {
            Ok(_) => found.push(sequence),
            hidden => assert_eq!(
                refusal(hidden),
                refused(Code::NotFound, "RECEIPT_NOT_FOUND"),
                "never more than that"
            ),
        }
    }
    found
}

#[tokio::test]
async fn each_role_reads_and_lists_its_own() {
    let (world, store, references) = filled().await;
    let none: &[u64] = &[];
    for (path, seen) in [
        (AUDITOR, [1, 2, 3, 4].as_slice()),
        (SUBJECT, &[1, 4]),
        (ISSUER, &[4]),
        (BOB, none),
        (REQUESTS, none),
    ] {
        let reader = &mut world.client(store.addr, path);
        assert_eq!(read(reader, &references, None).await, seen, "{path}");
        assert_eq!(list(reader, listed("acme")).await, seen, "{path}");
        assert_eq!(list(reader, listed("beta")).await, none, "{path}");
    }
    // A subject that asks for another one finds nobody, not itself.
    let subject = &mut world.client(store.addr, SUBJECT);
    for (byte, seen) in [(1, [1, 4].as_slice()), (2, none)] {
        let request = ListReceiptsRequest {
            subject_tag: Some(tag(byte)),
            ..listed("acme")
        };
        assert_eq!(list(subject, request).await, seen);
    }
    let about = ListReceiptsRequest {
        bundle_ref: Some("urn:cl:bundle:b1".to_owned()),
        ..listed("acme")
    };
    assert_eq!(list(subject, about.clone()).await, [4]);
    let issuer = &mut world.client(store.addr, ISSUER);
    assert_eq!(list(issuer, about.clone()).await, [4]);
    assert_eq!(list(&mut world.client(store.addr, BOB), about).await, none);
}

#[tokio::test]
async fn a_requester_reads_single_receipts_of_the_actor_it_names() {
    let (world, store, references) = filled().await;
    let requests = &mut world.client(store.addr, REQUESTS);
    let engine = Some("urn:cl:policy-engine:local");
    assert_eq!(read(requests, &references, engine).await, [1, 2, 3]);
    let recipient = Some("urn:agent:recipient");
    assert_eq!(read(requests, &references, recipient).await, [4]);
    assert!(read(requests, &references, Some("")).await.is_empty());
    // To a role that sees more, a name is a filter.
    let subject = &mut world.client(store.addr, SUBJECT);
    assert_eq!(read(subject, &references, engine).await, [1]);
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(read(auditor, &references, recipient).await, [4]);
}

#[tokio::test]
async fn the_log_itself_is_there_for_auditors_of_its_tenant() {
    let (world, store, _) = filled().await;
    for (path, entries, status) in [
        (AUDITOR, 4, StatusCode::OK),
        (GATEWAY, 4, StatusCode::OK),
        (BOB, 0, StatusCode::NOT_FOUND),
        (SUBJECT, 0, StatusCode::NOT_FOUND),
        (ISSUER, 0, StatusCode::NOT_FOUND),
        (REQUESTS, 0, StatusCode::NOT_FOUND),
    ] {
        let answer = verify(&mut world.client(store.addr, path)).await;
        assert_eq!(answer.checked_entries, entries, "{path}");
        let has_checkpoint =
            matches!(answer.result, Some(Verdict::Checkpoint(it)) if !it.is_empty());
        assert_eq!(has_checkpoint, entries > 0, "{path}");
        for name in ["checkpoint", "tile/0/000.p/4", "tile/entries/000.p/4"] {
            let name = format!("/tlog/acme/{name}");
            assert_eq!(file(&world, &store, path, &name).await.0, status, "{path}");
        }
    }
}

#[tokio::test]
async fn who_is_in_no_row_reads_nothing() {
    let (world, store, references) = filled().await;
    let denied = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    for path in [ENGINE, OPERATOR, "owner/two", "client/acme/app", "edge/eve"] {
        let reader = &mut world.client(store.addr, path);
        let answer = reader.get_receipt(get("acme", &references[0])).await;
        assert_eq!(refusal(answer), denied, "{path}");
        assert_eq!(refusal(reader.list_receipts(listed("acme")).await), denied);
    }
}

#[tokio::test]
async fn pages_of_a_role_hold_nothing_else() {
    let world = World::new();
    let store = world.start().await;
    let engine = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    for number in 0..40 {
        engine.append(append(number)).await.unwrap();
        let own = with(
            members(100 + number),
            serde_json::json!({
                "actor": "urn:cl:bundle-issuer:local",
                "operation": "bundle.issue",
            }),
        );
        issuer.append(append_of(100 + number, &own)).await.unwrap();
    }
    let mut request = ListReceiptsRequest {
        page_size: 7,
        ..listed("acme")
    };
    let mut seen = Vec::new();
    loop {
        let page = issuer.list_receipts(request.clone()).await.unwrap();
        let page = page.into_inner();
        assert_eq!(page.total_size, 40);
        seen.extend(
            page.receipts
                .into_iter()
                .map(|it| it.entry.unwrap().sequence),
        );
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, (1..=40).map(|number| number * 2).collect::<Vec<_>>());
}
