//! Messages whose typed fields are malformed are refused by field, and never repeated.

use cl_testbed::{refusal, refused, within};
use cl_wire::vault::v1::{
    CaptureEventsRequest, EraseEventRequest, EraseSubjectRequest, ListClaimsRequest,
    ListEventsRequest, ResolveClaimsRequest,
};
use tonic::{Code, Status};

use crate::documents::{DATE, GrantDraft, SUBJECT, TENANT, batch, item, operation};
use crate::support::World;

fn field<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let status = answer.unwrap_err();
    let violations = cl_wire::status::violations(&status);
    assert_eq!(violations.len(), 1, "{status:?}");
    let refused_as = refused(Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal::<()>(Err(status)), refused_as);
    violations[0].field.clone()
}

#[tokio::test]
async fn names_the_malformed_field_of_a_batch() {
    let world = World::new().await;
    let running = world.start().await;
    let good = || batch(vec![item("m1", "Launch", &[])], 1);
    let changed = |change: fn(&mut CaptureEventsRequest)| {
        let mut message = good();
        change(&mut message);
        message
    };
    for (message, name) in [
        (changed(|it| it.tenant = "ACME".to_owned()), "tenant"),
        (changed(|it| it.subject_ref = "v".to_owned()), "subject_ref"),
        (
            changed(|it| it.operation_id = "1".to_owned()),
            "operation_id",
        ),
        (changed(|it| it.items.clear()), "items"),
        (
            changed(|it| it.owner_addresses = vec![String::new()]),
            "owner_addresses",
        ),
        (
            changed(|it| it.owner_addresses = vec!["a@b".to_owned(); 33]),
            "owner_addresses",
        ),
    ] {
        assert_eq!(field(running.capture(message).await), name);
    }
    let too_large = refused(Code::InvalidArgument, "DOCUMENT_TOO_LARGE");
    let many = changed(|it| it.items = vec![it.items[0].clone(); 65]);
    assert_eq!(refusal(running.capture(many).await), too_large);
    let wide = changed(|it| it.subject_ref = "x".repeat(3 * 1024 * 1024));
    assert_eq!(refusal(running.capture(wide).await), too_large);
    assert!(world.receipts.log().is_empty());
}

#[tokio::test]
async fn names_the_malformed_field_of_a_resolution() {
    let world = World::new().await;
    let running = world.start().await;
    let changed = |change: fn(&mut ResolveClaimsRequest)| {
        let mut message = GrantDraft::new("r1", &[DATE]).call(1);
        change(&mut message);
        message
    };
    for (message, name) in [
        (changed(|it| it.tenant = String::new()), "tenant"),
        (
            changed(|it| it.operation_id = String::new()),
            "operation_id",
        ),
        (changed(|it| it.grant = None), "grant"),
        (changed(|it| it.request.push(b' ')), "request"),
        (
            changed(|it| it.grant.as_mut().unwrap().scope_signature.truncate(63)),
            "grant.scope_signature",
        ),
        (
            changed(|it| it.grant.as_mut().unwrap().plan_signature.clear()),
            "grant.plan_signature",
        ),
    ] {
        assert_eq!(field(running.resolve(message).await), name);
    }
    let invalid = |reason| refused(Code::InvalidArgument, reason);
    for (message, reason) in [
        (changed(|it| it.request = b"{".to_vec()), "INVALID_JSON"),
        (changed(|it| it.request = b"{}".to_vec()), "INVALID_REQUEST"),
        (
            changed(|it| it.request = vec![b' '; 1024 * 1024 + 1]),
            "DOCUMENT_TOO_LARGE",
        ),
        (
            changed(|it| it.grant.as_mut().unwrap().plan = vec![b' '; 1024 * 1024 + 1]),
            "DOCUMENT_TOO_LARGE",
        ),
    ] {
        assert_eq!(refusal(running.resolve(message).await), invalid(reason));
    }
}

#[tokio::test]
async fn names_the_malformed_field_of_an_owners_call() {
    let world = World::new().await;
    let running = world.start().await;
    let mut owner = running.owner.clone();
    let (tenant, subject_ref) = (TENANT.to_owned(), SUBJECT.to_owned());
    let events = ListEventsRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        ..ListEventsRequest::default()
    };
    let claims = ListClaimsRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        ..ListClaimsRequest::default()
    };
    let subject = EraseSubjectRequest {
        tenant: tenant.clone(),
        subject_ref: subject_ref.clone(),
        operation_id: operation(1),
    };
    let event = EraseEventRequest {
        tenant,
        subject_ref,
        event_ref: "urn:cl:event:a".to_owned(),
        operation_id: operation(1),
    };
    let mut found = Vec::new();
    for (page_size, page_token) in [(1001, ""), (1, "not a token"), (1, "AAAA")] {
        let mut events = events.clone();
        events.page_size = page_size;
        events.page_token = page_token.to_owned();
        found.push(field(within("a list", owner.list_events(events)).await));
    }
    for predicate in ["A", "x y", ""] {
        let mut claims = claims.clone();
        claims.predicate = Some(predicate.to_owned());
        found.push(field(within("a list", owner.list_claims(claims)).await));
    }
    let mut changed = subject.clone();
    changed.operation_id = "1".to_owned();
    found.push(field(owner.erase_subject(changed).await));
    let mut changed = event.clone();
    changed.event_ref = "urn:cl:claim:a".to_owned();
    found.push(field(owner.erase_event(changed).await));
    let expected = [
        "page_size",
        "page_token",
        "page_token",
        "predicate",
        "predicate",
        "predicate",
        "operation_id",
        "event_ref",
    ];
    assert_eq!(found, expected);
}
