//! Another key for the logs: what the one before it signed still counts, and it signs no more.

use cl_model::key::{Seed, SigningKey};
use cl_model::scalar::KeyId;
use cl_receipt_store::BuildError;
use cl_receipt_store::core::trees::LogKey;
use cl_testbed::TRUST_DOMAIN;

use crate::requests::{append, get};
use crate::support::{
    AUDITOR, ENGINE, World, log_key, signing_key, verified_entries, verify_proof, verify_proof_by,
};

fn new_key() -> SigningKey {
    let kid = KeyId::new("urn:cl:key:receipts:new").unwrap();
    SigningKey::from_seed(kid, &Seed::new(&[4; 32]).unwrap()).unwrap()
}

fn replaced() -> LogKey {
    LogKey::new(new_key(), TRUST_DOMAIN).replacing([signing_key().public_key()])
}

#[tokio::test]
async fn a_log_goes_on_under_another_key() {
    let mut world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    store.end().await;

    // Another key alone is not the log's.
    world.log_key = || LogKey::new(new_key(), TRUST_DOMAIN);
    assert!(matches!(
        world.refuses_to_start(),
        BuildError::Inconsistent(_)
    ));
    world.log_key = replaced;
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 1);
    let reference = first.entry.unwrap().receipt_ref;
    let read = auditor.get_receipt(get("acme", &reference)).await;
    let read = read.unwrap().into_inner();
    let receipt = read.receipt.unwrap().receipt;
    // Nothing was added yet, so the newest checkpoint is still that of the old key.
    assert_eq!(verify_proof("acme", &receipt, &read.proof).size(), 1);
    writer.append(append(2)).await.unwrap();
    let read = auditor.get_receipt(get("acme", &reference)).await;
    let read = read.unwrap().into_inner();
    let public_key = *new_key().public_key().as_bytes();
    let checkpoint = verify_proof_by(public_key, "acme", &receipt, &read.proof);
    assert_eq!(checkpoint.size(), 2);
    assert_eq!(verify_proof("acme", &receipt, &first.proof).size(), 1);
    assert_eq!(verified_entries(auditor).await, 2);
    store.end().await;

    // The old key does not know the new one.
    world.log_key = log_key;
    assert!(matches!(
        world.refuses_to_start(),
        BuildError::Inconsistent(_)
    ));
}
