//! Receipts and proposals of recipients over HTTP.

use cl_model::receipt::BUNDLE_CONSUME;
use serde_json::{Value, json};

use crate::client::{Call, RECEIPTS};
use crate::documents::{
    ALIAS, DRAFT, PRINCIPAL, TENANT, canonical_bytes, consumption, proposal, receipt,
};
use crate::support::World;

#[tokio::test]
async fn a_receipt_is_recorded_and_read_back() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("reported");
    gateway.call(Call::redeem(&bundle)).await;
    let document = consumption(&bundle);
    let id = document["id"].as_str().unwrap();
    let answer = gateway.record(&bundle, &document).await;
    assert_eq!(answer.status, 201);
    answer.check_common_headers();
    assert_eq!(answer.body, canonical_bytes(&document));
    assert_eq!(
        answer.header("location"),
        Some(&*format!("{RECEIPTS}/{id}"))
    );
    assert_eq!(answer.header("context-layer-sequence"), Some("1"));
    assert_eq!(answer.header("idempotency-replayed"), None);

    let second = gateway
        .record(&bundle, &receipt(&bundle, DRAFT, PRINCIPAL, "Again."))
        .await;
    assert_eq!(second.header("context-layer-sequence"), Some("2"));
    let repeated = gateway.record(&bundle, &document).await;
    assert_eq!(repeated.status, 201);
    assert_eq!(repeated.header("context-layer-sequence"), Some("1"));
    assert_eq!(world.receipts.len(), 2);

    for spelling in [id.to_owned(), id.replace(':', "%3A")] {
        let read = gateway.call(Call::receipt(&spelling)).await;
        assert_eq!(read.status, 200);
        read.check_common_headers();
        assert_eq!(read.body, answer.body);
        assert_eq!(read.header("context-layer-sequence"), Some("1"));
        assert_eq!(read.header("location"), None);
    }
}

#[tokio::test]
async fn receipts_that_a_bundle_does_not_allow_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let (bundle, other) = (world.bundles.issue("refused"), world.bundles.issue("other"));
    let refused = async |bundle: &str, document: &Value| {
        let (status, code) = gateway.record(bundle, document).await.refusal();
        format!("{status} {code}")
    };
    let first = consumption(&bundle);
    assert_eq!(refused(&bundle, &first).await, "409 BUNDLE_NOT_REDEEMED");
    gateway.call(Call::redeem(&bundle)).await;
    let outside = "403 RECEIPT_OUTSIDE_CONTRACT";
    assert_eq!(refused(&bundle, &consumption(&other)).await, outside);
    let foreign = receipt(&bundle, BUNDLE_CONSUME, "urn:agent:another", "Opened.");
    assert_eq!(refused(&bundle, &foreign).await, outside);
    let ungranted = receipt(&bundle, "calendar.delete", PRINCIPAL, "Deleted.");
    assert_eq!(refused(&bundle, &ungranted).await, outside);
    assert_eq!(gateway.record(&bundle, &first).await.status, 201);
    let second = receipt(&bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened again.");
    assert_eq!(
        refused(&bundle, &second).await,
        "409 RECEIPT_REPLAY_CONFLICT"
    );
    let unknown = "urn:cl:bundle:unknown";
    assert_eq!(refused(unknown, &first).await, "404 BUNDLE_NOT_FOUND");

    let arrived = world.bundles.faults.calls();
    let with = |member: &str, value: Value| {
        let mut document = first.clone();
        document[member] = value;
        document
    };
    for (document, code) in [
        (
            with("outcome", json!("failure")),
            "400 RECORD_INTEGRITY_MISMATCH",
        ),
        (with("surprise", json!(1)), "400 RECORD_INTEGRITY_MISMATCH"),
        (with("integrity", json!(1)), "400 INVALID_RECORD_INTEGRITY"),
        (json!([]), "400 INVALID_OBJECT"),
    ] {
        assert_eq!(refused(&bundle, &document).await, code);
    }
    for (body, expected) in [
        ("{".to_owned(), (400, "INVALID_JSON")),
        (r#"{"a":1,"a":1}"#.to_owned(), (400, "DUPLICATE_MEMBER")),
        (" ".repeat(65_536), (400, "INVALID_JSON")),
        (" ".repeat(65_537), (413, "DOCUMENT_TOO_LARGE")),
    ] {
        let answer = gateway.call(Call::record(&bundle, body)).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
    }
    assert_eq!(
        world.bundles.faults.calls(),
        arrived,
        "none of them arrived"
    );
}

#[tokio::test]
async fn a_proposal_waits_until_it_is_decided() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = proposal(ALIAS, PRINCIPAL, "The traveller said so.");
    let answer = gateway.propose(&document).await;
    assert_eq!(answer.status, 202);
    answer.check_common_headers();
    assert_eq!(answer.header("location"), None);
    assert_eq!(answer.header("retry-after"), None);
    let mut stored = document.clone();
    stored["status"] = json!("pending_approval");
    assert_eq!(answer.body, canonical_bytes(&stored));
    let arrived = &world.vault.submissions()[0];
    assert_eq!(arrived.proposal, canonical_bytes(&document));
    assert_eq!(arrived.tenant, TENANT);
    assert_eq!(arrived.submitter, PRINCIPAL);

    for (status, expected) in [
        ("pending_validation", 202),
        ("approved", 201),
        ("committed", 201),
        ("rejected", 201),
        ("expired", 201),
    ] {
        world
            .vault
            .set_status(document["id"].as_str().unwrap(), status);
        let repeated = gateway.propose(&document).await;
        assert_eq!(repeated.status, expected, "{status}");
        assert_eq!(repeated.json()["status"], status);
    }
    assert_eq!(world.vault.len(), 1);
}

#[tokio::test]
async fn proposals_that_the_vault_does_not_take_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let refused = async |document: &Value| {
        let (status, code) = gateway.propose(document).await.refusal();
        format!("{status} {code}")
    };
    let foreign = proposal(ALIAS, "urn:agent:another", "Because.");
    assert_eq!(refused(&foreign).await, "403 SUBMITTER_MISMATCH");
    let unknown = proposal("urn:cl:alias:a-2", PRINCIPAL, "Because.");
    assert_eq!(refused(&unknown).await, "404 EXCHANGE_NOT_FOUND");
    let good = proposal(ALIAS, PRINCIPAL, "Because.");
    world.vault.expire_exchange(true);
    assert_eq!(refused(&good).await, "410 EXCHANGE_EXPIRED");
    world.vault.expire_exchange(false);
    world.vault.erase_subject();
    assert_eq!(refused(&good).await, "410 SUBJECT_ERASED");

    let arrived = world.vault.faults.calls();
    let mut changed = good.clone();
    changed["rationale"] = json!("Another.");
    assert_eq!(refused(&changed).await, "400 RECORD_INTEGRITY_MISMATCH");
    assert_eq!(refused(&json!({})).await, "400 INVALID_RECORD_INTEGRITY");
    let long = proposal(ALIAS, PRINCIPAL, &"x".repeat(1_001));
    assert_eq!(refused(&long).await, "400 INVALID_MEMORY_PROPOSAL");
    for (length, expected) in [
        (262_144, (400, "INVALID_JSON")),
        (262_145, (413, "DOCUMENT_TOO_LARGE")),
    ] {
        let answer = gateway.call(Call::propose(" ".repeat(length))).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
    }
    assert_eq!(world.vault.faults.calls(), arrived, "none of them arrived");
}
