//! Private words stay out of logs, errors, metrics, receipts and the data folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cl_kv::RocksEngine;
use cl_testbed::logs;
use serde_json::json;

use crate::exchange::{Exchange, PERSON};
use crate::fakes::item;
use crate::support::World;

const WORDS: [&str; 4] = [
    "canaryperson",
    "canarypurpose",
    "canaryinstruction",
    "canarykey",
];

fn assert_clean(place: &str, bytes: &[u8]) {
    for word in WORDS {
        let found = bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!found, "{word} in {place}");
    }
}

fn files(folder: &Path, visit: &mut impl FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, visit);
        } else {
            visit(&path, &fs::read(&path).unwrap());
        }
    }
}

#[tokio::test]
async fn private_words_appear_nowhere_but_in_bundles() {
    let mut exchange = Exchange::new("r1");
    exchange.request["purpose"] = json!("canarypurpose");
    exchange.policy["bundle_instructions"] = json!(["canaryinstruction"]);
    let world = World::new().await;
    let text = "The request came from \"canaryperson\".";
    let handle = exchange.handle("e:1");
    let named = item(PERSON, text, &json!("canaryperson"), &handle);
    world.peers.proxy.set_items(vec![named.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    let running = world.start_on(Arc::new(engine)).await;
    let bundle_ref = running.issued(&exchange).await;

    let mut refusals = Vec::new();
    let mut broken = named.clone();
    broken.value = b"\"canaryperson".to_vec();
    world.peers.proxy.set_items(vec![broken]);
    let mut other = exchange.clone();
    other.request["id"] = json!("urn:cl:request:r2");
    let mut message = crate::support::issue_message(&other, other.grant());
    message.operation_id = crate::exchange::operation(9);
    refusals.push(running.issue_with(message).await.unwrap_err());
    let mut spaced = crate::support::issue_message(&exchange, exchange.grant());
    spaced.request.push(b' ');
    refusals.push(running.issue_with(spaced).await.unwrap_err());
    let delivery = running
        .redeem(&bundle_ref, Some("canarykey"), 2)
        .await
        .unwrap();
    assert!(
        String::from_utf8(delivery.envelope)
            .unwrap()
            .contains("canaryperson")
    );
    refusals.push(
        running
            .redeem(&bundle_ref, Some("canarykey2"), 3)
            .await
            .unwrap_err(),
    );
    for refusal in &refusals {
        assert_clean("an error", format!("{refusal:?}").as_bytes());
        assert_clean("its details", refusal.details());
    }
    let metrics = running.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("bundle_calls_total"), "{metrics}");
    assert_clean("metrics", metrics.as_bytes());
    let logged = logs().into_bytes();
    assert!(!logged.is_empty());
    assert_clean("logs", &logged);
    assert_eq!(world.peers.receipts.log().len(), 3);
    for recorded in world.peers.receipts.log() {
        assert_clean("a receipt", recorded.receipt.to_string().as_bytes());
    }
    running.kill().await;
    let mut count = 0;
    files(folder.path(), &mut |path, bytes| {
        count += 1;
        assert_clean(&path.display().to_string(), bytes);
    });
    assert!(count > 1);
}
