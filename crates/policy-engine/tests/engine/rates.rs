//! How often a requester may ask.

use cl_testbed::{eventually, refusal, refused};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::cedar::in_cedar;
use crate::documents::{AGENT, NOW_MS, TENANT, gated, operation, request, snapshot, submission};
use crate::examining::{everything, explain, simulate};
use crate::kept::records;
use crate::people::{OWNER, grant_all};
use crate::requests::replay;
use crate::snapshots::join_all;
use crate::support::{Running, World, decision};

fn limited(mut snapshot: Value, rates: Value) -> Value {
    snapshot["limits"]["rates"] = rates;
    snapshot
}

fn hourly(max_requests: u32) -> Value {
    json!([{"max_requests": max_requests, "window_seconds": 3600, "by": ["subject", "purpose"]}])
}

/// Whether a new request is denied for its rate alone, and its decision.
async fn is_denied(running: &Running, request: &Value, number: u32) -> (bool, String) {
    let status = running.ask(request, number).await.unwrap();
    let record = decision(&status);
    let is_denied = record["reason_codes"] == json!(["RATE_LIMIT_EXCEEDED"]);
    assert_eq!(record["decision"] == "deny", is_denied, "{record}");
    (is_denied, record["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn denies_above_the_rate_until_the_window_ends() {
    for document in [snapshot("v1"), in_cedar("v1")] {
        let world = World::new().await;
        let running = world.start().await;
        running
            .activate_new(&limited(document, hourly(3)), None)
            .await;
        for number in 1..=3 {
            let asked = request(&format!("r{number}"));
            assert!(!is_denied(&running, &asked, number).await.0);
            // The same once more is no other request.
            assert!(!is_denied(&running, &asked, number).await.0);
        }
        // What is counted survives the process.
        running.kill().await;
        let running = world.start().await;
        let (denied, id) = is_denied(&running, &request("r4"), 4).await;
        assert!(denied);
        assert!(replay(&running, &id, operation(5)).await.unwrap().equal);
        let explained = explain(&running, &id).await.unwrap();
        let member = explained.reasons[0].member.as_deref();
        assert_eq!(member, Some("limits.rates"));
        // A denial that was recorded stays one.
        world.clock.advance(3_600_000);
        assert!(is_denied(&running, &request("r4"), 4).await.0);
        let mut later = request("r5");
        later["created_at"] = json!("2030-01-01T12:59:59Z");
        later["expires_at"] = json!("2030-01-01T13:10:00Z");
        assert!(!is_denied(&running, &later, 6).await.0);
        // And the first denial was, and is, replayed with what was counted then.
        assert!(replay(&running, &id, operation(7)).await.unwrap().equal);
    }
}

#[tokio::test]
async fn purposes_count_apart_only_where_the_rate_says_so() {
    let purposes = |rates: Value| {
        let mut document = limited(snapshot("v1"), rates);
        document["policy"]["allowed_purpose_codes"] = json!(["draft.response", "plan.task"]);
        document
    };
    let mut planned = request("r2");
    planned["purpose_code"] = json!("plan.task");
    for (by, is_shared) in [(json!(["purpose"]), false), (json!(["subject"]), true)] {
        let rates = json!([{"max_requests": 1, "window_seconds": 60, "by": by}]);
        let world = World::new().await;
        let running = world.start().await;
        running.activate_new(&purposes(rates), None).await;
        assert!(!is_denied(&running, &request("r1"), 1).await.0);
        assert_eq!(is_denied(&running, &planned, 2).await.0, is_shared);
    }
}

#[tokio::test]
async fn another_snapshot_counts_on_and_all_rates_hold() {
    let world = World::new().await;
    let running = world.start().await;
    let first = running
        .activate_new(&limited(snapshot("v1"), hourly(5)), None)
        .await;
    assert!(!is_denied(&running, &request("r1"), 1).await.0);
    let both = json!([
        {"max_requests": 100, "window_seconds": 60, "by": []},
        {"max_requests": 1, "window_seconds": 3600, "by": ["purpose", "subject"]},
    ]);
    running
        .activate_new(&limited(snapshot("v2"), both), Some(&first))
        .await;
    assert!(is_denied(&running, &request("r2"), 2).await.0);
}

#[tokio::test]
async fn a_persons_answer_is_not_another_request() {
    let world = World::with_issuer().await;
    let running = world.start().await;
    running
        .activate_new(&limited(snapshot("v1"), hourly(1)), None)
        .await;
    let owner = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&owner.session).await;
    let answer = grant_all(&owner.session, &item);
    let status = running.answer(&owner, answer, 2).await.unwrap();
    let record = decision(&status);
    assert_eq!(record["decision"], "allow");
    let id = record["id"].as_str().unwrap();
    assert!(replay(&running, id, operation(3)).await.unwrap().equal);
    assert!(is_denied(&running, &request("r2"), 4).await.0);
}

#[tokio::test]
async fn a_policy_that_denies_every_rate_says_so_once() {
    let world = World::new().await;
    let running = world.start().await;
    let mut document = limited(snapshot("v1"), hourly(1));
    document["policy"]["rate_limit_ok"] = json!(false);
    running.activate_new(&document, None).await;
    for number in 1..=2 {
        let asked = request(&format!("r{number}"));
        assert!(is_denied(&running, &asked, number).await.0);
    }
}

/// Asks until the answer is not that others are faster.
async fn insist(running: &Running, number: u32) -> Result<bool, Status> {
    loop {
        match running.ask(&request(&format!("r{number}")), number).await {
            Err(status) if status.code() == Code::Aborted => {}
            Err(status) => return Err(status),
            Ok(status) => return Ok(decision(&status)["decision"] == "allow"),
        }
    }
}

#[tokio::test]
async fn races_of_replicas_allow_exactly_the_maximum() {
    let world = World::new().await;
    let (one, two) = (world.start().await, world.start().await);
    one.activate_new(&limited(snapshot("v1"), hourly(5)), None)
        .await;
    let mut calls = Vec::new();
    for number in 1..=12 {
        calls.push(insist(&one, number));
        calls.push(insist(&two, 100 + number));
    }
    let mut allowed = 0;
    for outcome in join_all(calls.into_iter()).await {
        allowed += u32::from(outcome.unwrap());
    }
    assert_eq!(allowed, 5);
}

#[tokio::test]
async fn counters_are_forgotten_with_their_window() {
    let world = World::new().await;
    let running = world.start().await;
    running
        .activate_new(&limited(snapshot("v1"), hourly(3)), None)
        .await;
    is_denied(&running, &request("r1"), 1).await;
    assert_eq!(records(&world, "rate"), 1);
    world.clock.advance(3_600_000);
    eventually("the counter", || records(&world, "rate") == 0).await;
}

/// A request that lasts beyond the hour.
fn lasting(tail: &str) -> Value {
    let mut request = request(tail);
    request["expires_at"] = json!("2030-01-01T13:10:00Z");
    request
}

#[tokio::test]
async fn a_window_that_was_forgotten_is_not_counted_again() {
    let world = World::new().await;
    let running = world.start().await;
    running
        .activate_new(&limited(snapshot("v1"), hourly(1)), None)
        .await;
    world.clock.set(NOW_MS + 3_599_000);
    assert!(!is_denied(&running, &lasting("r1"), 1).await.0);
    world.clock.set(NOW_MS + 3_600_000);
    eventually("the counter", || records(&world, "rate") == 0).await;
    // The clock steps back, and what is asked for then counts in the window that was seen already.
    world.clock.set(NOW_MS + 3_599_000);
    assert!(!is_denied(&running, &lasting("r2"), 2).await.0);
    world.clock.set(NOW_MS + 3_600_000);
    assert!(is_denied(&running, &lasting("r3"), 3).await.0);
}

#[tokio::test]
async fn nobody_uses_up_the_rate_of_another_requester() {
    let world = World::new().await;
    let running = world.start().await;
    let mut document = limited(snapshot("v1"), hourly(1));
    let other = "urn:agent:other";
    document["policy"]["allowed_requesters"] = json!([AGENT, other]);
    document["clients"][0]["principals"] = json!([AGENT, other]);
    running.activate_new(&document, None).await;
    // Who claims to be somebody else is counted as who it is, and denied for that.
    let mut claiming = submission(&request("r1"), 1);
    claiming.facts.as_mut().unwrap().principal = other.to_owned();
    let status = running.submit(claiming).await.unwrap();
    let reasons = json!(["REQUESTER_FACTS_MISMATCH"]);
    assert_eq!(decision(&status)["reason_codes"], reasons);
    assert!(!is_denied(&running, &request("r2"), 2).await.0);
    assert!(is_denied(&running, &request("r3"), 3).await.0);
}

#[tokio::test]
async fn another_snapshot_is_tried_with_what_its_rates_would_have_counted() {
    let world = World::new().await;
    let running = world.start().await;
    running
        .activate_new(&limited(snapshot("v1"), hourly(5)), None)
        .await;
    for number in 1..=3 {
        let asked = request(&format!("r{number}"));
        assert!(!is_denied(&running, &asked, number).await.0);
    }
    let other = json!([{"max_requests": 1, "window_seconds": 60, "by": []}]);
    for (rates, changed) in [(hourly(2), 1), (hourly(3), 0), (other, 0)] {
        let candidate = limited(snapshot("v2"), rates);
        let simulated = simulate(&running, &candidate, everything(), 0, "").await;
        let simulated = simulated.unwrap();
        assert_eq!(simulated.evaluated, 3);
        assert_eq!(simulated.differences.len(), changed);
    }
}

#[tokio::test]
async fn refuses_rates_that_mean_nothing() {
    let world = World::new().await;
    let running = world.start().await;
    for (number, rates) in (1..).zip([
        json!([{"max_requests": 0, "window_seconds": 60, "by": []}]),
        json!([{"max_requests": 1, "window_seconds": 86_401, "by": []}]),
        json!([{"max_requests": 1, "window_seconds": 60, "by": ["recipient"]}]),
        json!([{"max_requests": 1, "window_seconds": 60}]),
        json!([
            {"max_requests": 1, "window_seconds": 60, "by": []},
            {"max_requests": 2, "window_seconds": 60, "by": []},
        ]),
    ]) {
        let document = limited(snapshot("v1"), rates);
        let put = running.put(TENANT, &document, number);
        assert_eq!(
            refusal(put.await),
            refused(Code::InvalidArgument, "INVALID_POLICY")
        );
    }
}
