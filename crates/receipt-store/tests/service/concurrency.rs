//! Many callers at once.

use std::collections::BTreeSet;

use cl_testbed::{refusal, refused, within};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::Code;

use crate::requests::{append, append_of, consumer_append, consumption, members, with};
use crate::support::{AUDITOR, ENGINE, ISSUER, World, verified_entries};

const CALLERS: u64 = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_consumptions_at_once_one_succeeds() {
    let world = World::new();
    let store = world.start().await;
    let issuer = world.client(store.addr, ISSUER);
    let mut calls = JoinSet::new();
    for number in 0..CALLERS {
        let mut issuer = issuer.clone();
        calls.spawn(async move { issuer.append(consumer_append(consumption(number))).await });
    }
    let answers = within("the calls", calls.join_all()).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for answer in lost {
        let expected = refused(Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT");
        assert_eq!(refusal(answer), expected);
    }
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_write_one_chain() {
    let world = World::new();
    let store = world.start().await;
    let writer = world.client(store.addr, ENGINE);
    let mut calls = JoinSet::new();
    for caller in 0..CALLERS {
        let mut writer = writer.clone();
        calls.spawn(async move {
            let mut sequences = Vec::new();
            for call in 0..4 {
                let answer = writer.append(append(caller * 4 + call)).await.unwrap();
                sequences.push(answer.into_inner().entry.unwrap().sequence);
            }
            assert!(sequences.is_sorted());
            sequences
        });
    }
    let answers = within("the calls", calls.join_all()).await;
    let sequences: BTreeSet<_> = answers.into_iter().flatten().collect();
    assert!(sequences.into_iter().eq(1..=CALLERS * 4));
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, CALLERS * 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_operation_from_many_callers_is_one_entry() {
    let world = World::new();
    let store = world.start().await;
    let writer = world.client(store.addr, ENGINE);
    let mut calls = JoinSet::new();
    for caller in 0..CALLERS {
        let mut writer = writer.clone();
        calls.spawn(async move {
            // Half of them send other content under the same id.
            let summary = json!({"user_summary": format!("Content {}.", caller % 2)});
            let request = append_of(1, &with(members(1), summary));
            let answer = writer.append(request).await;
            (
                caller % 2,
                answer.map(|it| it.into_inner().entry.unwrap().sequence),
            )
        });
    }
    let answers = within("the calls", calls.join_all()).await;
    let mut winners = BTreeSet::new();
    for (content, answer) in answers {
        match answer {
            Ok(sequence) => {
                winners.insert((content, sequence));
            }
            Err(status) => {
                let expected = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
                assert_eq!(refusal(Err::<(), _>(status)), expected);
            }
        }
    }
    assert_eq!(winners.len(), 1);
}
