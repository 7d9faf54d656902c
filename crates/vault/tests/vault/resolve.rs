//! What leaves under a grant, and what stays.

use cl_model::leak::{self, Fingerprint, LeakKey};
use cl_wire::vault::v1::{CapturedItem, LeakGuard, ResolveClaimsResponse};
use serde_json::json;

use crate::documents::{ALIAS, AMOUNT, DATE, GrantDraft, PERSON, item, operation, provenance};
use crate::support::{World, values};

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;
const MONEY: &str = r#"amount_due 0.5 {"amount":"4711.00","currency":"EUR"}"#;
const ANN: &str = r#"requesting_stakeholder 0.7 "Ann Example""#;

fn finds(guard: &LeakGuard, text: &str) -> bool {
    guarding(guard).finds(text)
}

fn guarding(guard: &LeakGuard) -> leak::LeakGuard {
    let key = LeakKey::new(&guard.key).unwrap();
    let prints = guard.fingerprints.iter().map(|print| Fingerprint {
        length: usize::try_from(print.length).unwrap(),
        rolling: print.rolling,
        tag: print.tag.clone().try_into().unwrap(),
    });
    leak::LeakGuard::new(key, prints)
}

#[tokio::test]
async fn returns_the_granted_predicate_with_handles_and_a_receipt() {
    let world = World::new().await;
    let running = world.start().await;
    let events = running
        .take(vec![item("m1", "Launch", &[DAY, MONEY, ANN])], 1)
        .await;
    let call = GrantDraft::new("r1", &[DATE]).call(2);
    let answer = running.resolve(call).await.unwrap();
    assert_eq!(values(&answer), ["2030-02-01"]);
    let claim = &answer.claims[0];
    assert_eq!(
        (claim.predicate.as_str(), claim.datatype.as_str()),
        (DATE, "date")
    );
    assert_eq!(
        (claim.status.as_str(), claim.trust.as_str()),
        ("derived", "untrusted")
    );
    assert_eq!(claim.label, "private");
    assert_eq!(answer.withheld, 0);
    let handle = provenance(&events[0], "r1").handle();
    assert_eq!(claim.provenance_handles, [handle.as_str()]);

    let receipts = world.receipts.of("vault.resolve");
    assert_eq!(receipts.len(), 1);
    let receipt = &receipts[0].receipt;
    assert_eq!(receipt["subject_ref"], ALIAS);
    assert_eq!(receipt["request_ref"], "urn:cl:request:r1");
    assert!(receipt["decision_ref"].is_string() && receipt["policy_snapshot"].is_string());
    assert_eq!(receipt["metadata"]["claims"], "1");
}

#[tokio::test]
async fn denied_values_of_the_same_sources_are_guarded() {
    let world = World::new().await;
    let running = world.start().await;
    let elsewhere = r#"requesting_stakeholder 0.7 "Carol Elsewhere""#;
    running
        .take(
            vec![
                item("m1", "Launch", &[DAY, MONEY, ANN]),
                item("m2", "Other", &[elsewhere]),
            ],
            1,
        )
        .await;
    let grant = |tail| GrantDraft::new(tail, &[DATE]);
    let answer = running.resolve(grant("r1").call(2)).await.unwrap();
    let guard = answer.leak_guard.unwrap();
    assert!(finds(&guard, "Please ask ann  EXAMPLE about it"));
    assert!(finds(&guard, "4711 euros"));
    assert!(!finds(&guard, "2030-02-01"));
    assert!(!finds(&guard, "Carol Elsewhere"));
    let again = grant("r2").with(|grant| {
        grant.plan["subject_alias"] = json!("urn:cl:alias:exchange-2");
    });
    let again = running.resolve(again.call(3)).await.unwrap();
    assert_ne!(again.leak_guard.unwrap().key, guard.key);
}

#[tokio::test]
async fn a_source_has_another_handle_in_each_exchange() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let handles = async |tail: &str, number| {
        let answer = running
            .resolve(GrantDraft::new(tail, &[DATE]).call(number))
            .await
            .unwrap();
        answer.claims[0].provenance_handles.clone()
    };
    assert_ne!(handles("r1", 2).await, handles("r2", 3).await);
}

#[tokio::test]
async fn the_plan_bounds_what_leaves() {
    let world = World::new().await;
    let running = world.start().await;
    running
        .take(vec![item("m1", "Launch", &[DAY, MONEY])], 1)
        .await;
    for (number, (name, value, claims)) in [
        ("max_label", json!("internal"), 0),
        ("max_label", json!("private"), 1),
        ("min_trust", json!("verified"), 0),
        ("min_confidence", json!(0.61), 0),
        ("min_confidence", json!(0.6), 1),
        ("statuses", json!(["asserted"]), 0),
        ("statuses", json!(["derived"]), 1),
    ]
    .into_iter()
    .enumerate()
    {
        let number = u32::try_from(number).unwrap() + 10;
        let grant = GrantDraft::new(&format!("r{number}"), &[DATE]).with(|grant| {
            grant.plan["rules"][0][name] = value.clone();
            grant.plan["subject_alias"] = json!(format!("urn:cl:alias:exchange-{number}"));
        });
        let answer = running.resolve(grant.call(number)).await.unwrap();
        assert_eq!(answer.claims.len(), claims, "{name} {value}");
        assert_eq!(answer.withheld, u32::from(claims == 0), "{name} {value}");
    }
}

