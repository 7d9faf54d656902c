//! Private words stay out of logs, errors, metrics and receipts.

use cl_testbed::logs;
use serde_json::json;

use crate::exchange::{Exchange, PERSON};
use crate::fakes::claim;
use crate::support::World;

const WORDS: [&str; 3] = ["canaryperson", "canarydenied", "canarypurpose"];

fn assert_clean(place: &str, bytes: &[u8]) {
    for word in WORDS {
        let found = bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!found, "{word} in {place}");
    }
}

#[tokio::test]
async fn private_words_appear_nowhere_but_in_items() {
    let world = World::new().await;
    let running = world.start().await;
    let mut exchange = Exchange::new("r1");
    exchange.request["purpose"] = json!("canarypurpose");
    let handle = exchange.handle("e:1");
    let granted = claim(PERSON, "person", &json!("canaryperson"), &handle);
    world.vault.set_claims(vec![granted.clone()]);
    world.vault.set_denied(vec![json!("canarydenied")]);
    let answer = running.project(&exchange).await.unwrap();
    assert!(answer.items[0].claim.contains("canaryperson"));

    let mut refusals = Vec::new();
    let leaking = claim(
        PERSON,
        "person",
        &json!("canaryperson canarydenied"),
        &handle,
    );
    world.vault.set_claims(vec![leaking]);
    refusals.push(running.project(&exchange).await.unwrap_err());
    let mut outside = granted.clone();
    outside.label = "restricted".to_owned();
    world.vault.set_claims(vec![outside]);
    refusals.push(running.project(&exchange).await.unwrap_err());
    let mut broken = granted.clone();
    broken.value = b"\"canaryperson".to_vec();
    world.vault.set_claims(vec![broken]);
    refusals.push(running.project(&exchange).await.unwrap_err());
    world.vault.set_claims(vec![granted]);
    world.receipts.set_complete_down(true);
    refusals.push(running.project(&exchange).await.unwrap_err());
    for refusal in &refusals {
        assert_clean("an error", format!("{refusal:?}").as_bytes());
        assert_clean("its details", refusal.details());
    }
    let metrics = running.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("semantic_projections_total"), "{metrics}");
    assert_clean("metrics", metrics.as_bytes());
    let logged = logs().into_bytes();
    assert!(!logged.is_empty());
    assert_clean("logs", &logged);
    assert_eq!(world.receipts.log().len(), 4);
    for (_, receipt) in world.receipts.log() {
        assert_clean("a receipt", receipt.to_string().as_bytes());
    }
}
