//! Issuing: at most one bundle for one decision, and never more than the grant allows.

use cl_model::document::{Signed, Verified};
use cl_model::grant::ScopeStatement;
use cl_model::key::Signature;
use cl_model::notes::DisclosureNotes;
use cl_testbed::{eventually, refusal, refused, spiffe_id};
use cl_wire::bundle::v1::IssueBundleRequest;
use cl_wire::semantic::v1::{AppliedTransform, ProjectedItem};
use serde_json::json;
use tonic::Code;

use crate::exchange::{
    AMOUNT, DATE, Exchange, NOW_MS, PERSON, RECIPIENT, bytes, decision_key, operation,
};
use crate::fakes::item;
use crate::support::{World, issue_message, items, keys, open, reference};

fn signed(document: Vec<u8>, signature: Vec<u8>) -> Signed {
    Signed {
        document,
        signature: Signature::new(signature.try_into().unwrap()),
    }
}

#[tokio::test]
async fn issues_what_a_consumer_opens() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let issued = running.issue(&exchange).await.unwrap();
    let expires_at = issued.expires_at.unwrap();
    assert_eq!(expires_at.seconds * 1000, NOW_MS + 300_000);
    let delivery = running.redeem(&issued.bundle_ref, None, 2).await.unwrap();
    assert!(!delivery.repeated);

    let bundle = open(&delivery.envelope);
    let contents = bundle.bundle();
    assert_eq!(contents.id.as_str(), issued.bundle_ref);
    assert_eq!(contents.recipient.as_str(), RECIPIENT);
    assert_eq!(contents.subject_alias.as_str(), exchange.alias());
    assert_eq!(
        contents.issuer.id.as_str(),
        spiffe_id("exchange/cl-bundle-issuer")
    );
    assert_eq!(contents.context.len(), 2);
    assert_eq!(contents.instructions.len(), 1);
    let references: Vec<_> = contents
        .provenance
        .values()
        .map(|it| it.reference.as_str())
        .collect();
    assert!(references.contains(&reference(&exchange, "e:1").as_str()));

    let grant = exchange.grant();
    assert_eq!(delivery.scope_statement, grant.scope_statement);
    let scope = signed(delivery.scope_statement, delivery.scope_signature);
    let trusted = [decision_key().public_key()].into_iter().collect();
    let scope = Verified::<ScopeStatement>::open(&scope, &trusted).unwrap();
    scope.check_bundle(&bundle).unwrap();
    let notes = signed(delivery.notes, delivery.notes_signature);
    let trusted = [keys().notes.public_key()].into_iter().collect();
    let notes = Verified::<DisclosureNotes>::open(&notes, &trusted).unwrap();
    notes.check_bundle(&bundle).unwrap();
    for item in contents.context.iter() {
        let note = notes.note(item).unwrap();
        assert_eq!(note.trust.as_str(), "verified");
        assert_eq!(note.transforms[0].transform.as_str(), "generalise");
    }
    let receipt = &world.peers.receipts.of("bundle.issue")[0];
    assert_eq!(receipt.receipt["bundle_ref"], issued.bundle_ref);
    assert_eq!(receipt.receipt["metadata"]["items"], "2");
    assert_eq!(
        receipt.routing.subject_tag.as_deref(),
        Some("t".repeat(43).as_str())
    );
}

#[tokio::test]
async fn a_repeat_returns_the_same_bundle() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let first = running.issue(&exchange).await.unwrap();
    world.clock.advance(1000);
    assert_eq!(running.issue(&exchange).await.unwrap(), first);
    running.kill().await;
    let again = world.start().await;
    assert_eq!(again.issue(&exchange).await.unwrap(), first);
    assert_eq!(world.peers.proxy.calls(), 1);
    assert_eq!(world.peers.receipts.of("bundle.issue").len(), 1);
}

#[tokio::test]
async fn parallel_calls_issue_one_bundle() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let held = world
        .peers
        .proxy
        .gate
        .acquire_many(cl_testbed::TURNS)
        .await
        .unwrap();
    let calls = running.calls.clone();
    let first = tokio::spawn({
        let exchange = exchange.clone();
        async move { calls.issue(&exchange).await }
    });
    let proxy = world.peers.proxy.clone();
    eventually("the first call", || proxy.calls() == 1).await;
    let error = running.issue(&exchange).await.unwrap_err();
    assert!(cl_wire::status::retry_delay(&error).is_some());
    assert_eq!(
        refusal::<()>(Err(error)),
        refused(Code::Aborted, "ISSUE_IN_PROGRESS")
    );
    drop(held);
    let issued = first.await.unwrap().unwrap();
    assert_eq!(running.issue(&exchange).await.unwrap(), issued);
    assert_eq!(proxy.calls(), 1);
}

