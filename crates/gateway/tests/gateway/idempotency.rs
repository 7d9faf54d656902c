//! One execution for each key, whatever happens around it.

use std::sync::Arc;

use cl_kv::{Fault, RocksEngine};
use cl_testbed::{eventually, spiffe_id};
use serde_json::{Value, json};
use tonic::Code;

use crate::client::{Answer, Call};
use crate::documents::{ALIAS, DRAFT, PRINCIPAL, proposal, receipt, request};
use crate::engine::later;
use crate::support::{Options, World};
use crate::tokens::TokenIssuer;

fn other(tail: &str) -> Value {
    let mut document = request(tail);
    document["retention"]["max_seconds"] = json!(299);
    document
}

fn conflict() -> (u16, String) {
    (409, "IDEMPOTENCY_CONFLICT".to_owned())
}

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_runs_nothing() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = request("repeat");
    let first = gateway.submit_once(&document, "key-1").await;
    assert_eq!(first.status, 201);
    assert!(!is_replay(&first));

    // Other white space, and members in another order.
    let members = document.as_object().unwrap().iter().rev();
    let members = members.map(|(name, value)| format!("{:?} :\n {value}", name));
    let text = format!("{{ {} }}", members.collect::<Vec<_>>().join(" , "));
    let second = gateway.call(Call::submit(text).key("key-1")).await;
    assert_eq!((second.status, &second.body), (first.status, &first.body));
    assert!(is_replay(&second));
    assert_eq!(world.engine.executions(), 1);
    let arrived = world.engine.submissions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
}

#[tokio::test]
async fn a_key_stands_for_one_document() {
    let world = World::new().await;
    let gateway = world.start().await;
    gateway.submit_once(&request("one"), "key-1").await;
    for document in [other("one"), request("two")] {
        let answer = gateway.submit_once(&document, "key-1").await;
        assert_eq!(answer.refusal(), conflict());
    }
    assert_eq!(world.engine.submissions().len(), 1);
}

#[tokio::test]
async fn keys_of_different_callers_never_meet() {
    let world = World::new().await;
    let gateway = world.start().await;
    gateway.submit_once(&request("mine"), "key-1").await;
    let mut claims = TokenIssuer::claims(crate::support::NOW_S);
    claims["tenant"] = json!("elsewhere");
    let elsewhere = world.issuer.token_with(&claims);
    claims["tenant"] = json!("acme");
    claims["sub"] = json!("urn:agent:another");
    let another = world.issuer.token_with(&claims);
    for token in [elsewhere, another] {
        let call = Call::submit(other("mine").to_string()).key("key-1");
        let answer = call.bearer(&token).by(&gateway.client).await;
        assert_eq!(answer.status, 201);
        assert!(!is_replay(&answer));
    }
    let robot = world.client_as(&gateway, &spiffe_id("client/acme/robot"));
    let answer = Call::submit(other("robot").to_string())
        .key("key-1")
        .by(&robot)
        .await;
    assert_eq!(answer.status, 201);
    assert_eq!(world.engine.executions(), 4);
}

#[tokio::test]
async fn two_at_the_same_moment_run_once() {
    let world = World::new().await;
    let gateway = world.start().await;
    world.engine.hold();
    let document = request("together");
    let both = async {
        tokio::join!(
            gateway.submit_once(&document, "key-2"),
            gateway.submit_once(&document, "key-2"),
        )
    };
    let engine = &world.engine;
    let release = async {
        eventually("both arrive", || engine.submissions().len() == 2).await;
        engine.release();
    };
    let ((first, second), ()) = tokio::join!(both, release);
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert_eq!(first.status, 201);
    let arrived = world.engine.submissions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
    assert_eq!(world.engine.executions(), 1);
    let third = gateway.submit_once(&document, "key-2").await;
    assert!(is_replay(&third));
}

