//! Nothing acknowledged is lost when the process is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_wire::receipt::v1::LogEntry;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::process::Home;
use crate::requests::{append, begin_later, complete, get};
use crate::support::{AUDITOR, ENGINE, open_intents, verified_entries};

const ROUNDS: usize = 4;
const CALLERS: usize = 8;
/// Acknowledgements in a round before the kill, which hits the calls of the others.
const ACKNOWLEDGED: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills() {
    let home = Home::new();
    let numbers = Arc::new(AtomicU64::new(1));
    let mut acknowledged: Vec<(u64, LogEntry)> = Vec::new();
    for round in 0..ROUNDS {
        let process = home.start().await;
        let (heard, mut hears) = mpsc::unbounded_channel();
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (mut writer, heard) = (home.client(&process, ENGINE), heard.clone());
            let numbers = Arc::clone(&numbers);
            callers.spawn(async move {
                loop {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    if writer.begin(begin_later(number)).await.is_err() {
                        return;
                    }
                    let Ok(answer) = writer.complete(complete(number)).await else {
                        return;
                    };
                    let entry = answer.into_inner().entry.unwrap();
                    heard.send((number, entry)).unwrap();
                }
            });
        }
        drop(heard);
        for _ in 0..ACKNOWLEDGED {
            acknowledged.push(hears.recv().await.expect("calls succeed before the kill"));
        }
        process.kill().await;
        callers.join_all().await;
        while let Some(heard) = hears.recv().await {
            acknowledged.push(heard);
        }
        check(&home, &acknowledged, round).await;
    }
}

/// The log verifies, has every acknowledged entry in its place, and goes on.
async fn check(home: &Home, acknowledged: &[(u64, LogEntry)], round: usize) {
    let process = home.start().await;
    let mut auditor = home.client(&process, AUDITOR);
    let entries = verified_entries(&mut auditor).await;
    assert!(entries >= acknowledged.len() as u64, "round {round}");
    for (number, entry) in acknowledged {
        let found = auditor.get_receipt(get("acme", &entry.receipt_ref)).await;
        let found = found.unwrap().into_inner().receipt.unwrap();
        assert_eq!(found.entry.as_ref(), Some(entry), "operation {number}");
    }
    let mut writer = home.client(&process, ENGINE);
    let open = open_intents(&mut writer).await;
    assert!(open.total_size <= (CALLERS * ROUNDS) as u64);
    let number = 1_000_000 + round as u64;
    let next = writer.append(append(number)).await.unwrap().into_inner();
    assert_eq!(next.entry.unwrap().sequence, entries + 1);
    assert_eq!(process.end().await.0, Some(0));
}
