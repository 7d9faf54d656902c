//! Every way in which a request is refused, by code and reason.

use cl_testbed::{refusal, refused, spiffe_id};
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::{
    AppendRequest, BeginRequest, CompleteRequest, ListReceiptsRequest, PreflightRequest, Routing,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::requests::{
    BEGUN, append, append_of, begin, begun_members, bytes, complete, consumer_append, consumption,
    get, members, operation_id, routing, time, with, without,
};
use crate::support::{
    AUDITOR, Client, ENGINE, GATEWAY, ISSUER, START_MS, STORE, World, verified_entries,
};

async fn refuses(writer: &mut Client, request: AppendRequest, code: Code, reason: &str) {
    let answer = writer.append(request.clone()).await;
    assert_eq!(refusal(answer), refused(code, reason), "{request:?}");
}

#[tokio::test]
async fn receipts_that_break_a_rule() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let cases: Vec<(&str, Value)> = vec![
        ("INVALID_RECEIPT", without(members(1), &["actor"])),
        ("INVALID_RECEIPT", with(members(1), json!({"extra": "x"}))),
        (
            "INVALID_RECEIPT",
            with(members(1), json!({"id": "urn:cl:receipt:x"})),
        ),
        (
            "INVALID_RECEIPT",
            with(members(1), json!({"metadata": {"a": "x".repeat(513)}})),
        ),
        ("INVALID_RECEIPT", json!([1])),
        (
            "INVALID_DATE_TIME",
            with(members(1), json!({"started_at": "2030"})),
        ),
        (
            "INVALID_RECEIPT_TIME_RANGE",
            with(members(1), json!({"started_at": "2031-01-01T00:00:00Z"})),
        ),
        (
            "INVALID_DIGEST",
            with(members(1), json!({"input_digest": "sha256:00"})),
        ),
        (
            "RECEIPT_PAYLOAD_FORBIDDEN",
            with(members(1), json!({"payload_included": true})),
        ),
        (
            "RECEIPT_CONTAINS_FORBIDDEN_MATERIAL",
            with(members(1), json!({"metadata": {"api_key": "x"}})),
        ),
        (
            "DOCUMENT_TOO_LARGE",
            with(members(1), json!({"extra": "x".repeat(70_000)})),
        ),
    ];
    for (reason, members) in &cases {
        refuses(writer, append_of(1, members), Code::InvalidArgument, reason).await;
    }
    // The member at fault is named.
    let request = append_of(1, &with(members(1), json!({"started_at": "2030"})));
    let status = writer.append(request).await.unwrap_err();
    assert_eq!(cl_wire::status::violations(&status)[0].field, "started_at");
    for text in [&b"{"[..], b"{\"a\":1,\"a\":1}", b" {}", b""] {
        let request = AppendRequest {
            body: Some(Body::Members(text.to_vec())),
            ..append(1)
        };
        refuses(writer, request, Code::InvalidArgument, "INVALID_RECEIPT").await;
    }
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 0);
}

