//! What is kept for its time, and what a repeat gets after that.

use cl_authenticator::Authenticator;
use cl_kv::{Engine, Scan};
use cl_model::time::UnixTime;
use cl_testbed::{eventually, refusal, refused};
use cl_wire::policy::v1::RequestState;
use serde_json::json;
use tonic::Code;

use crate::documents::{NOW_MS, gated, operation_made_at, request, submission};
use crate::people::{OWNER, grant_all, page};
use crate::requests::replay;
use crate::support::{RETENTION_SECONDS, World, decision};

/// How long a request waits for a person.
const PENDING_MS: i64 = 480_000;

/// How long a decision of the tests is in force.
const DECISION_MS: i64 = 300_000;

fn retention_ms() -> i64 {
    i64::try_from(RETENTION_SECONDS).unwrap() * 1000
}

/// How many records there are whose kind has this name, without opening them.
pub(crate) fn records(world: &World, kind: &str) -> usize {
    let entries = world.memory.scan(&Scan::new([], usize::MAX)).unwrap();
    let name = [kind.as_bytes(), &[0, 1]].concat();
    let has = |key: &[u8]| key.windows(name.len()).any(|it| it == name);
    entries.iter().filter(|entry| has(&entry.key)).count()
}

#[tokio::test]
async fn a_decision_is_replayed_until_its_retention_ends_and_then_gone() {
    let world = World::new().await;
    let running = world.ready().await;
    let replica = world.start().await;
    let request = request("r1");
    let status = running.ask(&request, 1).await.unwrap();
    let id = decision(&status)["id"].as_str().unwrap().to_owned();
    world.clock.advance(DECISION_MS + retention_ms() - 1000);
    eventually("the operations", || records(&world, "operation") == 0).await;
    let now_ms = NOW_MS + DECISION_MS + retention_ms();
    let made = |number| operation_made_at(now_ms, number);
    assert!(replay(&replica, &id, made(2)).await.unwrap().equal);

    world.clock.advance(1000);
    eventually("the decision", || records(&world, "decision") == 0).await;
    assert_eq!(records(&world, "request"), 0);
    let missing = refused(Code::NotFound, "REQUEST_NOT_FOUND");
    assert_eq!(refusal(running.look(&request).await), missing);
    let missing = refused(Code::NotFound, "DECISION_NOT_FOUND");
    assert_eq!(refusal(replay(&running, &id, made(3)).await), missing);
    // Neither the call nor the request is carried out a second time.
    let again = refused(Code::InvalidArgument, "REQUEST_TOO_OLD");
    assert_eq!(refusal(running.ask(&request, 1).await), again);
    let mut renewed = submission(&request, 1);
    renewed.operation_id = made(4);
    assert_eq!(refusal(running.submit(renewed).await), again);
    let recorded = world.receipts.of("policy.decide");
    assert_eq!(recorded.len(), 1, "what the log says stays");
    // The same id names a new request by now, but not under an operation id that may be forgotten.
    let mut next = request.clone();
    next["created_at"] = json!("2030-01-03T12:05:00Z");
    next["expires_at"] = json!("2030-01-03T13:00:00Z");
    let too_old = refused(Code::FailedPrecondition, "OPERATION_TOO_OLD");
    assert_eq!(refusal(running.ask(&next, 1).await), too_old);
    let mut next = submission(&next, 1);
    next.operation_id = made(5);
    assert_eq!(
        running.submit(next).await.unwrap().state(),
        RequestState::Decided
    );
}

#[tokio::test]
async fn a_clock_that_steps_back_after_a_sweep_has_nothing_decided_twice() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = request("r1");
    running.ask(&request, 1).await.unwrap();
    world.clock.advance(DECISION_MS + retention_ms());
    eventually("the request", || records(&world, "request") == 0).await;
    world.clock.advance(-(DECISION_MS + retention_ms()));
    let again = refused(Code::InvalidArgument, "REQUEST_TOO_OLD");
    assert_eq!(refusal(running.ask(&request, 1).await), again);
    let mut renewed = submission(&request, 2);
    assert_eq!(refusal(running.submit(renewed.clone()).await), again);
    // Also after a restart, and for an operation id of that time with a request of a later one.
    running.kill().await;
    let running = world.start().await;
    assert_eq!(refusal(running.submit(renewed.clone()).await), again);
    world.clock.advance(60_000);
    let mut later = request.clone();
    later["created_at"] = json!("2030-01-01T12:05:30Z");
    later["expires_at"] = json!("2030-01-01T13:00:00Z");
    renewed.request = submission(&later, 1).request;
    let too_old = refused(Code::FailedPrecondition, "OPERATION_TOO_OLD");
    assert_eq!(refusal(running.submit(renewed).await), too_old);
    assert_eq!(world.receipts.of("policy.decide").len(), 1);
}

#[tokio::test]
async fn a_request_stays_with_its_newest_decision() {
    let world = World::new().await;
    let running = world.ready().await;
    let pending = gated("r1");
    running.ask(&pending, 1).await.unwrap();
    world.clock.advance(100_000);
    let mut other = pending.clone();
    other["purpose"] = json!("another draft");
    running.ask(&other, 2).await.unwrap();
    assert_eq!(records(&world, "decision"), 2);
    world.clock.advance(PENDING_MS + retention_ms() - 100_000);
    eventually("the first decision", || records(&world, "decision") == 1).await;
    assert_eq!(
        running.look(&other).await.unwrap().state(),
        RequestState::Expired
    );
    world.clock.advance(100_000);
    eventually("the request", || records(&world, "request") == 0).await;
    for kind in ["decision", "operation", "kept"] {
        eventually(kind, || records(&world, kind) == 0).await;
    }
}

