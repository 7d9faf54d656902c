//! Decisions while snapshots are activated, and replays of many decisions.
//!
//! `CL_ROUNDS` says how many decisions there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cedar::in_cedar;
use crate::documents::{TENANT, operation, request, snapshot};
use crate::requests::replay;
use crate::support::{Running, World, asked_rounds, decision};

const ACTIVATIONS: usize = 50;
const WORKERS: u32 = 8;

/// Snapshots of both forms, one after the other.
fn version(number: usize) -> Value {
    let name = format!("v{number}");
    if number.is_multiple_of(2) {
        in_cedar(&name)
    } else {
        snapshot(&name)
    }
}

fn number_of(decision: &Value) -> usize {
    let version = decision["policy_snapshot"]["version"].as_str().unwrap();
    version[1..].parse().unwrap()
}

/// Asks with fresh ids until all decisions are made, and checks each against what was active when
/// it was asked for.
async fn ask_on(running: Arc<Running>, next: Arc<AtomicU32>, active: Arc<AtomicUsize>, last: u32) {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= last {
            return;
        }
        let at_least = active.load(Ordering::SeqCst);
        let asked = request(&format!("r{number}"));
        let status = running.ask(&asked, 0x1_0000 + number).await.unwrap();
        let decided = decision(&status);
        assert!(number_of(&decided) >= at_least, "an old snapshot decided");
        assert_eq!(decided["decision"], "allow");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_decision_is_older_than_an_activation_that_had_returned() {
    let world = World::new().await;
    let running = Arc::new(world.start().await);
    let mut digests = Vec::new();
    for number in 0..=ACTIVATIONS {
        let document = version(number);
        let put = running.put(TENANT, &document, u32::try_from(number).unwrap());
        digests.push(put.await.unwrap());
    }
    running
        .activate(TENANT, &digests[0], None, 1_000)
        .await
        .unwrap();
    let last = asked_rounds().unwrap_or(1_000);
    let next = Arc::new(AtomicU32::new(0));
    let active = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let work = ask_on(
                Arc::clone(&running),
                Arc::clone(&next),
                Arc::clone(&active),
                last,
            );
            tokio::spawn(work)
        })
        .collect();
    let steps = u32::try_from(ACTIVATIONS).unwrap() + 1;
    for number in 1..=ACTIVATIONS {
        // Spread over the decisions, whatever a decision costs.
        let due = last / steps * u32::try_from(number).unwrap();
        while next.load(Ordering::SeqCst) < due {
            let is_over = workers.iter().any(JoinHandle::is_finished);
            assert!(!is_over, "a worker ended before its time");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let expected = Some(digests[number - 1].as_str());
        let operation = 1_000 + u32::try_from(number).unwrap();
        running
            .activate(TENANT, &digests[number], expected, operation)
            .await
            .unwrap();
        active.store(number, Ordering::SeqCst);
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let asked = request("afterwards");
    let status = running.ask(&asked, 0xff_ffff).await.unwrap();
    assert_eq!(number_of(&decision(&status)), ACTIVATIONS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recorded_decisions_replay_bit_for_bit() {
    let world = World::new().await;
    let running = Arc::new(world.start().await);
    running.activate_new(&in_cedar("v0"), None).await;
    let last = asked_rounds().unwrap_or(200).min(1_000);
    let next = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (running, next) = (Arc::clone(&running), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= last {
                        return;
                    }
                    let mut asked = request(&format!("r{number}"));
                    if number.is_multiple_of(3) {
                        asked["selectors"] = json!([{"predicate": "timeline"}]);
                    }
                    asked["retention"]["max_seconds"] = json!(60 + number);
                    let status = running.ask(&asked, 0x1_0000 + number).await.unwrap();
                    let decided = decision(&status);
                    let id = decided["id"].as_str().unwrap();
                    let replayed = replay(&running, id, operation(0x10_0000 + number)).await;
                    assert!(replayed.unwrap().equal);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}