#[tokio::test]
async fn an_attempt_that_did_nothing_does_not_burn_the_key() {
    let world = World::new().await;
    let gateway = world.start().await;
    for (number, (code, reason)) in [
        (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
        (Code::FailedPrecondition, "POLICY_NOT_ACTIVE"),
        (Code::ResourceExhausted, "RATE_LIMITED"),
        (Code::InvalidArgument, "INVALID_REQUEST"),
        (Code::AlreadyExists, "REQUEST_ID_CONFLICT"),
    ]
    .into_iter()
    .enumerate()
    {
        let (key, tail) = (format!("key-{number}"), format!("free-{number}"));
        world.engine.refuse_next(later(code, reason, 1));
        let refused = gateway.submit_once(&request(&tail), &key).await;
        assert!(!refused.status.is_success());
        // The key is free, also for another document.
        let answer = gateway.submit_once(&other(&tail), &key).await;
        assert_eq!(answer.status, 201, "{reason}");
        assert!(!is_replay(&answer), "{reason}");
    }
}

#[tokio::test]
async fn a_refused_body_does_not_burn_the_key() {
    let world = World::new().await;
    let gateway = world.start().await;
    let refused = gateway.call(Call::submit("{}").key("key-1")).await;
    assert_eq!(refused.status, 400);
    let answer = gateway.submit_once(&request("good"), "key-1").await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn an_uncertain_attempt_keeps_the_key_with_its_document() {
    let world = World::new().await;
    let gateway = world.start().await;
    world.engine.lose_next_answer();
    let lost = gateway.submit_once(&request("lost"), "key-1").await;
    assert_eq!(lost.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    let answer = gateway.submit_once(&other("lost"), "key-1").await;
    assert_eq!(answer.refusal(), conflict());
    let answer = gateway.submit_once(&request("lost"), "key-1").await;
    assert_eq!(answer.status, 201);
    assert_eq!(world.engine.executions(), 1);
    let arrived = world.engine.submissions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
}

#[tokio::test]
async fn a_caller_that_joined_keeps_the_key_from_being_freed() {
    let world = World::new().await;
    let gateway = world.start().await;
    world.engine.lose_next_answer();
    gateway.submit_once(&request("joined"), "key-1").await;
    world
        .engine
        .refuse_next(later(Code::ResourceExhausted, "RATE_LIMITED", 1));
    gateway.submit_once(&request("joined"), "key-1").await;
    let answer = gateway.submit_once(&other("joined"), "key-1").await;
    assert_eq!(answer.refusal(), conflict());
}

#[tokio::test]
async fn a_gateway_killed_before_the_answer_gives_the_first_result_after_its_restart() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || Options {
        kv: Some(Arc::new(RocksEngine::open(folder.path()).unwrap())),
        ..Options::default()
    };
    let gateway = world.start_with(on_disk()).await;
    let document = request("killed");
    world.engine.hold();
    let call = Call::submit(document.to_string())
        .key("key-4")
        .bearer(&gateway.token);
    let client = gateway.client.clone();
    let attempt = tokio::spawn(async move { call.by(&client).await.status });
    let engine = &world.engine;
    eventually("the engine has it", || engine.submissions().len() == 1).await;
    gateway.kill().await;
    assert!(attempt.await.is_err(), "the answer never came");
    // The engine had the call, so a decision may have been made, or not: here it was not.
    world.engine.release();

    let gateway = world.start_with(on_disk()).await;
    let answer = gateway.submit_once(&document, "key-4").await;
    assert_eq!(answer.status, 201);
    assert_eq!(world.engine.executions(), 1);
    let arrived = world.engine.submissions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
    let answer = gateway.submit_once(&other("killed"), "key-4").await;
    assert_eq!(answer.refusal(), conflict());
    gateway.end().await;
}

#[tokio::test]
async fn a_result_that_the_engine_stored_survives_a_killed_gateway() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = request("stored");
    world.engine.lose_next_answer();
    gateway.submit_once(&document, "key-5").await;
    assert_eq!(world.engine.executions(), 1);
    gateway.kill().await;
    let gateway = world.start().await;
    let first = gateway.submit_once(&document, "key-5").await;
    let second = gateway.submit_once(&document, "key-5").await;
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert!(!is_replay(&first) && is_replay(&second));
    assert_eq!(world.engine.executions(), 1);
}

#[tokio::test]
async fn malformed_and_repeated_keys_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let refused = (400, "INVALID_IDEMPOTENCY_KEY".to_owned());
    let submit = || Call::submit(request("keys").to_string());
    for key in ["", "a b", "\u{e9}", &"k".repeat(256), &"k".repeat(300)] {
        let answer = gateway.call(submit().key(key)).await;
        assert_eq!(answer.refusal(), refused);
    }
    let answer = gateway.call(submit().key("twice").key("twice")).await;
    assert_eq!(answer.refusal(), refused);
    // A line feed ends a header, so what follows is no part of the key and no header either.
    let raw = format!(
        "POST /context/v1/requests HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         idempotency-key: a\nb\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        gateway.token
    );
    let answer = gateway.client.raw(raw.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(world.engine.submissions().len(), 0);
    let longest = gateway.call(submit().key(&"k".repeat(255))).await;
    assert_eq!(longest.status, 201);
}

#[tokio::test]
async fn a_store_in_trouble_runs_nothing_twice() {
    let world = World::new().await;
    let gateway = world.start().await;
    for (number, fault) in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist]
        .into_iter()
        .enumerate()
    {
        let (key, document) = (format!("key-{number}"), request(&format!("store-{number}")));
        world.memory.plan(fault);
        let refused = gateway.submit_once(&document, &key).await;
        assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert_eq!(world.engine.executions(), number);
        let answer = gateway.submit_once(&document, &key).await;
        assert_eq!(answer.status, 201);
        assert_eq!(world.engine.executions(), number + 1);
    }
}

