//! The store's contract, on both engines.

use std::sync::Arc;

use cl_gateway::auth::TenantName;
use cl_gateway::idempotency::{Fingerprint, IdempotencyKey, RETENTION_MS, Record};
use cl_gateway::store::{KvStore, Place, Store, StoreError};
use cl_host::clock::ManualClock;
use cl_host::ids::{Ids, SeededIds};
use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, RocksEngine, Sealed};
use cl_model::scalar::Reference;
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

fn place(principal: &str, key: &str) -> Place {
    let tenant = TenantName::parse("acme").unwrap();
    let principal = Reference::new(principal).unwrap();
    Place::of(
        &tenant,
        &principal,
        &IdempotencyKey::parse(key.as_bytes()).unwrap(),
    )
}

fn on_each_engine(test: fn(&KvStore, &dyn Ids)) {
    let folder = tempfile::tempdir().unwrap();
    let engines: [Arc<dyn Engine>; 2] = [
        Arc::new(MemoryEngine::new()),
        Arc::new(RocksEngine::open(folder.path()).unwrap()),
    ];
    for engine in engines {
        let kek = KeyEncryptionKey::new(Zeroizing::new([1; 32]));
        let sealed = Sealed::open(engine, kek, Arc::new(SystemRandom::new())).unwrap();
        let ids = SeededIds::new(1, Arc::new(ManualClock::new(0)));
        test(&KvStore::new(sealed), &ids);
    }
}

fn record(ids: &dyn Ids, now_unix_ms: i64) -> Record {
    let fingerprint = Fingerprint::of("submit_request", b"{}");
    Record::new(fingerprint, ids.uuid().unwrap().into(), now_unix_ms)
}

#[test]
fn every_change_needs_the_writing_it_saw() {
    on_each_engine(|store, ids| {
        let place = place("urn:agent:a", "key");
        let first = record(ids, 0);
        assert!(store.find(&place).unwrap().is_none());
        let version = store.put(&place, &first, None).unwrap();
        assert_eq!(store.find(&place).unwrap(), Some((first, version)));
        let again = store.put(&place, &record(ids, 0), None);
        assert!(matches!(again, Err(StoreError::Contended)));
        let next = store.put(&place, &first, Some(version)).unwrap();
        let stale = store.put(&place, &first, Some(version));
        assert!(matches!(stale, Err(StoreError::Contended)));
        let stale = store.forget(&place, &first, version);
        assert!(matches!(stale, Err(StoreError::Contended)));
        store.forget(&place, &first, next).unwrap();
        assert!(store.find(&place).unwrap().is_none());
    });
}

#[test]
fn places_differ_by_principal_and_key() {
    on_each_engine(|store, ids| {
        store
            .put(&place("urn:agent:a", "key"), &record(ids, 0), None)
            .unwrap();
        assert!(store.find(&place("urn:agent:b", "key")).unwrap().is_none());
        assert!(
            store
                .find(&place("urn:agent:a", "other"))
                .unwrap()
                .is_none()
        );
    });
}

#[test]
fn a_sweep_forgets_what_ended_and_only_that() {
    on_each_engine(|store, ids| {
        let [ended, reused, fresh] =
            ["ended", "reused", "fresh"].map(|key| place("urn:agent:a", key));
        store.put(&ended, &record(ids, 0), None).unwrap();
        let version = store.put(&reused, &record(ids, 1), None).unwrap();
        store
            .put(&reused, &record(ids, RETENTION_MS), Some(version))
            .unwrap();
        store.put(&fresh, &record(ids, 3), None).unwrap();
        assert_eq!(store.sweep(RETENTION_MS + 2, 1).unwrap(), 1);
        assert_eq!(store.sweep(RETENTION_MS + 2, 10).unwrap(), 1);
        assert_eq!(store.sweep(RETENTION_MS + 2, 10).unwrap(), 0);
        assert!(store.find(&ended).unwrap().is_none());
        assert!(store.find(&reused).unwrap().is_some());
        assert!(store.find(&fresh).unwrap().is_some());
    });
}
