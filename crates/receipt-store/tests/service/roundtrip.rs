//! What is written can be read, once, as it was written.

use cl_host::life::Ended;
use cl_testbed::spiffe_id;
use cl_tlog::SignedCheckpoint;
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{Attestation, ListReceiptsRequest, PreflightRequest};
use serde_json::Value;

use crate::requests::{append, consumer_append, consumption, get, routing, time};
use crate::support::{
    AUDITOR, ENGINE, GATEWAY, ISSUER, START_MS, World, verified_entries, verify, verify_proof,
};

#[tokio::test]
async fn appended_receipts_are_read_listed_and_verified() {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    let mut reader = world.client(store.addr, GATEWAY);
    let mut auditor = world.client(store.addr, AUDITOR);

    assert_eq!(verified_entries(&mut auditor).await, 0);
    let preflight = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    assert!(writer.preflight(preflight).await.unwrap().into_inner().ok);
    let mut entries = Vec::new();
    for number in 1..=3 {
        world.clock.advance(1000);
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        entries.push(answer.entry.unwrap());
    }
    let sequences: Vec<_> = entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);

    let asked = get("acme", &entries[1].receipt_ref);
    let found = reader.get_receipt(asked).await.unwrap().into_inner();
    let proof = found.proof;
    let found = found.receipt.unwrap();
    let checkpoint = verify_proof("acme", &found.receipt, &proof);
    assert_eq!(checkpoint.size(), 3);
    assert_eq!(found.entry.as_ref(), Some(&entries[1]));
    assert_eq!(found.routing, Some(routing(2)));
    assert_eq!(found.writer, spiffe_id(ENGINE));
    assert_eq!(found.attestation(), Attestation::Authority);
    assert_eq!(found.recorded_at, Some(time(START_MS + 2000)));

    let request = ListReceiptsRequest {
        tenant: "acme".to_owned(),
        ..Default::default()
    };
    let listed = reader.list_receipts(request).await.unwrap().into_inner();
    assert_eq!(
        (listed.total_size, listed.next_page_token.as_str()),
        (3, "")
    );
    let listed = listed.receipts.into_iter().map(|it| it.entry.unwrap());
    assert!(listed.eq(entries));
    let answer = verify(&mut auditor).await;
    let Some(Verdict::Checkpoint(verified)) = answer.result else {
        panic!("{answer:?}");
    };
    let verified = SignedCheckpoint::parse(verified.as_bytes()).unwrap();
    assert_eq!(verified.checkpoint(), &checkpoint);
}

#[tokio::test]
async fn a_repeat_is_answered_with_the_same_entry() {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    writer.append(append(2)).await.unwrap();
    let repeat = writer.append(append(1)).await.unwrap().into_inner();
    assert_eq!(first.entry, repeat.entry);
    let mut auditor = world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(&mut auditor).await, 2);

    // Also after a restart, which goes on with the same chain.
    assert_eq!(store.end().await, Ended::Drained);
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    let repeat = writer.append(append(1)).await.unwrap().into_inner();
    assert_eq!(first.entry, repeat.entry);
    let third = writer.append(append(3)).await.unwrap().into_inner();
    assert_eq!(third.entry.unwrap().sequence, 3);
    let mut auditor = world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(&mut auditor).await, 3);
}

#[tokio::test]
async fn a_consumers_receipt_keeps_its_bytes_and_is_marked() {
    let world = World::new();
    let store = world.start().await;
    let mut issuer = world.client(store.addr, ISSUER);
    let mut reader = world.client(store.addr, GATEWAY);
    let request = consumer_append(consumption(1));
    let entry = issuer.append(request.clone()).await.unwrap().into_inner();
    let entry = entry.entry.unwrap();
    let found = reader.get_receipt(get("acme", &entry.receipt_ref)).await;
    let found = found.unwrap().into_inner().receipt.unwrap();
    assert_eq!(found.attestation(), Attestation::Consumer);
    assert_eq!(found.writer, spiffe_id(ISSUER));
    let receipt: Value = serde_json::from_slice(&found.receipt).unwrap();
    assert_eq!(receipt["id"], entry.receipt_ref.as_str());
    assert_eq!(receipt["actor"], "urn:agent:recipient");

    // The recipient's retry is the same receipt, so the same operation.
    let repeat = issuer.append(request).await.unwrap().into_inner();
    assert_eq!(repeat.entry, Some(entry));
}
