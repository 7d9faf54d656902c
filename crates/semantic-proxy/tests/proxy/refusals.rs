//! Calls that are refused, and peers that fail: nothing is disclosed.

use std::time::Duration;

use cl_testbed::{eventually, refusal, refused, spiffe_id, within};
use cl_wire::semantic::v1::ProjectClaimsRequest;
use serde_json::json;
use tonic::Code;

use crate::exchange::{DATE, Exchange, NOW_MS, bytes};
use crate::fakes::claim;
use crate::support::{World, message};

type Change = fn(&mut ProjectClaimsRequest);

#[tokio::test]
async fn malformed_calls_are_refused_before_anybody_is_asked() {
    let world = World::new().await;
    let running = world.start().await;
    let exchange = Exchange::new("r1");
    let changes: [(&str, &str, Change); 9] = [
        ("tenant", "INVALID_FIELD", |it| {
            it.tenant = "Acme".to_owned()
        }),
        ("operation_id", "INVALID_FIELD", |it| {
            it.operation_id = "x".to_owned()
        }),
        ("grant", "INVALID_FIELD", |it| it.grant = None),
        ("grant.scope_signature", "INVALID_FIELD", |it| {
            it.grant.as_mut().unwrap().scope_signature.pop();
        }),
        ("grant.plan_signature", "INVALID_FIELD", |it| {
            it.grant.as_mut().unwrap().plan_signature.clear();
        }),
        ("request", "INVALID_FIELD", |it| it.request.insert(0, b' ')),
        ("request", "INVALID_JSON", |it| it.request.clear()),
        ("request", "DOCUMENT_TOO_LARGE", |it| {
            it.request = vec![b'1'; 1_048_577]
        }),
        ("request", "INVALID_REQUEST", |it| {
            it.request = b"{}".to_vec()
        }),
    ];
    for (field, code, change) in changes {
        let mut message = message(&exchange, exchange.grant());
        change(&mut message);
        let error = running.send(message).await.unwrap_err();
        let violations = cl_wire::status::violations(&error);
        assert_eq!(
            refusal::<()>(Err(error)),
            refused(Code::InvalidArgument, code),
            "{field}"
        );
        assert!(violations[0].field.starts_with(field), "{field}");
    }
    assert_eq!(world.vault.calls(), 0);
    assert!(world.receipts.log().is_empty());
}

#[tokio::test]
async fn every_attack_on_a_grant_is_refused_before_the_vault_is_asked() {
    let world = World::new().await;
    let running = world.start().await;
    let exchange = Exchange::new("r1");
    for (code, grant) in exchange.bad_grants(&spiffe_id("exchange/cl-semantic-proxy")) {
        let answer = running.send(message(&exchange, grant)).await;
        assert_eq!(
            refusal(answer),
            refused(Code::PermissionDenied, code),
            "{code}"
        );
    }
    // The same request with other contents.
    let mut other = exchange.clone();
    other.request["purpose"] = json!("another purpose");
    let mut swapped = message(&exchange, exchange.grant());
    swapped.request = bytes(&other.request);
    let mismatch = refused(Code::PermissionDenied, "GRANT_MISMATCH");
    assert_eq!(refusal(running.send(swapped).await), mismatch);
    // Another tenant than the grant's.
    let mut foreign = message(&exchange, exchange.grant());
    foreign.tenant = "another".to_owned();
    let mismatch = refused(Code::PermissionDenied, "TENANT_MISMATCH");
    assert_eq!(refusal(running.send(foreign).await), mismatch);
    // A grant that was good a while ago.
    world.clock.set(NOW_MS + 300_000);
    let expired = refused(Code::PermissionDenied, "GRANT_EXPIRED");
    assert_eq!(refusal(running.project(&exchange).await), expired);
    assert_eq!(world.vault.calls(), 0);
    assert!(world.receipts.log().is_empty());
    assert_eq!(world.receipts.open_intents(), 0);
}

#[tokio::test]
async fn the_vault_is_not_asked_without_an_announced_receipt() {
    let world = World::new().await;
    let running = world.start().await;
    world.receipts.set_begin_down(true);
    let error = running.project(&Exchange::new("r1")).await.unwrap_err();
    assert!(cl_wire::status::retry_delay(&error).is_some());
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal::<()>(Err(error)), away);
    assert_eq!(world.vault.calls(), 0);
}

#[tokio::test]
async fn nothing_leaves_before_its_receipt_is_durable() {
    let world = World::new().await;
    let running = world.start().await;
    let exchange = Exchange::new("r1");
    let good = claim(DATE, "date", &json!("2026-08-14"), &exchange.handle("e:1"));
    world.vault.set_claims(vec![good]);
    world.receipts.set_complete_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(running.project(&exchange).await), away);
    assert_eq!(world.receipts.open_intents(), 1);
    world.receipts.set_complete_down(false);
    // A proxy that starts settles it once nobody can be at work on it any more.
    world.clock.advance(61_000);
    let _again = world.start().await;
    let receipts = world.receipts.clone();
    eventually("the settlement", || receipts.open_intents() == 0).await;
    let receipt = world.receipts.last();
    assert_eq!(receipt["outcome"], "failure");
    assert_eq!(receipt["metadata"]["code"], "ABANDONED");
    assert_eq!(receipt["decision_ref"], exchange.decision_id());
}

#[tokio::test]
async fn refusals_of_the_vault_are_passed_on_by_known_codes_only() {
    for (theirs, ours) in [
        (
            (Code::PermissionDenied, "GRANT_EXPIRED"),
            (Code::PermissionDenied, "GRANT_EXPIRED"),
        ),
        (
            (Code::PermissionDenied, "CALLER_NOT_ALLOWED"),
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
        ),
        (
            (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
            (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
        ),
        (
            (Code::Unavailable, "SERVICE_UNAVAILABLE"),
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
        ),
        (
            (Code::DataLoss, "STORE_CORRUPT"),
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
        ),
        (
            (Code::FailedPrecondition, "SOMETHING_NEW"),
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
        ),
    ] {
        let world = World::new().await;
        let running = world.start().await;
        world.vault.set_refusing(Some(theirs));
        let answer = refusal(running.project(&Exchange::new("r1")).await);
        assert_eq!(answer, refused(ours.0, ours.1));
        let receipt = world.receipts.last();
        assert_eq!(
            (&receipt["outcome"], &receipt["metadata"]["code"]),
            (&json!("failure"), &json!(ours.1))
        );
    }
}

#[tokio::test]
async fn a_vault_that_is_away_is_said_so() {
    let mut world = World::new().await;
    let other = World::new().await;
    let running = world.start().await;
    std::mem::replace(&mut world.vault_server, other.vault_server)
        .kill()
        .await;
    let mut call = tonic::Request::new(message(&Exchange::new("r1"), Exchange::new("r1").grant()));
    call.set_timeout(Duration::from_secs(20));
    let mut proxy = running.proxy.clone();
    let answer = within("an answer", proxy.project_claims(call)).await;
    assert_eq!(
        refusal(answer),
        refused(Code::Unavailable, "VAULT_UNAVAILABLE")
    );
}
