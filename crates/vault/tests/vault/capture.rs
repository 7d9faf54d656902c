//! What capture takes in, what it takes for the same, and what it refuses.

use std::collections::BTreeSet;

use cl_testbed::{refusal, refused};
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::captured_item::{Content, Payload};
use cl_wire::vault::v1::{CapturedItem, TextOrigin};
use serde_json::{Value, json};
use tonic::Code;

use crate::documents::{
    AMOUNT, DATE, PERSON, batch, bytes, event_without_id, finalized, item, operation,
};
use crate::support::{BROKEN, World, document};

const LINE: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;

#[tokio::test]
async fn events_and_claims_are_stored_with_labels_and_listed() {
    let world = World::new().await;
    let running = world.start().await;
    let amount = r#"amount_due 0.5 {"amount":"12.50","currency":"EUR"}"#;
    let events = running
        .take(vec![item("m1", "Launch", &[LINE, amount])], 1)
        .await;
    let listed = running.events().await;
    assert_eq!(listed.len(), 1);
    assert_eq!(document(&listed[0].event)["id"], *events[0]);
    assert_eq!(listed[0].claims, 2);
    assert_eq!(listed[0].label, "restricted");
    let claims = running.claim_documents().await;
    let of = |predicate: &str| {
        let mut of = claims
            .iter()
            .filter(|claim| claim["predicate"] == predicate);
        of.next().unwrap()
    };
    assert_eq!(of(DATE)["object"]["value"], "2030-02-01");
    assert_eq!(of(DATE)["label"], "private");
    assert_eq!(of(AMOUNT)["label"], "sensitive");
    for claim in &claims {
        assert_eq!(claim["status"], "derived");
        assert_eq!(claim["trust"], "untrusted");
        assert_eq!(claim["provenance_refs"], json!(events));
    }
    let receipts = world.receipts.of("vault.capture");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["metadata"]["captured"], "1");
    assert_eq!(receipts[0].routing.operation_id, operation(1));
    assert!(receipts[0].routing.subject_tag.is_some());
}

#[tokio::test]
async fn an_item_is_one_event_however_often_it_comes() {
    let world = World::new().await;
    let running = world.start().await;
    let first = item("m1", "Launch", &[LINE]);
    let events = running.take(vec![first.clone()], 1).await;
    let payload = match first.payload.clone().unwrap() {
        Payload::Inline(bytes) => bytes,
        Payload::StoredDigest(_) => panic!("inline"),
    };
    let by_another_way = |way: &str| {
        let mut event = event_without_id("m1", &payload);
        event["captured_at"] = json!("2030-01-01T11:30:00Z");
        event["provenance"] = json!([{"kind": way, "confidence": 0.5}]);
        CapturedItem {
            event: bytes(&finalized(event)),
            ..first.clone()
        }
    };
    let duplicates = vec![
        by_another_way("export.mbox"),
        by_another_way("direct_capture"),
        by_another_way("export.mbox"),
        first.clone(),
    ];
    for outcome in running.capture(batch(duplicates, 2)).await.unwrap() {
        let CaptureResult::Duplicate(event) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((event.event_ref, event.claims), (events[0].clone(), 1));
    }
    let listed = running.events().await;
    assert_eq!(listed.len(), 1);
    let ways: BTreeSet<_> = listed[0]
        .further_provenance
        .iter()
        .map(|way| document(way).to_string())
        .collect();
    assert_eq!(ways.len(), listed[0].further_provenance.len());
    // The same kind with another confidence is another way.
    assert_eq!(ways.len(), 2);
    assert_eq!(running.claims().await.len(), 1);

    // The same native id with another payload is another event.
    let other = item("m1", "Launch", &[LINE, "edited"]);
    let other = running.take(vec![other], 3).await;
    assert_ne!(other, events);
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["provenance_refs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_repeated_batch_answers_the_same_and_other_content_conflicts() {
    let world = World::new().await;
    let running = world.start().await;
    let message = batch(vec![item("m1", "Launch", &[LINE])], 1);
    let outcomes = running.capture(message.clone()).await.unwrap();
    assert!(matches!(outcomes[0], CaptureResult::Captured(_)));
    assert_eq!(running.capture(message.clone()).await.unwrap(), outcomes);
    assert_eq!(world.receipts.of("vault.capture").len(), 1);
    let other = batch(vec![item("m2", "Launch", &[LINE])], 1);
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(running.capture(other).await), conflict);
    assert_eq!(running.events().await.len(), 1);
}

