//! What one person, and one tenant, can make the engine hold.

use std::time::Duration;

use cl_testbed::{refusal, refused};
use cl_wire::policy::v1::RequestState;
use serde_json::json;
use tonic::Code;

use crate::documents::{gated, snapshot};
use crate::people::{OWNER, Person, grant_all};
use crate::support::{Running, World};

#[tokio::test]
async fn the_newest_of_many_open_answers_takes_the_place_of_the_oldest() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let mut open = Vec::new();
    for _ in 0..9 {
        let begun = running.begin_answer(answer.clone()).await.unwrap();
        open.push(begun.ceremony.unwrap());
    }
    let signed = person.authenticator.sign(&open[0].challenge).unwrap();
    let first = running
        .finish_answer(&person.session, &open[0], signed, 2)
        .await;
    let gone = refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN");
    assert_eq!(refusal(first), gone);
    let signed = person.authenticator.sign(&open[1].challenge).unwrap();
    let second = running
        .finish_answer(&person.session, &open[1], signed, 3)
        .await;
    assert_eq!(second.unwrap().state(), RequestState::Decided);
}

/// Signs for another challenge, so that the answer is refused with a receipt.
async fn refuse_one(running: &Running, person: &Person, number: u32) -> tonic::Status {
    let item = running.only_item(&person.session).await;
    let begun = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = match begun {
        Ok(begun) => begun.ceremony.unwrap(),
        Err(status) => return status,
    };
    let signed = person.authenticator.sign(&[0; 32]).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, number)
        .await;
    finished.unwrap_err()
}

#[tokio::test]
async fn a_person_has_a_bounded_number_of_answers_refused_in_an_hour() {
    let world = World::new().await;
    let mut document = snapshot("v1");
    document["policy"]["decision_ttl_seconds"] = json!(86_400);
    let running = world.start().await;
    running.activate_new(&document, None).await;
    let person = running.person(OWNER, 0x100).await;
    let mut request = gated("r1");
    request["expires_at"] = json!("2030-01-01T20:00:00Z");
    running.ask(&request, 1).await.unwrap();
    for number in 0..16 {
        let status = refuse_one(&running, &person, 0x200 + number).await;
        let wrong = refused(Code::PermissionDenied, "ASSERTION_CHALLENGE");
        assert_eq!(refusal::<()>(Err(status)), wrong);
    }
    let status = refuse_one(&running, &person, 0x300).await;
    let retry = cl_wire::status::retry_delay(&status);
    assert_eq!(retry, Some(Duration::from_secs(3600)));
    let bounded = refused(Code::ResourceExhausted, "TOO_MANY_REFUSED_ANSWERS");
    assert_eq!(refusal::<()>(Err(status)), bounded);
    assert_eq!(world.receipts.of("policy.refuse_approval").len(), 16);
    // The bound is the person's, and not for ever.
    let other = running.person(OWNER, 0x400).await;
    let status = refuse_one(&running, &other, 0x500).await;
    assert_eq!(refusal::<()>(Err(status)), bounded);
    world.clock.advance(3_600_000);
    let session = running.sign_in(&person.authenticator).await.unwrap();
    running.ask(&gated_later("r2"), 2).await.unwrap();
    let item = running.only_item(&session).await;
    running
        .begin_answer(grant_all(&session, &item))
        .await
        .unwrap();
}

/// As [`gated`], an hour later.
fn gated_later(tail: &str) -> serde_json::Value {
    let mut request = gated(tail);
    request["created_at"] = json!("2030-01-01T12:59:59Z");
    request["expires_at"] = json!("2030-01-01T13:30:00Z");
    request
}

#[tokio::test]
async fn the_longest_names_fit_a_signed_approval() {
    let world = World::new().await;
    let running = world.start().await;
    let names = |kind: &str| -> Vec<_> {
        let name = |number: usize| format!("{kind}{number:02}.{}", "y".repeat(252));
        (0..64).map(name).collect()
    };
    let (facts, actions) = (names("f"), names("a"));
    let mut document = snapshot("v1");
    document["policy"]["approval_required_selectors"] = json!(facts);
    document["policy"]["approval_required_actions"] = json!(actions);
    for fact in &facts {
        document["predicates"][fact] = json!({"datatype": "text"});
    }
    running.activate_new(&document, None).await;
    let person = running.person(OWNER, 0x100).await;
    let mut request = gated("r1");
    let selector = |fact: &String| json!({"predicate": fact});
    request["selectors"] = facts.iter().map(selector).collect();
    request["requested_actions"] = json!(actions);
    let status = running.ask(&request, 1).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let ceremony = running.begin_answer(answer).await.unwrap().ceremony;
    let ceremony = ceremony.unwrap();
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    assert_eq!(finished.unwrap().state(), RequestState::Decided);
}