#[tokio::test]
async fn fields_that_do_not_parse() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    let routed = |routing: Option<Routing>| AppendRequest {
        routing,
        ..append(1)
    };
    let cases = [
        ("routing", routed(None)),
        (
            "routing.tenant",
            routed(Some(Routing {
                tenant: "A".to_owned(),
                ..routing(1)
            })),
        ),
        (
            "routing.operation_id",
            routed(Some(Routing {
                operation_id: "x".to_owned(),
                ..routing(1)
            })),
        ),
        (
            "routing.operation_id",
            routed(consumer_append(consumption(1)).routing),
        ),
        (
            "routing.subject_tag",
            routed(Some(Routing {
                subject_tag: Some("x".to_owned()),
                ..routing(1)
            })),
        ),
        (
            "body",
            AppendRequest {
                body: None,
                ..append(1)
            },
        ),
    ];
    for (field, request) in cases {
        let status = writer.append(request).await.unwrap_err();
        assert_eq!(cl_wire::status::violations(&status)[0].field, field);
        assert_eq!(refusal(Err::<(), _>(status)), invalid);
    }
    for deadline in [None, Some(time(-1000)), Some(time(START_MS + 86_400_001))] {
        let request = BeginRequest {
            deadline,
            ..begin(1)
        };
        assert_eq!(refusal(writer.begin(request).await), invalid);
    }
    for operations in [
        vec![],
        vec!["policy.x".to_owned(); 65],
        vec!["No".to_owned()],
    ] {
        let request = PreflightRequest {
            tenant: "acme".to_owned(),
            operations,
        };
        assert_eq!(refusal(writer.preflight(request).await), invalid);
    }
    let reader = &mut world.client(store.addr, GATEWAY);
    assert_eq!(refusal(reader.get_receipt(get("acme", "x")).await), invalid);
    let list = |change: fn(&mut ListReceiptsRequest)| {
        let mut request = ListReceiptsRequest {
            tenant: "acme".to_owned(),
            ..Default::default()
        };
        change(&mut request);
        request
    };
    for request in [
        list(|it| it.tenant.clear()),
        list(|it| it.subject_tag = Some(String::new())),
        list(|it| it.operation = Some("No".to_owned())),
        list(|it| it.page_size = 1001),
        list(|it| it.page_token = "x".to_owned()),
        list(|it| {
            it.recorded_from = Some(prost_types::Timestamp {
                seconds: 1,
                nanos: -1,
            })
        }),
    ] {
        assert_eq!(refusal(reader.list_receipts(request).await), invalid);
    }
    let answer = reader.get_receipt(get("acme", "urn:cl:receipt:x")).await;
    assert_eq!(
        refusal(answer),
        refused(Code::NotFound, "RECEIPT_NOT_FOUND")
    );
}

#[tokio::test]
async fn writers_stay_inside_their_rows() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    let denied = (Code::PermissionDenied, "OPERATION_NOT_ALLOWED");
    for changes in [
        json!({"actor": "urn:cl:bundle-issuer:local"}),
        json!({"operation": "bundle.issue"}),
        // Nobody speaks for the store, also not with a pattern that covers it.
        json!({"actor": spiffe_id(STORE), "operation": "operation.overdue"}),
    ] {
        let request = append_of(1, &with(members(1), changes.clone()));
        refuses(writer, request, denied.0, denied.1).await;
        let members = bytes(&with(begun_members(1), changes));
        let answer = writer
            .begin(BeginRequest {
                members,
                ..begin(1)
            })
            .await;
        assert_eq!(refusal(answer), refused(denied.0, denied.1));
    }
    // Passing on is the issuer's alone, and only for the recipient it authenticated.
    refuses(writer, consumer_append(consumption(1)), denied.0, denied.1).await;
    refuses(issuer, append_of(1, &consumption(1)), denied.0, denied.1).await;
    let mut request = consumer_append(consumption(1));
    if let Some(Body::ConsumerReceipt(receipt)) = &mut request.body {
        receipt.recipient = "urn:agent:other".to_owned();
    }
    refuses(issuer, request, denied.0, denied.1).await;
    let other = with(consumption(1), json!({"operation": "bundle.issue"}));
    refuses(issuer, consumer_append(other), denied.0, denied.1).await;
    let request = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned(), "bundle.issue".to_owned()],
    };
    let answer = writer.preflight(request).await;
    assert_eq!(refusal(answer), refused(denied.0, denied.1));
}

