//! Processes die at any moment, and nothing that was acknowledged is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::decisions::{Exchange, decided, id_of, read, submit};
use crate::deployment::{Deployment, GATEWAY, HANG, POLICY_ENGINE, RECEIPT_STORE, until};

const CLIENTS: usize = 4;

/// Each process twice, in an order that has each die while each other one is young.
const DEATHS: [&str; 6] = [
    RECEIPT_STORE,
    POLICY_ENGINE,
    GATEWAY,
    POLICY_ENGINE,
    RECEIPT_STORE,
    GATEWAY,
];

/// Submits requests one after the other, each until it is answered, and remembers every answer.
async fn client(
    exchange: Exchange,
    template: Value,
    name: usize,
    over: Arc<AtomicBool>,
) -> BTreeMap<String, Vec<u8>> {
    let mut acknowledged = BTreeMap::new();
    let mut number = 0;
    while !over.load(Ordering::SeqCst) {
        let mut request = template.clone();
        let reference = format!("urn:cl:request:crash-{name}-{number}");
        request["id"] = reference.clone().into();
        acknowledged.insert(reference, answered(&exchange, &request).await);
        number += 1;
    }
    acknowledged
}

async fn answered(exchange: &Exchange, request: &Value) -> Vec<u8> {
    let answered = tokio::time::timeout(HANG, async {
        loop {
            if let Ok(decision) = submit(exchange, request).await {
                return decision;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    answered.await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_lose_nothing_that_was_acknowledged() {
    let mut deployment = Deployment::start().await;
    let exchange = deployment.exchange();
    let over = Arc::new(AtomicBool::new(false));
    let template = deployment.request("template");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|name| {
            let over = Arc::clone(&over);
            tokio::spawn(client(exchange.clone(), template.clone(), name, over))
        })
        .collect();
    for (round, name) in DEATHS.into_iter().enumerate() {
        // Some work is under way at each death.
        until("some decisions", async || {
            (decided(&deployment).len() > 5 * (round + 1)).then_some(())
        })
        .await;
        deployment.kill(name);
        deployment.run(name).await;
    }
    over.store(true, Ordering::SeqCst);
    let mut acknowledged = BTreeMap::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }

    assert!(acknowledged.len() > 5 * DEATHS.len());
    for (reference, decision) in &acknowledged {
        let kept = read(&exchange, reference).await.unwrap();
        assert_eq!(&kept, decision, "{reference}");
    }
    // One receipt for each decision: none lost, none twice.
    let mut receipted = decided(&deployment);
    receipted.sort();
    let mut expected: Vec<_> = acknowledged.values().map(|it| id_of(it)).collect();
    expected.sort();
    assert_eq!(receipted, expected);
    let verified = deployment.clctl(&["receipts", "verify"]);
    assert_eq!(verified["verified"], true);
}