#[tokio::test]
async fn without_a_key_the_request_id_makes_repeats_safe() {
    let world = World::new().await;
    let gateway = world.start().await;
    let first = gateway.submit(&request("plain")).await;
    let second = gateway.submit(&request("plain")).await;
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert!(!is_replay(&second));
    assert_eq!(world.engine.executions(), 1);
    let answer = gateway.submit(&other("plain")).await;
    assert_eq!(answer.refusal(), (409, "REQUEST_ID_CONFLICT".to_owned()));
    let arrived = world.engine.submissions();
    assert_ne!(arrived[0].operation_id, arrived[1].operation_id);
}

#[tokio::test]
async fn a_key_is_forgotten_after_a_day() {
    let world = World::new().await;
    let gateway = world.start().await;
    gateway.submit_once(&request("old"), "key-1").await;
    world.clock.advance(24 * 60 * 60 * 1000);
    let mut claims = TokenIssuer::claims(crate::support::NOW_S);
    claims["exp"] = json!(crate::support::NOW_S + 200_000);
    let token = world.issuer.token_with(&claims);
    let call = Call::submit(request("new").to_string())
        .key("key-1")
        .bearer(&token);
    let answer = call.by(&gateway.client).await;
    assert_eq!(answer.status, 201);
    assert!(!is_replay(&answer));
}

#[tokio::test]
async fn a_key_stands_for_one_operation() {
    let world = World::new().await;
    let gateway = world.start().await;
    let [first, second] = ["first", "second"].map(|tail| world.bundles.issue(tail));
    let report = receipt(&first, DRAFT, PRINCIPAL, "It was drafted.").to_string();
    let idea = proposal(ALIAS, PRINCIPAL, "Because.").to_string();
    let calls: [(&str, &dyn Fn() -> Call); 5] = [
        ("redeem-first", &|| Call::redeem(&first)),
        ("redeem-second", &|| Call::redeem(&second)),
        ("report", &|| Call::record(&first, report.clone())),
        ("propose", &|| Call::propose(idea.clone())),
        ("submit", &|| Call::submit(request("one").to_string())),
    ];
    for (key, call) in calls {
        let answer = gateway.call(call().key(key)).await;
        assert!(answer.status.is_success(), "{key}");
        assert!(!is_replay(&answer), "{key}");
    }
    let before = world.bundles.faults.calls() + world.vault.faults.calls();
    for (key, _) in calls {
        for (other, call) in calls {
            let answer = gateway.call(call().key(key)).await;
            if key == other {
                assert!(answer.status.is_success() && is_replay(&answer), "{key}");
            } else {
                assert_eq!(answer.refusal(), conflict(), "{key} for {other}");
            }
        }
    }
    let after = world.bundles.faults.calls() + world.vault.faults.calls();
    assert_eq!(after, before + 4, "no conflict arrived anywhere");
    // A report about another bundle, with the same bytes, is another operation.
    let call = Call::record(&second, report.clone()).key("report");
    assert_eq!(gateway.call(call).await.refusal(), conflict());
    assert_eq!(world.engine.executions(), 1);
}