#[tokio::test]
async fn a_caller_that_hangs_up_leaves_a_finished_issue() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let held = world
        .peers
        .proxy
        .gate
        .acquire_many(cl_testbed::TURNS)
        .await
        .unwrap();
    let calls = running.calls.clone();
    let call = tokio::spawn({
        let exchange = exchange.clone();
        async move { calls.issue(&exchange).await }
    });
    let proxy = world.peers.proxy.clone();
    eventually("the call", || proxy.calls() == 1).await;
    call.abort();
    drop(held);
    let receipts = world.peers.receipts.clone();
    eventually("the issue", || receipts.of("bundle.issue").len() == 1).await;
    running.issue(&exchange).await.unwrap();
    assert_eq!(proxy.calls(), 1);
}

#[tokio::test]
async fn an_attempt_that_died_is_taken_over_after_its_lease() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let held = world
        .peers
        .proxy
        .gate
        .acquire_many(cl_testbed::TURNS)
        .await
        .unwrap();
    let calls = running.calls.clone();
    let call = tokio::spawn({
        let exchange = exchange.clone();
        async move { calls.issue(&exchange).await }
    });
    let proxy = world.peers.proxy.clone();
    eventually("the call", || proxy.calls() == 1).await;
    let again = world.start().await;
    let waiting = refused(Code::Aborted, "ISSUE_IN_PROGRESS");
    assert_eq!(refusal(again.issue(&exchange).await), waiting);
    world.clock.advance(30_000);
    let calls = again.calls.clone();
    let second = tokio::spawn({
        let exchange = exchange.clone();
        async move { calls.issue(&exchange).await }
    });
    eventually("the second call", || proxy.calls() == 2).await;
    drop(held);
    // The attempt that was given up stores nothing, whichever comes to its end first.
    let issued = second.await.unwrap().unwrap();
    match call.await.unwrap() {
        Ok(first) => assert_eq!(first, issued),
        Err(status) => assert_eq!(refusal::<()>(Err(status)), waiting),
    }
    assert_eq!(running.issue(&exchange).await.unwrap(), issued);
    assert_eq!(world.peers.receipts.of("bundle.issue").len(), 1);
}

type Change = fn(&mut IssueBundleRequest);

#[tokio::test]
async fn malformed_calls_are_refused_before_anybody_is_asked() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let changes: [(&str, Change); 8] = [
        ("INVALID_FIELD", |it| it.tenant = "Acme".to_owned()),
        ("INVALID_FIELD", |it| {
            it.operation_id = operation(1).to_uppercase()
        }),
        ("INVALID_FIELD", |it| it.grant = None),
        ("INVALID_FIELD", |it| {
            it.grant.as_mut().unwrap().plan_signature.push(0)
        }),
        ("INVALID_FIELD", |it| it.request.push(b' ')),
        ("DOCUMENT_TOO_LARGE", |it| {
            it.request = vec![b'1'; 1_048_577]
        }),
        ("INVALID_REQUEST", |it| it.request = b"{}".to_vec()),
        ("DUPLICATE_MEMBER", |it| {
            it.request = b"{\"a\":1,\"a\":1}".to_vec()
        }),
    ];
    for (code, change) in changes {
        let mut message = issue_message(&exchange, exchange.grant());
        change(&mut message);
        let answer = refusal(running.issue_with(message).await);
        assert_eq!(answer, refused(Code::InvalidArgument, code));
    }
    assert_eq!(world.peers.proxy.calls(), 0);
}