#[tokio::test]
async fn repetition_makes_no_claim_more_certain() {
    let world = World::new().await;
    let running = world.start().await;
    let items: Vec<_> = (0..20)
        .map(|number| item(&format!("m{number}"), "Launch", &[LINE]))
        .collect();
    running.take(items, 1).await;
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["confidence"], json!(0.6));
    assert_eq!(claims[0]["trust"], "untrusted");
    assert_eq!(claims[0]["status"], "derived");
    assert_eq!(claims[0]["provenance_refs"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn only_what_the_vocabulary_admits_becomes_a_claim() {
    let world = World::new().await;
    let running = world.start().await;
    let lines = [
        r#"requested_delivery_date 0.6 "tomorrow""#,
        r#"password 0.9 "swordfish""#,
        r#"requesting_stakeholder 0.7 "Ann""#,
    ];
    let mut quoted = item("m2", "Launch", &[LINE]);
    let Some(Content::Mail(mail)) = &mut quoted.content else {
        panic!("mail");
    };
    mail.text[0].origin = TextOrigin::Quoted.into();
    mail.marks = vec!["charset.unknown".to_owned()];
    let mut silent = item("m3", "Launch", &[LINE]);
    silent.content = None;
    running
        .take(vec![item("m1", "Launch", &lines), quoted, silent], 1)
        .await;
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["predicate"], PERSON);
    let marks: Vec<_> = running
        .events()
        .await
        .into_iter()
        .map(|event| event.marks)
        .collect();
    // Latest first.
    assert_eq!(marks[0], ["not_extracted"]);
    assert_eq!(marks[1], ["charset.unknown"]);
    assert_eq!(marks[2], ["candidate.refused"]);
}

#[tokio::test]
async fn an_extractor_that_breaks_costs_its_claims_and_nothing_else() {
    let world = World::new().await;
    let running = world.start().await;
    let items = vec![
        item("m1", "Launch", &[LINE]),
        item("m2", "Launch", &[LINE, BROKEN]),
    ];
    let events = running.take(items, 1).await;
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["provenance_refs"], json!([events[0]]));
    let listed = running.events().await;
    let broken = listed.iter().find(|it| it.claims == 0).unwrap();
    assert_eq!(document(&broken.event)["id"], *events[1]);
    assert_eq!(broken.marks, ["extraction.failed", "not_extracted"]);
}

