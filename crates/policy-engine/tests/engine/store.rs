//! The store's contract: every storing call is one batch under what its caller has read.

use std::sync::Arc;

use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::digest::Digest;
use cl_model::object::DecisionState;
use cl_model::policy::{Assurance, Preflight};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::RequestId;
use cl_policy_engine::core::facts::{Facts, Method};
use cl_policy_engine::core::operation::{OperationId, TenantName};
use cl_policy_engine::core::signals::Signals;
use cl_policy_engine::core::state::{Standing, State};
use cl_policy_engine::store::{
    Activation, Active, Heard, KvStore, NewDecision, OutboxEntry, PutSnapshot, RecordedDecision,
    RequestKey, Store, StoreError, Use,
};
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

use crate::documents::{AGENT, DEVICE, NOW_MS, TENANT, operation};

pub(crate) fn store() -> KvStore {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let kek = KeyEncryptionKey::new(Zeroizing::new([9; 32]));
    KvStore::new(Sealed::open(engine, kek, Arc::new(SystemRandom::new())).unwrap())
}

pub(crate) fn tenant() -> TenantName {
    TenantName::parse(TENANT).unwrap()
}

pub(crate) fn now() -> UnixTime {
    UnixTime::from_milliseconds(NOW_MS)
}

pub(crate) fn entry(number: u32) -> OutboxEntry {
    OutboxEntry {
        tenant: tenant(),
        operation_id: OperationId::parse(&operation(number)).unwrap(),
        subject_tag: None,
        members: b"{}".to_vec(),
    }
}

pub(crate) fn used(content: &[u8]) -> Use {
    Use {
        content: Digest::of_bytes(content),
        kept_until: now().plus_seconds(30),
    }
}

fn put(name: &str, number: u32) -> PutSnapshot {
    PutSnapshot {
        bytes: name.as_bytes().to_vec(),
        digest: Digest::of_bytes(name.as_bytes()),
        name: name.to_owned(),
        expires_at: None,
        signature: None,
        now: now(),
        operation: used(b"put"),
        entry: entry(number),
    }
}

fn activate(store: &KvStore, name: &str, number: u32) -> Active {
    let digest = Digest::of_bytes(name.as_bytes());
    let activation = Activation {
        snapshot: store.snapshot(&tenant(), digest).unwrap().unwrap(),
        current: store.active(&tenant()).unwrap(),
        now: now(),
        operation: used(b"activate"),
        entry: entry(number),
    };
    store.activate(&activation).unwrap();
    store.active(&tenant()).unwrap().unwrap()
}

fn key() -> RequestKey {
    RequestKey {
        tenant: tenant(),
        principal: Reference::new(AGENT).unwrap(),
        id: RequestId::parse("urn:cl:request:r1").unwrap(),
    }
}

fn decision(active: Active, id: &str, number: u32) -> NewDecision {
    NewDecision {
        key: key(),
        standing: Standing {
            state: State::PendingApproval,
            request_digest: Digest::of_bytes(id.as_bytes()),
            decision: DecisionState::NeedsApproval,
            expires_at: now(),
        },
        decision_id: id.to_owned(),
        recorded: RecordedDecision {
            request: b"request".to_vec(),
            facts: Facts {
                principal: Reference::new(AGENT).unwrap(),
                client_instance: Reference::new(DEVICE).unwrap(),
                method: Method::Oauth2,
                assurance: Assurance::Low,
                bound_key: None,
            },
            snapshot: active.digest,
            preflight: Preflight::Available,
            signals: Signals::default(),
            now: now(),
            decision: b"decision".to_vec(),
            grant: None,
            approval: None,
        },
        subject: Reference::new("urn:subject:one").unwrap(),
        pending: None,
        heard: Heard::default(),
        active: active.version,
        replaces: None,
        kept_until: now().plus_seconds(60),
        issue: None,
        operation: used(b"decide"),
        entry: entry(number),
    }
}

pub(crate) fn conflicts(result: Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict))
}

#[test]
fn a_decision_under_a_snapshot_that_is_no_longer_active_is_not_stored() {
    let store = store();
    store.put_snapshot(&put("v1", 1)).unwrap();
    store.put_snapshot(&put("v2", 2)).unwrap();
    let former = activate(&store, "v1", 3);
    let current = activate(&store, "v2", 4);
    assert!(conflicts(store.record(&decision(former, "d1", 5))));
    assert!(store.request(&key()).unwrap().is_none());
    assert!(store.decision(&tenant(), "d1").unwrap().is_none());
    let operation = entry(5).operation_id;
    assert!(store.operation(&tenant(), &operation).unwrap().is_none());
    assert!(store.outstanding(&tenant(), &operation).unwrap().is_none());

    store.record(&decision(current, "d1", 5)).unwrap();
    assert!(store.request(&key()).unwrap().is_some());
    let recorded = store.decision(&tenant(), "d1").unwrap().unwrap();
    assert_eq!(recorded.snapshot, current.digest);
    assert!(recorded.facts == decision(current, "d1", 5).recorded.facts);
    assert!(store.outstanding(&tenant(), &operation).unwrap().is_some());
}

#[test]
fn requests_decisions_and_operations_are_stored_once() {
    let store = store();
    store.put_snapshot(&put("v1", 1)).unwrap();
    let active = activate(&store, "v1", 2);
    store.record(&decision(active, "d1", 3)).unwrap();
    let first = store.request(&key()).unwrap().unwrap();
    // Another decision of the same request, unless it says that it replaces what was read.
    let mut second = decision(active, "d2", 4);
    assert!(conflicts(store.record(&second)));
    second.replaces = Some(first.clone());
    store.record(&second).unwrap();
    assert!(conflicts(store.record(&second)));
    // The same decision, and the same operation.
    let read = store.request(&key()).unwrap().unwrap();
    let mut third = decision(active, "d2", 5);
    third.replaces = Some(read.clone());
    assert!(conflicts(store.record(&third)));
    let mut third = decision(active, "d3", 4);
    third.replaces = Some(read);
    assert!(conflicts(store.record(&third)));
    // What was replaced cannot run out any more.
    assert!(conflicts(store.expire(&key(), &first)));
}

#[test]
fn a_snapshot_and_its_version_are_stored_once() {
    let store = store();
    store.put_snapshot(&put("v1", 1)).unwrap();
    assert!(conflicts(store.put_snapshot(&put("v1", 2))));
    let mut renamed = put("v2", 3);
    renamed.name = "v1".to_owned();
    assert!(conflicts(store.put_snapshot(&renamed)));
    assert_eq!(store.snapshots(&tenant(), None, 10).unwrap().total, 1);
}

#[test]
fn the_outbox_is_read_in_pages_until_it_is_settled() {
    let store = store();
    for number in 0..5 {
        store.begin(used(b"replay"), &entry(number)).unwrap();
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.outbox(after.take(), 2).unwrap();
        found.extend(page.entries);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 5);
    for entry in &found {
        store.settle(entry).unwrap();
        store.settle(entry).unwrap();
    }
    assert!(store.outbox(None, 2).unwrap().entries.is_empty());
}