#[tokio::test]
async fn every_attack_on_a_grant_is_refused_before_the_proxy_is_asked() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    for (code, grant) in exchange.bad_grants(&spiffe_id("exchange/cl-bundle-issuer")) {
        let answer = running.issue_with(issue_message(&exchange, grant)).await;
        assert_eq!(
            refusal(answer),
            refused(Code::PermissionDenied, code),
            "{code}"
        );
    }
    let mut other = exchange.clone();
    other.request["purpose"] = json!("another purpose");
    let mut swapped = issue_message(&exchange, exchange.grant());
    swapped.request = bytes(&other.request);
    let mismatch = refused(Code::PermissionDenied, "GRANT_MISMATCH");
    assert_eq!(refusal(running.issue_with(swapped).await), mismatch);
    let mut foreign = issue_message(&exchange, exchange.grant());
    foreign.tenant = "another".to_owned();
    let mismatch = refused(Code::PermissionDenied, "TENANT_MISMATCH");
    assert_eq!(refusal(running.issue_with(foreign).await), mismatch);
    world.clock.advance(300_000);
    let expired = refused(Code::PermissionDenied, "GRANT_EXPIRED");
    assert_eq!(refusal(running.issue(&exchange).await), expired);
    assert_eq!(world.peers.proxy.calls(), 0);
    assert!(world.peers.receipts.log().is_empty());
}

#[tokio::test]
async fn an_operation_id_serves_one_decision() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    running.issued(&exchange).await;
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(running.issue(&Exchange::new("r2")).await), conflict);
    assert_eq!(world.peers.proxy.calls(), 1);
}

type ItemChange = fn(&mut ProjectedItem);

#[tokio::test]
async fn refuses_a_proxy_that_sends_something_else_than_the_plan_allows() {
    let changes: [(&str, ItemChange); 12] = [
        ("another predicate", |it| it.predicate = "salary".to_owned()),
        ("no text", |it| it.claim = String::new()),
        ("a line break", |it| it.claim.push('\n')),
        ("too long", |it| it.claim = "x".repeat(2001)),
        ("too unsure", |it| it.confidence = 0.4),
        ("another status", |it| it.status = "retracted".to_owned()),
        ("no trust", |it| it.trust = String::new()),
        ("no source", |it| it.provenance_handles.clear()),
        ("a raw source", |it| {
            it.provenance_handles = vec!["vault://e/1".to_owned()]
        }),
        ("another JSON", |it| it.value = b"{ }".to_vec()),
        ("no transform", |it| it.transforms[0].name = "A".to_owned()),
        ("too many transforms", |it| {
            it.transforms = vec![
                AppliedTransform {
                    name: "a".to_owned(),
                    confidence: 1.0,
                };
                17
            ];
        }),
    ];
    for (name, change) in changes {
        let exchange = Exchange::new("r1");
        let world = World::new().await;
        let running = world.start().await;
        let mut sent = items(&exchange);
        change(&mut sent[0]);
        world.peers.proxy.set_items(sent);
        let answer = refusal(running.issue(&exchange).await);
        let expected = refused(Code::FailedPrecondition, "PROXY_ANSWER_INVALID");
        assert_eq!(answer, expected, "{name}");
        let receipt = &world.peers.receipts.of("bundle.issue")[0].receipt;
        assert_eq!(receipt["outcome"], "failure");
        assert_eq!(receipt["metadata"]["code"], "PROXY_ANSWER_INVALID");
    }
}

#[tokio::test]
async fn what_no_bundle_can_carry_is_final() {
    let exchange = Exchange::new("r1");
    let handle = exchange.handle("e:1");
    let secret = "vault://subjects/primary/raw";
    let rows = [
        (vec![], "NO_CONTEXT_GRANTED"),
        (
            vec![item(DATE, "x", &json!("x"), &handle); 65],
            "PROXY_ANSWER_INVALID",
        ),
        (
            vec![item(PERSON, "x", &json!(secret), &handle)],
            "BUNDLE_CONTAINS_FORBIDDEN_MATERIAL",
        ),
        (
            vec![item(PERSON, secret, &json!("x"), &handle)],
            "BUNDLE_CONTAINS_FORBIDDEN_MATERIAL",
        ),
    ];
    for (sent, code) in rows {
        let world = World::new().await;
        let running = world.start().await;
        world.peers.proxy.set_items(sent);
        let expected = refused(Code::FailedPrecondition, code);
        assert_eq!(refusal(running.issue(&exchange).await), expected);
        // Later items change nothing: the decision has had its answer.
        world.peers.proxy.set_items(items(&exchange));
        assert_eq!(refusal(running.issue(&exchange).await), expected);
        running.kill().await;
        let again = world.start().await;
        assert_eq!(refusal(again.issue(&exchange).await), expected);
        assert_eq!(world.peers.proxy.calls(), 1);
        assert_eq!(world.peers.receipts.of("bundle.issue").len(), 1);
    }
}