#[tokio::test]
async fn each_item_has_its_own_refusal() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = b"payload".to_vec();
    let with_event = |event: Vec<u8>| CapturedItem {
        event,
        payload: Some(Payload::Inline(payload.clone())),
        content: None,
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut event = event_without_id("m1", &payload);
        change(&mut event);
        with_event(bytes(&finalized(event)))
    };
    let mut forged = finalized(event_without_id("m1", &payload));
    forged["captured_at"] = json!("2030-01-01T11:00:01Z");
    let good = with_event(bytes(&finalized(event_without_id("m1", &payload))));
    let mut no_payload = good.clone();
    no_payload.payload = None;
    let mut large = good.clone();
    large.payload = Some(Payload::Inline(vec![0; 1024 * 1024 + 1]));
    let mut unknown = good.clone();
    unknown.payload = Some(Payload::StoredDigest(format!("sha256:{}", "0".repeat(64))));
    let mut no_digest = good.clone();
    no_digest.payload = Some(Payload::StoredDigest("sha256:".to_owned()));
    let mut bad_content = item("m1", "Launch", &[LINE]);
    let Some(Content::Mail(mail)) = &mut bad_content.content else {
        panic!("mail");
    };
    mail.subject_line = "x".repeat(2001);
    let cases = vec![
        (with_event(b"{".to_vec()), "INVALID_JSON"),
        (with_event(b"{ }".to_vec()), "NOT_CANONICAL"),
        (with_event(vec![b' '; 262_145]), "DOCUMENT_TOO_LARGE"),
        (with_event(b"{}".to_vec()), "INVALID_SOURCE_EVENT"),
        (with_event(bytes(&forged)), "RECORD_INTEGRITY_MISMATCH"),
        (
            changed(&|event| event["subject_ref"] = json!("vault://subjects/other")),
            "SUBJECT_MISMATCH",
        ),
        (
            changed(&|event| {
                event["payload_ref"]
                    .as_object_mut()
                    .unwrap()
                    .remove("digest");
            }),
            "PAYLOAD_DIGEST_REQUIRED",
        ),
        (
            changed(&|event| {
                event["payload_ref"]["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
            }),
            "PAYLOAD_DIGEST_MISMATCH",
        ),
        (
            changed(&|event| event["payload_ref"]["byte_length"] = json!(1)),
            "PAYLOAD_LENGTH_MISMATCH",
        ),
        (no_payload, "PAYLOAD_REQUIRED"),
        (large, "PAYLOAD_TOO_LARGE"),
        (unknown, "PAYLOAD_NOT_FOUND"),
        (no_digest, "INVALID_DIGEST"),
        (bad_content, "INVALID_CONTENT"),
    ];
    let (mut items, codes): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    items.push(good);
    let mut outcomes = running.capture(batch(items, 1)).await.unwrap();
    let last = outcomes.pop().unwrap();
    assert!(matches!(last, CaptureResult::Captured(_)), "{last:?}");
    for (outcome, code) in outcomes.into_iter().zip(codes) {
        assert_eq!(outcome, CaptureResult::RefusedCode(code.to_owned()));
    }
    assert_eq!(running.events().await.len(), 1);
    let receipt = &world.receipts.of("vault.capture")[0].receipt;
    assert_eq!(receipt["metadata"]["refused"], "14");
}

#[tokio::test]
async fn parallel_batches_of_one_subject_all_arrive() {
    let world = World::new().await;
    let running = world.start().await;
    let mut tasks = Vec::new();
    for number in 0..16_u32 {
        let mut capture = running.capture.clone();
        let items = vec![
            item(&format!("m{number}"), "Launch", &[LINE]),
            item("same", "Launch", &[LINE]),
        ];
        tasks.push(tokio::spawn(async move {
            capture.capture_events(batch(items, number)).await.unwrap()
        }));
    }
    let mut captured = 0;
    for task in tasks {
        let outcomes = task.await.unwrap().into_inner().outcomes;
        captured += outcomes
            .into_iter()
            .filter(|outcome| matches!(outcome.result, Some(CaptureResult::Captured(_))))
            .count();
    }
    assert_eq!(captured, 17);
    assert_eq!(running.events().await.len(), 17);
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["provenance_refs"].as_array().unwrap().len(), 17);
}

#[tokio::test]
async fn subjects_and_tenants_are_apart() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[LINE])], 1).await;
    let mut other = batch(vec![item("m1", "Launch", &[LINE])], 2);
    other.tenant = "globex".to_owned();
    let outcomes = running.capture(other).await.unwrap();
    assert!(matches!(outcomes[0], CaptureResult::Captured(_)));
    assert_eq!(running.events().await.len(), 1);
    let tags: BTreeSet<_> = world
        .receipts
        .of("vault.capture")
        .into_iter()
        .map(|recorded| recorded.routing.subject_tag)
        .collect();
    assert_eq!(tags.len(), 2);
}