#[tokio::test]
async fn writers_receipts_that_do_not_name_their_operation() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let invalid = (Code::InvalidArgument, "INVALID_RECEIPT");
    let unnamed = [
        without(members(1), &["metadata"]),
        with(members(1), json!({"metadata": {}})),
        with(
            members(1),
            json!({"metadata": {"operation": "policy.decide"}}),
        ),
        with(
            members(1),
            json!({"metadata": {"operation_id": operation_id(2)}}),
        ),
    ];
    for members in &unnamed {
        let status = writer.append(append_of(1, members)).await.unwrap_err();
        assert_eq!(cl_wire::status::violations(&status)[0].field, "metadata");
        assert_eq!(refusal(Err::<(), _>(status)), refused(invalid.0, invalid.1));
    }
    // An intent may leave its metadata open, but not fix what cannot become its receipt.
    let fixed = with(
        begun_members(1),
        json!({"metadata": {"operation_id": operation_id(2)}}),
    );
    let request = BeginRequest {
        members: bytes(&fixed),
        ..begin(1)
    };
    let answer = writer.begin(request).await;
    assert_eq!(refusal(answer), refused(invalid.0, invalid.1));
    writer.begin(begin(1)).await.unwrap();
    for members in &unnamed {
        let request = CompleteRequest {
            members: bytes(&without(members.clone(), &BEGUN)),
            ..complete(1)
        };
        let answer = writer.complete(request).await;
        assert_eq!(refusal(answer), refused(invalid.0, invalid.1));
    }
    writer.complete(complete(1)).await.unwrap();
    // Consumers know nothing of our operations.
    let issuer = &mut world.client(store.addr, ISSUER);
    let request = consumer_append(without(consumption(2), &["metadata"]));
    issuer.append(request).await.unwrap();
}

#[tokio::test]
async fn consumers_receipts_that_were_changed() {
    let world = World::new();
    let store = world.start().await;
    let issuer = &mut world.client(store.addr, ISSUER);
    let mut request = consumer_append(consumption(1));
    if let Some(Body::ConsumerReceipt(receipt)) = &mut request.body {
        let text = String::from_utf8(receipt.receipt.clone()).unwrap();
        receipt.receipt = text.replace("success", "failure").into_bytes();
    }
    let reason = "RECORD_INTEGRITY_MISMATCH";
    refuses(issuer, request, Code::InvalidArgument, reason).await;
    let mut request = consumer_append(consumption(1));
    request.routing = consumer_append(consumption(2)).routing;
    refuses(issuer, request, Code::InvalidArgument, "INVALID_FIELD").await;
}

#[tokio::test]
async fn intents_that_cannot_be_taken_on() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let request = BeginRequest {
        deadline: Some(time(START_MS)),
        ..begin(1)
    };
    let passed = refused(Code::FailedPrecondition, "DEADLINE_PASSED");
    assert_eq!(refusal(writer.begin(request).await), passed);
    let begin_with = |members: Value| BeginRequest {
        members: bytes(&members),
        ..begin(1)
    };
    for members in [
        without(begun_members(1), &["actor"]),
        without(begun_members(1), &["subject_ref"]),
        with(begun_members(1), json!({"issuer": null})),
        with(
            begun_members(1),
            json!({"supersedes_ref": "urn:cl:receipt:x"}),
        ),
        with(begun_members(1), json!({"extra": "x"})),
        // Too long a name to be repeated in the store's own receipt.
        with(
            begun_members(1),
            json!({"operation": format!("policy.{}", "x".repeat(600))}),
        ),
    ] {
        let answer = writer.begin(begin_with(members)).await;
        assert_eq!(
            refusal(answer),
            refused(Code::InvalidArgument, "INVALID_RECEIPT")
        );
    }
    let members = with(begun_members(1), json!({"started_at": "x"}));
    let answer = writer.begin(begin_with(members)).await;
    assert_eq!(
        refusal(answer),
        refused(Code::InvalidArgument, "INVALID_DATE_TIME")
    );
}

#[tokio::test]
async fn a_bundle_is_consumed_once_by_an_actor() {
    let world = World::new();
    let store = world.start().await;
    let issuer = &mut world.client(store.addr, ISSUER);
    let failed = with(consumption(0), json!({"outcome": "failure"}));
    issuer.append(consumer_append(failed)).await.unwrap();
    issuer
        .append(consumer_append(consumption(1)))
        .await
        .unwrap();
    let again = consumer_append(consumption(2));
    refuses(
        issuer,
        again,
        Code::AlreadyExists,
        "RECEIPT_REPLAY_CONFLICT",
    )
    .await;
    let other = with(consumption(3), json!({"actor": "urn:agent:other"}));
    issuer.append(consumer_append(other)).await.unwrap();
    let other = with(consumption(4), json!({"bundle_ref": "urn:cl:bundle:b2"}));
    issuer.append(consumer_append(other)).await.unwrap();
}