#[tokio::test]
async fn a_receipt_that_is_not_durable_outlives_its_decision() {
    let world = World::new().await;
    let running = world.ready().await;
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.ask(&request("r1"), 1).await), unsettled);
    world.clock.advance(DECISION_MS + retention_ms());
    eventually("the decision", || records(&world, "decision") == 0).await;
    assert_eq!(records(&world, "outbox"), 1);
    world.receipts.set_append_down(false);
    running.kill().await;
    let _again = world.start().await;
    let receipts = &world.receipts;
    eventually("the receipt", || receipts.of("policy.decide").len() == 1).await;
}

#[tokio::test]
async fn nothing_of_an_answer_stays_for_ever_but_the_passkey() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.link(OWNER, 0x110).await.unwrap();
    // One that is answered, one that is begun and left, one that nobody looks at.
    for number in 1..=3 {
        running
            .ask(&gated(&format!("r{number}")), number)
            .await
            .unwrap();
    }
    let queue = running.queue(&person.session).await.unwrap();
    for (number, pending) in (4..).zip(&queue[..2]) {
        let item = running
            .item(&person.session, &pending.approval_ref)
            .await
            .unwrap();
        let answer = grant_all(&person.session, &item);
        if number == 4 {
            running.answer(&person, answer, number).await.unwrap();
        } else {
            running.begin_answer(answer).await.unwrap();
        }
    }
    let short_lived = [
        "spent", "answer", "session", "link", "pending", "queue", "history", "decided",
    ];
    for kind in short_lived {
        assert!(records(&world, kind) > 0, "{kind}");
    }
    world.clock.advance(PENDING_MS + retention_ms());
    world.clock.advance(DECISION_MS);
    for kind in short_lived
        .into_iter()
        .chain(["decision", "request", "operation", "kept"])
    {
        eventually(kind, || records(&world, kind) == 0).await;
    }
    for kind in ["credential", "passkey", "holder", "answers"] {
        assert_eq!(records(&world, kind), 1, "{kind}");
    }
    running.sign_in(&person.authenticator).await.unwrap();
}

#[tokio::test]
async fn whoever_only_asks_leaves_nothing() {
    let world = World::new().await;
    let running = world.ready().await;
    let link = running.link(OWNER, 1).await.unwrap();
    let all = |world: &World| {
        let entries = world.memory.scan(&Scan::new([], usize::MAX)).unwrap();
        entries.len()
    };
    let before = all(&world);
    for _ in 0..100 {
        running.begin_sign_in().await;
        let begin = cl_wire::policy::v1::BeginEnrolmentRequest {
            link_token: link.clone(),
        };
        running
            .approvals
            .clone()
            .begin_enrolment(begin)
            .await
            .unwrap();
    }
    let ceremony = running.begin_sign_in().await;
    let stranger = Authenticator::p256(page()).unwrap();
    let signed = stranger.sign(&ceremony.challenge).unwrap();
    let unknown = refused(Code::PermissionDenied, "CREDENTIAL_UNKNOWN");
    let refused_one = running.finish_sign_in(&ceremony, signed).await;
    assert_eq!(refusal(refused_one), unknown);
    assert_eq!(all(&world), before);
}

#[tokio::test]
async fn a_used_challenge_stays_used_when_the_clock_steps_back() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let ceremony = running.begin_sign_in().await;
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let signed_in = running.finish_sign_in(&ceremony, signed.clone()).await;
    signed_in.unwrap();
    world.clock.advance(400_000);
    eventually("the challenge", || records(&world, "spent") == 0).await;
    world.clock.advance(-400_000);
    let again = running.finish_sign_in(&ceremony, signed).await;
    let spent = refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN");
    assert_eq!(refusal(again), spent);
}

#[tokio::test]
async fn a_request_from_the_future_leaves_nothing() {
    let world = World::new().await;
    let running = world.ready().await;
    let at = |ms: i64| UnixTime::from_milliseconds(NOW_MS + ms).to_string();
    let mut ahead = request("r1");
    ahead["created_at"] = json!(at(300_001));
    let from_future = refused(Code::InvalidArgument, "REQUEST_FROM_FUTURE");
    assert_eq!(refusal(running.ask(&ahead, 1).await), from_future);
    assert_eq!(records(&world, "decision"), 0);
    // A clock may be some minutes ahead.
    ahead["created_at"] = json!(at(300_000));
    running.ask(&ahead, 1).await.unwrap();
}

#[tokio::test]
async fn names_without_end_are_refused() {
    let world = World::new().await;
    let running = world.ready().await;
    let invalid = refused(Code::InvalidArgument, "INVALID_REQUEST");
    for (number, length) in [(1, 256), (2, 257)] {
        let name = "a".repeat(length);
        let mut of_fact = request(&format!("fact-{length}"));
        of_fact["selectors"] = json!([{"predicate": name}]);
        let mut of_action = request(&format!("action-{length}"));
        of_action["requested_actions"] = json!([name]);
        for (asked, number) in [(of_fact, 2 * number), (of_action, 2 * number + 1)] {
            let answer = running.ask(&asked, number).await;
            if length > 256 {
                assert_eq!(refusal(answer), invalid);
            } else {
                answer.unwrap();
            }
        }
    }
}