#[tokio::test]
async fn recipients_keys_are_free_after_what_did_nothing_and_kept_after_what_may_have() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("free");
    let idea = |why: &str| Call::propose(proposal(ALIAS, PRINCIPAL, why).to_string());
    for (number, (code, reason)) in [
        (Code::NotFound, "EXCHANGE_NOT_FOUND"),
        (Code::PermissionDenied, "SUBMITTER_MISMATCH"),
        (Code::FailedPrecondition, "EXCHANGE_EXPIRED"),
        (Code::FailedPrecondition, "SUBJECT_ERASED"),
        (Code::ResourceExhausted, "RATE_LIMITED"),
        (Code::InvalidArgument, "INVALID_MEMORY_PROPOSAL"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("free-{number}");
        world.vault.faults.refuse_next(later(code, reason, 1));
        let refused = gateway.call(idea("First.").key(&key)).await;
        assert!(!refused.status.is_success());
        let answer = gateway.call(idea("Second.").key(&key)).await;
        assert_eq!(answer.status, 202, "{reason}");
        assert!(!is_replay(&answer), "{reason}");
    }
    for (number, (code, reason)) in [
        (Code::Unavailable, "SERVICE_UNAVAILABLE"),
        (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
        (Code::Internal, "INTERNAL"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("kept-{number}");
        world.vault.faults.refuse_next(later(code, reason, 1));
        gateway.call(idea("First.").key(&key)).await;
        let answer = gateway.call(idea("Second.").key(&key)).await;
        assert_eq!(answer.refusal(), conflict(), "{reason}");
        let attempts = world.vault.submissions().len();
        let answer = gateway.call(idea("First.").key(&key)).await;
        assert_eq!(answer.status, 202, "{reason}");
        let arrived = world.vault.submissions();
        let [.., first, second] = arrived.as_slice() else {
            panic!("two attempts");
        };
        assert_eq!(arrived.len(), attempts + 1);
        assert_eq!(first.operation_id, second.operation_id, "{reason}");
    }
    let refusals = [
        (Code::NotFound, "BUNDLE_NOT_FOUND"),
        (Code::FailedPrecondition, "BUNDLE_NOT_REDEEMED"),
        (Code::PermissionDenied, "RECEIPT_OUTSIDE_CONTRACT"),
        (Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT"),
    ];
    gateway.call(Call::redeem(&bundle)).await;
    for (number, (code, reason)) in refusals.into_iter().enumerate() {
        let report = |text: &str| {
            let document = receipt(&bundle, DRAFT, PRINCIPAL, text);
            Call::record(&bundle, document.to_string()).key(&format!("report-{number}"))
        };
        world.bundles.faults.refuse_next(later(code, reason, 1));
        let refused = gateway.call(report("First.")).await;
        assert!(!refused.status.is_success());
        let answer = gateway.call(report("Second.")).await;
        assert_eq!(answer.status, 201, "{reason}");
    }
}

#[tokio::test]
async fn a_store_in_trouble_spends_no_bundle() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("trouble");
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        world.memory.plan(fault);
        let refused = gateway.call(Call::redeem(&bundle).key("key-1")).await;
        assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert_eq!(world.bundles.faults.calls(), 0);
    }
    let answer = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(answer.status, 200);
}
