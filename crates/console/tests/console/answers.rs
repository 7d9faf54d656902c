//! Answers: what is shown before, what is sent, and what is reported after.

use tonic::Code;

use crate::engine::refusal;
use crate::items::{PURPOSE, item};
use crate::world::World;

#[tokio::test]
async fn an_item_shows_everything_that_an_answer_depends_on() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let queue = person.get("/approvals").await.text();
    assert!(
        queue.contains("/approvals/one") && queue.contains("59 minutes left"),
        "{queue}"
    );
    let page = person.get("/approvals/one").await.text();
    for shown in [
        "spiffe://example.org/client/default/agent",
        "spiffe://example.org/client/default/assistant",
        "To draft a response",
        "own words. Nobody has checked them.",
        "An amount that somebody says is to be paid.",
        "Sensitive: harmful if disclosed",
        "Restricted: not to be disclosed without an explicit rule",
        "Ordinary: the policy allows it",
        "Needs your answer",
        "Denied whatever you answer",
        "Reaches others or changes something outside",
        "Changes nothing outside",
        "15 minutes",
        "The recipient may not pass it on.",
        "1 June 2030, 08:15 UTC",
        "home/7",
        "policy.approve",
        "that you answered, and when",
        "A person has to approve a part of it.",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains("<script>alert"), "escaped");
    assert!(!page.contains('\u{202e}'), "nothing turns the text around");
    assert!(!page.contains(PURPOSE));
    assert!(
        !page.contains(" checked>") && !page.contains("checked="),
        "nothing is ticked in advance"
    );
    for fixed in ["requested_delivery_date", "bank_account"] {
        assert!(!page.contains(&format!("value=\"{fixed}\"")), "{fixed}");
    }
}

#[tokio::test]
async fn a_part_is_granted_and_the_rest_is_declined() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let fields = [("answer", "part"), ("selector", "amount_due")];
    let review = person.review("one", &fields).await;
    assert_eq!(review.status, 200, "{}", review.text());
    let result = person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    assert_eq!(result.status, 200);
    assert_eq!(result.attribute("data-result"), "granted");
    let answers = world.engine.answers();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].granted_selectors, ["amount_due"]);
    assert!(answers[0].granted_actions.is_empty());
    assert_eq!(answers[0].declined_selectors, ["requesting_stakeholder"]);
    assert_eq!(answers[0].declined_actions, ["email.send"]);
    // The same form again has the same answer, and changes nothing.
    let changes = world.engine.changes();
    let again = person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    assert_eq!(again.attribute("data-result"), "granted");
    assert_eq!(world.engine.changes(), changes);
}

#[tokio::test]
async fn everything_is_granted_or_denied() {
    let world = World::new().await;
    for (name, answer, result) in [("one", "all", "granted"), ("two", "deny", "not-granted")] {
        world.engine.put(item(name));
        let person = world.signed_in().await;
        let review = person.review(name, &[("answer", answer)]).await;
        let path = format!("/approvals/{name}/confirm");
        let page = person.post(&path, &person.confirmation(&review)).await;
        assert_eq!(page.attribute("data-result"), result);
    }
    let answers = world.engine.answers();
    assert_eq!(answers[0].granted_actions, ["email.send"]);
    assert!(answers[0].declined_selectors.is_empty());
    assert!(answers[1].granted_selectors.is_empty() && answers[1].granted_actions.is_empty());
    assert_eq!(answers[1].declined_selectors.len(), 2);
}

#[tokio::test]
async fn a_part_of_nothing_is_asked_for_again() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let page = person.review("one", &[("answer", "part")]).await;
    assert_eq!(page.status, 422);
    let text = page.text();
    assert!(
        text.contains("href=\"#scope\"") && text.contains("id=\"scope\""),
        "{text}"
    );
    assert!(text.contains("<title>Error: "), "{text}");
    assert!(world.engine.answers().is_empty());
}

#[tokio::test]
async fn a_refused_passkey_reports_no_success() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    for (code, reason, status) in [
        (Code::PermissionDenied, "CREDENTIAL_POSSIBLE_CLONE", 403),
        (Code::PermissionDenied, "ASSERTION_SIGNATURE", 403),
        (Code::PermissionDenied, "CREDENTIAL_OF_ANOTHER", 403),
        (Code::FailedPrecondition, "CEREMONY_NOT_OPEN", 409),
        (Code::AlreadyExists, "OPERATION_CONFLICT", 409),
        (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", 503),
    ] {
        let review = person.review("one", &[("answer", "all")]).await;
        world.engine.refuse_next(refusal(code, reason));
        let page = person
            .post("/approvals/one/confirm", &person.confirmation(&review))
            .await;
        assert_eq!(page.refusal(), (status, reason.to_owned()));
        assert!(!page.text().contains("the engine's own words"));
        assert!(
            page.text().contains("href=\"/approvals/one\""),
            "the way back"
        );
    }
    assert!(world.engine.answers().is_empty());
    // A challenge is spent by its first answer, and counts for its own page only.
    let review = person.review("one", &[("answer", "all")]).await;
    let mut foreign = world.signed(&review.field("ceremony_id"), "AAAA", "webauthn.get");
    foreign.push(("operation_id", review.field("operation_id")));
    let page = person.post("/approvals/one/confirm", &foreign).await;
    assert_eq!(page.refusal(), (403, "ASSERTION_CHALLENGE".to_owned()));
    let page = person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    assert_eq!(page.refusal(), (409, "CEREMONY_NOT_OPEN".to_owned()));
}

#[tokio::test]
async fn a_queue_goes_on_without_a_subject_in_its_address() {
    let world = World::new().await;
    for name in ["one", "two", "three"] {
        world.engine.put(item(name));
    }
    let person = world.signed_in().await;
    let first = person.get("/approvals").await;
    assert!(!first.text().contains("canary-page-token"));
    let next = first.text();
    let next = next
        .split('"')
        .find(|it| it.starts_with("/approvals?page="))
        .unwrap();
    let second = person.get(next).await.text();
    assert_eq!(second.matches("<article").count(), 1);
    assert_eq!(person.get("/approvals?page=99").await.status, 200);
}
