//! Nothing private leaves by logs, metrics or addresses (spec 11.3).

use cl_testbed::logs;
use cl_wire::policy::v1::ApprovalState;
use data_encoding::BASE64URL_NOPAD;
use tonic::Code;

use crate::engine::refusal;
use crate::items::{TAG, decision, item};
use crate::world::World;

#[tokio::test]
async fn logs_metrics_and_addresses_hold_no_canary() {
    let world = World::new().await;
    world.engine.put(item("one"));
    world.engine.put(item("two"));
    world.engine.decide(decision("d1"));
    let id = world.receipts.append("policy.decide", Some(TAG));
    let token = BASE64URL_NOPAD.encode(b"canary-link-token-canary-link-to");
    let visit = world.visit("/enrol").await;
    visit
        .post("/enrol/begin", &[("link_token", token.clone())])
        .await;
    let person = world.signed_in().await;
    let mut pages = Vec::new();
    for path in [
        "/approvals",
        "/approvals/one",
        "/access",
        "/decisions",
        "/receipts",
    ] {
        pages.push(person.get(path).await.text());
    }
    pages.push(person.get(&format!("/receipts/{id}")).await.text());
    let review = person.review("one", &[("answer", "all")]).await;
    person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    world
        .engine
        .change("two", |it| it.state = ApprovalState::Unspecified.into());
    assert_eq!(person.get("/approvals/two").await.code(), "INTERNAL");
    let words = refusal(Code::Internal, "CANARY_REASON");
    world.engine.refuse_next(words);
    assert_eq!(person.get("/approvals").await.code(), "INTERNAL");
    person.get("/approvals?q=canary-query").await;
    person.get("/canary-path").await;
    person
        .post("/sign-out", &[("a", "canary-field".to_owned())])
        .await;

    let session = person.cookie.split_once('=').unwrap().1;
    let metrics = world.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("console_answers_total"), "{metrics}");
    let canaries = [
        "canary-subject",
        "canary-purpose",
        "canary-session-token",
        "canary-page-token",
        "canary-query",
        "canary-field",
        "canary-path",
        "urn:example:person",
        TAG,
        &token,
        session,
        &person.csrf,
        "Y2FuYXJ5",
        "the engine's own words",
    ];
    for canary in canaries {
        assert!(!logs().contains(canary), "{canary} in the log");
        assert!(!metrics.contains(canary), "{canary} in a metric");
    }
    // The engine's token stays in the console; subjects and tags are in no address.
    for page in &pages {
        assert!(!page.contains("canary-session-token"));
        for address in page.split("href=\"").skip(1) {
            let address = address.split('"').next().unwrap();
            assert!(
                !address.contains("canary") && !address.contains(TAG),
                "{address}"
            );
        }
    }
}