#[tokio::test]
async fn a_bundle_never_goes_beyond_its_scope_statement() {
    // The decision grants three predicates, the statement two: an item of the third is refused.
    let exchange = Exchange::new("r1");
    let mut statement = exchange.statement();
    statement["granted_predicates"] = json!([DATE, PERSON]);
    let mut plan = exchange.plan(&statement);
    plan["rules"] = json!(exchange.rules[1..].to_vec());
    let grant = crate::exchange::grant_of(&statement, &plan, &decision_key());
    let world = World::new().await;
    let running = world.start().await;
    let extra = item(
        AMOUNT,
        "An amount of EUR 1 is due.",
        &json!(1),
        &exchange.handle("e:1"),
    );
    world.peers.proxy.set_items(vec![extra]);
    let answer = running.issue_with(issue_message(&exchange, grant)).await;
    let expected = refused(Code::FailedPrecondition, "PROXY_ANSWER_INVALID");
    assert_eq!(refusal(answer), expected);

    // A statement that ends earlier ends the bundle.
    let mut statement = exchange.statement();
    statement["expires_at"] = json!("2030-01-01T12:01:00.000Z");
    let plan = exchange.plan(&statement);
    let grant = crate::exchange::grant_of(&statement, &plan, &decision_key());
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let issued = running
        .issue_with(issue_message(&exchange, grant))
        .await
        .unwrap();
    assert_eq!(issued.expires_at.unwrap().seconds * 1000, NOW_MS + 60_000);

    // One that allows fewer actions than the decision stops the bundle.
    let mut statement = exchange.statement();
    statement["granted_actions"] = json!([]);
    let plan = exchange.plan(&statement);
    let grant = crate::exchange::grant_of(&statement, &plan, &decision_key());
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let answer = running.issue_with(issue_message(&exchange, grant)).await;
    let expected = refused(Code::FailedPrecondition, "BUNDLE_OUTSIDE_GRANT");
    assert_eq!(refusal(answer), expected);
}

#[tokio::test]
async fn refusals_of_the_proxy_are_passed_on_by_known_codes_only() {
    for (theirs, ours, is_final) in [
        (
            (Code::FailedPrecondition, "DISCLOSURE_LEAK"),
            (Code::FailedPrecondition, "DISCLOSURE_LEAK"),
            true,
        ),
        (
            (Code::FailedPrecondition, "TOO_MANY_CLAIMS"),
            (Code::FailedPrecondition, "TOO_MANY_CLAIMS"),
            true,
        ),
        (
            (Code::FailedPrecondition, "VALUE_NOT_OF_DATATYPE"),
            (Code::FailedPrecondition, "VALUE_NOT_OF_DATATYPE"),
            true,
        ),
        (
            (Code::FailedPrecondition, "SOMETHING_NEW"),
            (Code::Unavailable, "SEMANTIC_PROXY_UNAVAILABLE"),
            false,
        ),
        (
            (Code::PermissionDenied, "GRANT_EXPIRED"),
            (Code::PermissionDenied, "GRANT_EXPIRED"),
            false,
        ),
        (
            (Code::PermissionDenied, "CALLER_NOT_ALLOWED"),
            (Code::Unavailable, "SEMANTIC_PROXY_UNAVAILABLE"),
            false,
        ),
        (
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
            (Code::Unavailable, "VAULT_UNAVAILABLE"),
            false,
        ),
        (
            (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
            (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
            false,
        ),
        (
            (Code::Internal, "INTERNAL"),
            (Code::Unavailable, "SEMANTIC_PROXY_UNAVAILABLE"),
            false,
        ),
    ] {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        world.peers.proxy.set_refusing(Some(theirs));
        let expected = refused(ours.0, ours.1);
        assert_eq!(refusal(running.issue(&exchange).await), expected);
        world.peers.proxy.set_refusing(None);
        // What passes needs no waiting.
        let again = running.issue(&exchange).await;
        if is_final {
            assert_eq!(refusal(again), expected);
        } else {
            again.unwrap();
        }
    }
}
