//! What is written can be read, once, as it was written.

use cl_host::life::Ended;
use cl_model::digest::Digest;
use cl_model::log::LogState;
use cl_receipt_store::core::chain;
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{Attestation, ListReceiptsRequest, PreflightRequest};
use serde_json::Value;

use crate::pki::id;
use crate::requests::{append, consumer_append, consumption, get, routing, time};
use crate::support::{AUDITOR, ENGINE, GATEWAY, ISSUER, START_MS, World, verified_entries, verify};

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
    let found = found.receipt.unwrap();
    assert_eq!(found.entry.as_ref(), Some(&entries[1]));
    assert_eq!(found.routing, Some(routing(2)));
    assert_eq!(found.writer, id(ENGINE));
    assert_eq!(found.attestation(), Attestation::Authority);
    assert_eq!(found.recorded_at, Some(time(START_MS + 2000)));

    // What readers see is a portable log.
    let request = ListReceiptsRequest {
        tenant: "acme".to_owned(),
        ..Default::default()
    };
    let listed = reader.list_receipts(request).await.unwrap().into_inner();
    assert_eq!(
        (listed.total_size, listed.next_page_token.as_str()),
        (3, "")
    );
    let (mut exported, mut previous) = (String::new(), Digest::ZERO);
    for receipt in listed.receipts {
        let entry = receipt.entry.unwrap();
        let text = String::from_utf8(receipt.receipt).unwrap();
        exported += &chain::line(entry.sequence, previous, &text);
        previous = Digest::parse(&entry.entry_digest).unwrap();
    }
    let log = LogState::verify(exported.as_bytes()).unwrap();
    assert_eq!(log.entries(), 3);
    let answer = verify(&mut auditor).await;
    assert_eq!(
        answer.result,
        Some(Verdict::HeadDigest(log.tail().to_string()))
    );
}

#[tokio::test]
async fn a_repeat_is_answered_with_the_same_entry() {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    writer.append(append(2)).await.unwrap();
    let repeat = writer.append(append(1)).await.unwrap().into_inner();
    assert_eq!(first, repeat);
    let mut auditor = world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(&mut auditor).await, 2);

    // Also after a restart, which goes on with the same chain.
    assert_eq!(store.end().await, Ended::Drained);
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    let repeat = writer.append(append(1)).await.unwrap().into_inner();
    assert_eq!(first, repeat);
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
    assert_eq!(found.writer, id(ISSUER));
    let receipt: Value = serde_json::from_slice(&found.receipt).unwrap();
    assert_eq!(receipt["id"], entry.receipt_ref.as_str());
    assert_eq!(receipt["actor"], "urn:agent:recipient");

    // The recipient's retry is the same receipt, so the same operation.
    let repeat = issuer.append(request).await.unwrap().into_inner();
    assert_eq!(repeat.entry, Some(entry));
}
