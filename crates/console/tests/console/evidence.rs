//! What people look back on, and end.

use crate::items::{TAG, decision};
use crate::world::{Options, World};

const OTHER_TAG: &str = "b3RoZXItdGFnLW90aGVyLXRhZy1vdGhlci10YWctb3Q";

#[tokio::test]
async fn access_is_ended_after_a_question() {
    let world = World::new().await;
    world.engine.decide(decision("d1"));
    let person = world.signed_in().await;
    let list = person.get("/access").await.text();
    assert!(
        list.contains("/access/d1/revoke") && list.contains("until"),
        "{list}"
    );
    let ask = person.get("/access/d1/revoke").await;
    assert!(ask.text().contains("End this access?"));
    let operation = || ("operation_id", ask.field("operation_id"));
    let done = person.post("/access/d1/revoke", &[operation()]).await;
    assert_eq!(done.attribute("data-result"), "revoked");
    assert!(
        person
            .get("/access")
            .await
            .text()
            .contains("Nobody has access")
    );
    let late = person.post("/access/d1/revoke", &[operation()]).await;
    assert_eq!(late.refusal(), (409, "GRANT_NOT_ACTIVE".to_owned()));
    let malformed = ("operation_id", "urn:cl:operation:x".to_owned());
    let malformed = person.post("/access/d1/revoke", &[malformed]).await;
    assert_eq!(malformed.refusal(), (400, "FORM_INVALID".to_owned()));
    let unknown = person.post("/access/other/revoke", &[operation()]).await;
    assert_eq!(unknown.refusal(), (404, "DECISION_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn decisions_come_with_their_reasons() {
    let world = World::new().await;
    world.engine.decide(decision("d1"));
    let person = world.signed_in().await;
    let page = person.get("/decisions").await.text();
    for shown in [
        "A part was granted",
        "Less was granted than was asked for.",
        "Some kinds of facts are withheld.",
        "SELECTORS_WITHHELD",
        "Amount due",
        "the access is active until",
        "/receipts?decision=urn:cl:decision:d1",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[tokio::test]
async fn receipts_are_proved_against_the_trusted_log() {
    let world = World::new().await;
    let id = world.receipts.append("policy.decide", Some(TAG));
    let person = world.signed_in().await;
    let list = person.get("/receipts").await.text();
    assert!(list.contains(&format!("/receipts/{id}")), "{list}");
    let page = person.get(&format!("/receipts/{id}")).await;
    assert_eq!(page.attribute("data-proof"), "verified");
    let text = page.text();
    assert!(text.contains("decided a context request"), "{text}");
    assert!(
        text.contains("entry 1 of the 1 in the log example.org/receipts/default"),
        "{text}"
    );
    world.receipts.forge();
    let page = person.get(&format!("/receipts/{id}")).await;
    assert_eq!(page.attribute("data-proof"), "not-verified");
    assert_eq!(page.code(), "RECEIPT_LOG_PROOF_MISMATCH");
}

#[tokio::test]
async fn receipts_of_others_do_not_exist() {
    let world = World::new().await;
    let person = world.signed_in().await;
    for tag in [Some(OTHER_TAG), None] {
        let id = world.receipts.append("policy.decide", tag);
        let page = person.get(&format!("/receipts/{id}")).await;
        assert_eq!(page.refusal(), (404, "RECEIPT_NOT_FOUND".to_owned()));
    }
    assert!(
        person
            .get("/receipts")
            .await
            .text()
            .contains("No receipt fits.")
    );
    let asked = world.receipts.asked();
    assert!(
        asked
            .iter()
            .all(|it| it.subject_tag.as_deref() == Some(TAG))
    );
}

#[tokio::test]
async fn receipts_are_searched_by_what_is_well_formed() {
    let world = World::new().await;
    let person = world.signed_in().await;
    let path = "/receipts?operation=bundle.issue&outcome=success&from=2030-06-01&to=2030-06-02\
                &bundle=urn%3Acl%3Abundle%3Ab1&decision=urn:cl:decision:d1";
    let page = person.get(path).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("value=\"bundle.issue\""));
    let asked = world.receipts.asked().pop().unwrap();
    assert_eq!(asked.operation.as_deref(), Some("bundle.issue"));
    assert_eq!(asked.outcome.as_deref(), Some("success"));
    assert_eq!(asked.bundle_ref.as_deref(), Some("urn:cl:bundle:b1"));
    assert_eq!(asked.decision_ref.as_deref(), Some("urn:cl:decision:d1"));
    assert_eq!(asked.recorded_from.unwrap().seconds, 1_906_502_400);
    for bad in [
        "operation=%3Cscript%3E",
        "outcome=maybe",
        "from=yesterday",
        "to=2030-13-01",
        "bundle=urn:cl:decision:d1",
        "decision=d1",
        &format!("bundle=urn:cl:bundle:{}", "b".repeat(512)),
        "outcome=success&outcome=failure",
        "a=%ff",
    ] {
        let page = person.get(&format!("/receipts?{bad}")).await;
        assert_eq!(page.refusal(), (400, "FORM_INVALID".to_owned()), "{bad}");
    }
    let none = person.get("/receipts?subject=0000000000000000").await;
    assert_eq!(none.status, 200);
}

#[tokio::test]
async fn without_a_receipt_store_there_are_none() {
    let options = Options {
        has_receipts: false,
        ..Options::default()
    };
    let world = World::with(options).await;
    let person = world.signed_in().await;
    assert_eq!(
        person.get("/receipts").await.refusal(),
        (503, "NOT_SERVED".to_owned())
    );
}