#[tokio::test]
async fn claims_end_with_their_validity() {
    let world = World::new().await;
    let running = world.start().await;
    let line = format!("{DAY} until 2030-01-01T12:01:00Z");
    running.take(vec![item("m1", "Launch", &[&line])], 1).await;
    let resolve = async |number: u32| -> ResolveClaimsResponse {
        let grant = GrantDraft::new("r1", &[DATE]);
        running.resolve(grant.call(number)).await.unwrap()
    };
    assert_eq!(resolve(2).await.claims.len(), 1);
    world.clock.advance(60_000);
    let answer = resolve(3).await;
    assert_eq!((answer.claims.len(), answer.withheld), (0, 1));
}

#[tokio::test]
async fn at_most_64_claims_leave_in_the_order_of_the_plan() {
    let world = World::new().await;
    let running = world.start().await;
    for group in 0..2_u32 {
        let items = (0..40).map(|number| {
            let number = group * 40 + number;
            let line = format!(
                r#"requesting_stakeholder 0.{:02} "Person {number}""#,
                number % 50
            );
            item(&format!("m{number}"), "Launch", &[&line])
        });
        running.take(items.collect(), group).await;
    }
    running.take(vec![item("last", "Launch", &[DAY])], 9).await;
    let grant = GrantDraft::new("r1", &[PERSON, DATE]);
    let order: Vec<_> = grant.plan["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["predicate"].as_str().unwrap().to_owned())
        .collect();
    let answer = running.resolve(grant.call(10)).await.unwrap();
    assert_eq!((answer.claims.len(), answer.withheld), (64, 17));
    let positions: Vec<_> = answer
        .claims
        .iter()
        .map(|claim| order.iter().position(|it| *it == claim.predicate).unwrap())
        .collect();
    assert!(positions.is_sorted());
    let people = answer.claims.iter().filter(|it| it.predicate == PERSON);
    let confidences: Vec<_> = people.map(|claim| claim.confidence).collect();
    assert!(confidences.is_sorted_by(|one, other| one >= other));
    let again = running.resolve(grant.call(11)).await.unwrap();
    assert_eq!(values(&again), values(&answer));
}

#[tokio::test]
async fn an_unknown_subject_has_no_claims_and_a_receipt_anyway() {
    let world = World::new().await;
    let running = world.start().await;
    let call = GrantDraft::new("r1", &[DATE, AMOUNT]).call(1);
    for _ in 0..2 {
        let answer = running.resolve(call.clone()).await.unwrap();
        assert!(answer.claims.is_empty() && answer.withheld == 0);
        assert_eq!(answer.leak_guard.unwrap().key.len(), 32);
    }
    assert_eq!(world.receipts.of("vault.resolve").len(), 1);
}

#[tokio::test]
async fn a_repeat_has_one_receipt_unless_its_answer_differs() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let call = GrantDraft::new("r1", &[DATE]).call(2);
    let first = running.resolve(call.clone()).await.unwrap();
    let again = running.resolve(call.clone()).await.unwrap();
    assert_eq!(again.claims, first.claims);
    assert_eq!(world.receipts.of("vault.resolve").len(), 1);

    let more = r#"requested_delivery_date 0.6 "2030-03-03""#;
    running.take(vec![item("m2", "Other", &[more])], 3).await;
    let differs = running.resolve(call).await.unwrap();
    assert_eq!(differs.claims.len(), 2);
    let receipts = world.receipts.of("vault.resolve");
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[1].receipt["metadata"]["repeat_of"], operation(2));
    assert_ne!(receipts[1].routing.operation_id, operation(2));
}

/// One of many long names.
fn name(number: usize) -> String {
    format!("{:05}", number * 7919 % 100_000).repeat(60)
}

/// Messages that all state `day`, each beside 60 names of 12 fingerprints.
fn crowded(day: &str, messages: std::ops::Range<usize>) -> Vec<CapturedItem> {
    messages
        .map(|message| {
            let names = (0..60).map(|it| name(message * 60 + it));
            let lines = names.map(|name| format!(r#"requesting_stakeholder 0.7 "{name}""#));
            let lines: Vec<_> = lines.chain([day.to_owned()]).collect();
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            item(&format!("m{message}"), "Launch", &lines)
        })
        .collect()
}

#[tokio::test]
async fn each_of_many_denied_values_is_guarded() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(crowded(DAY, 0..20), 1).await;
    let answer = running
        .resolve(GrantDraft::new("r1", &[DATE]).call(2))
        .await
        .unwrap();
    assert_eq!(values(&answer), ["2030-02-01"]);
    let guard = answer.leak_guard.unwrap();
    assert!(guard.fingerprints.len() > 4096);
    let guard = guarding(&guard);
    assert!((0..20 * 60).all(|number| guard.finds(&name(number)[..30])));
}

#[tokio::test]
async fn a_claim_beside_more_denied_values_than_a_guard_holds_stays() {
    let world = World::new().await;
    let running = world.start().await;
    for group in 0..10 {
        let items = crowded(DAY, group * 10..(group + 1) * 10);
        running.take(items, u32::try_from(group).unwrap()).await;
    }
    let other = r#"requested_delivery_date 0.5 "2030-03-03""#;
    running
        .take(vec![item("other", "Other", &[other])], 20)
        .await;
    let answer = running
        .resolve(GrantDraft::new("r1", &[DATE]).call(21))
        .await
        .unwrap();
    assert_eq!(values(&answer), ["2030-03-03"]);
    assert_eq!(answer.withheld, 1);
}
