//! What the owner sees: documents that fit the published schemas, page by page.

use std::fs;
use std::path::Path;

use cl_testbed::within;
use cl_wire::vault::v1::{ListClaimsRequest, ListEventsRequest};
use serde_json::Value;

use crate::documents::{AMOUNT, DATE, SUBJECT, TENANT, item};
use crate::support::{World, document};

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;
const OTHER_DAY: &str = r#"requested_delivery_date 0.6 "2030-02-09""#;
const MONEY: &str = r#"amount_due 0.5 {"amount":"4711.00","currency":"EUR"}"#;

fn schema(name: &str) -> jsonschema::Validator {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let bytes = fs::read(folder.join(format!("{name}.schema.json"))).unwrap();
    let schema: Value = serde_json::from_slice(&bytes).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

#[tokio::test]
async fn what_is_listed_fits_the_published_schemas() {
    let world = World::new().await;
    let running = world.start().await;
    let events = running
        .take(
            vec![
                item("m1", "Launch", &[DAY, MONEY]),
                item("m2", "Launch", &[OTHER_DAY]),
            ],
            1,
        )
        .await;
    running.erase_event(&events[1], 2).await.unwrap();
    running
        .take(vec![item("m3", "Launch", &[OTHER_DAY])], 3)
        .await;
    let (event_schema, claim_schema) = (schema("source-event"), schema("context-claim"));
    let listed = running.events().await;
    assert_eq!(listed.len(), 2);
    for entry in listed {
        let event = document(&entry.event);
        assert!(event_schema.is_valid(&event), "{event}");
    }
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 3);
    for claim in claims {
        assert!(claim_schema.is_valid(&claim), "{claim}");
        let mut broken = claim.clone();
        broken["status"] = "true".into();
        assert!(!claim_schema.is_valid(&broken));
    }
}

#[tokio::test]
async fn lists_come_page_by_page_newest_first() {
    let world = World::new().await;
    let running = world.start().await;
    let mut taken = Vec::new();
    for number in 0..5_u32 {
        let line = format!(r#"requested_delivery_date 0.6 "2030-03-0{}""#, number + 1);
        let items = vec![item(
            &format!("m{number}"),
            &format!("Topic {number}"),
            &[&line, MONEY],
        )];
        taken.extend(running.take(items, number).await);
    }
    taken.reverse();
    let mut owner = running.owner.clone();
    let mut events = Vec::new();
    let mut token = String::new();
    loop {
        let request = ListEventsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            page_size: 2,
            page_token: token,
        };
        let page = within("a page", owner.list_events(request)).await.unwrap();
        let page = page.into_inner();
        assert_eq!(page.total_size, 5);
        assert!(page.events.len() <= 2);
        events.extend(page.events);
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let ids: Vec<_> = events
        .iter()
        .map(|it| document(&it.event)["id"].clone())
        .collect();
    assert_eq!(ids, taken);

    for (predicate, total) in [
        (None, 6),
        (Some(DATE), 5),
        (Some(AMOUNT), 1),
        (Some("none"), 0),
    ] {
        let mut claims = Vec::new();
        let mut token = String::new();
        loop {
            let request = ListClaimsRequest {
                tenant: TENANT.to_owned(),
                subject_ref: SUBJECT.to_owned(),
                predicate: predicate.map(str::to_owned),
                page_size: 2,
                page_token: token,
            };
            let page = within("a page", owner.list_claims(request)).await.unwrap();
            let page = page.into_inner();
            assert_eq!(page.total_size, total, "{predicate:?}");
            claims.extend(page.claims);
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(u64::try_from(claims.len()).unwrap(), total, "{predicate:?}");
        let marks = claims.iter().flat_map(|claim| &claim.marks);
        assert!(marks.into_iter().all(|mark| mark == "test.line"));
        assert!(claims.iter().all(|claim| claim.derived_at.is_some()));
    }
}

#[tokio::test]
async fn a_subject_that_is_not_known_has_empty_lists() {
    let world = World::new().await;
    let running = world.start().await;
    assert!(running.events().await.is_empty());
    assert!(running.claims().await.is_empty());
}
