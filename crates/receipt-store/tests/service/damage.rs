//! Stored state that is not what was written.

use cl_kv::{Changes, Key, Kind, Tenant};
use cl_model::leaf;
use cl_receipt_store::BuildError;
use cl_receipt_store::core::records::{self, EntryRecord};
use cl_receipt_store::core::routing::Tenant as LogTenant;
use cl_receipt_store::pin::Pin;
use cl_receipt_store::store::Slot;
use cl_testbed::{Serving, TRUST_DOMAIN, refusal, refused};
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use prost::Message;
use tonic::Code;

use crate::requests::{append, get};
use crate::support::{AUDITOR, ENGINE, GATEWAY, World, kv_store, sealed, verify};

fn of_tenant(kind: &'static str) -> Key {
    Tenant::parse("acme").unwrap().key(Kind::new(kind))
}

fn entry(sequence: u64) -> Key {
    of_tenant("entry").number(sequence)
}

fn tile() -> Key {
    of_tenant("tile").number(0).number(0)
}

fn head() -> Key {
    Tenant::process().key(Kind::new("head"))
}

/// A log of four entries.
async fn filled() -> (World, Serving) {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    for number in 0..4 {
        writer.append(append(number)).await.unwrap();
    }
    (world, store)
}

/// Someone who has the key-encryption key puts one value in place of another.
fn change(world: &World, at: &Key, from: Option<&Key>) {
    let store = sealed(world.engine.clone());
    let changes = match from {
        Some(from) => Changes::new().put(at, store.get(from).unwrap().unwrap().value.to_vec()),
        None => Changes::new().delete(at),
    };
    store.apply(&changes).unwrap();
}

#[tokio::test]
async fn the_first_fault_is_reported() {
    for (sequence, from, code) in [
        (2, None, "RECEIPT_LOG_TRUNCATED"),
        (3, Some(1), "RECEIPT_LOG_INVALID_ENTRY"),
        (5, Some(4), "RECEIPT_LOG_UNANCHORED_SUFFIX"),
    ] {
        let (world, store) = filled().await;
        change(&world, &entry(sequence), from.map(entry).as_ref());
        let auditor = &mut world.client(store.addr, AUDITOR);
        let answer = verify(auditor).await;
        assert_eq!(answer.checked_entries, sequence - 1);
        let Some(Verdict::Fault(fault)) = answer.result else {
            panic!("{code} was not noticed");
        };
        assert_eq!((fault.sequence, fault.code.as_str()), (sequence, code));
    }
}

#[tokio::test]
async fn a_value_that_does_not_decode_is_a_fault_and_a_data_loss() {
    let (world, store) = filled().await;
    let reader = &mut world.client(store.addr, GATEWAY);
    let writer = &mut world.client(store.addr, ENGINE);
    let reference = writer.append(append(1)).await.unwrap().into_inner();
    let reference = reference.entry.unwrap().receipt_ref;
    let broken = Changes::new().put(entry(2), vec![0xff; 40]);
    sealed(world.engine.clone()).apply(&broken).unwrap();
    let answer = reader.get_receipt(get("acme", &reference)).await;
    assert_eq!(refusal(answer), refused(Code::DataLoss, "STORE_CORRUPT"));
    let answer = verify(&mut world.client(store.addr, AUDITOR)).await;
    let Some(Verdict::Fault(fault)) = answer.result else {
        panic!("not noticed");
    };
    assert_eq!(
        (fault.sequence, fault.code.as_str()),
        (2, "RECEIPT_LOG_INVALID_ENTRY")
    );
}

#[tokio::test]
async fn a_log_whose_end_does_not_hold_together_is_not_served() {
    let cut: [(&str, Key, Option<Key>); 7] = [
        ("the tile is gone", tile(), None),
        ("the tile is something else", tile(), Some(head())),
        ("the checkpoint is gone", of_tenant("log"), None),
        ("the last entry is gone", entry(4), None),
        ("the last entry is another", entry(4), Some(entry(3))),
        ("an entry follows", entry(5), Some(entry(4))),
        ("the head is gone", head(), None),
    ];
    for (what, at, from) in cut {
        let (world, store) = filled().await;
        store.end().await;
        change(&world, &at, from.as_ref());
        let refused = world.refuses_to_start();
        assert!(
            matches!(refused, BuildError::Inconsistent(_) | BuildError::Store(_)),
            "{what}: {refused}"
        );
    }
}

/// The pin of another log of the same name, and of so many entries.
async fn pin_of_another(entries: u64) -> String {
    let world = World::new();
    let store = world.start().await;
    let mut writer = world.client(store.addr, ENGINE);
    for number in 0..entries {
        writer.append(append(number)).await.unwrap();
    }
    store.end().await;
    let pin = world.pin.read(&origin()).unwrap();
    pin.unwrap()
}

fn origin() -> String {
    leaf::origin(TRUST_DOMAIN, "acme")
}

#[tokio::test]
async fn damage_of_records_and_pins_is_a_finding_too() {
    for (entries, text, sequence, code) in [
        (6, None, 5, "RECEIPT_LOG_ROLLBACK"),
        (4, None, 4, "RECEIPT_LOG_REWRITE"),
        (0, Some("nonsense"), 4, "RECEIPT_LOG_REWRITE"),
    ] {
        let (world, store) = filled().await;
        let pin = match text {
            Some(text) => text.to_owned(),
            None => pin_of_another(entries).await,
        };
        let before = world.pin.read(&origin()).unwrap();
        let advanced = world.pin.advance(&origin(), before.as_deref(), &pin);
        advanced.unwrap();
        let answer = verify(&mut world.client(store.addr, AUDITOR)).await;
        assert_eq!(answer.checked_entries, 4);
        let Some(Verdict::Fault(fault)) = answer.result else {
            panic!("{code} was not noticed");
        };
        assert_eq!((fault.sequence, fault.code.as_str()), (sequence, code));
    }
    let broken = |key: Key| Changes::new().put(key, vec![0xff; 40]);
    for (key, sequence, code) in [
        (of_tenant("log"), 1, "RECEIPT_LOG_REWRITE"),
        (tile(), 1, "RECEIPT_LOG_INVALID_ENTRY"),
        (entry(1), 1, "RECEIPT_LOG_INVALID_ENTRY"),
        (entry(5), 5, "RECEIPT_LOG_UNANCHORED_SUFFIX"),
    ] {
        let (world, store) = filled().await;
        sealed(world.engine.clone()).apply(&broken(key)).unwrap();
        let answer = verify(&mut world.client(store.addr, AUDITOR)).await;
        let Some(Verdict::Fault(fault)) = answer.result else {
            panic!("{code} was not noticed");
        };
        assert_eq!((fault.sequence, fault.code.as_str()), (sequence, code));
    }
}

#[tokio::test]
async fn a_tombstone_with_anything_beside_it_is_a_fault() {
    let (world, store) = filled().await;
    let kept = kv_store(&world);
    let slot = Slot::Entry(LogTenant::parse("acme").unwrap(), 2);
    let stored = kept.get(&slot).unwrap().unwrap();
    let record: EntryRecord = records::decode(&stored).unwrap();
    let auditor = &mut world.client(store.addr, AUDITOR);
    let erased = record.clone().erased("short", 1);
    let bare = erased.clone();
    let salted = EntryRecord {
        salt: record.salt.clone(),
        ..erased.clone()
    };
    let cut = EntryRecord {
        leaf: erased.leaf[1..].to_vec(),
        ..erased.clone()
    };
    let other = EntryRecord {
        leaf: [&[1][..], &[7; 32]].concat(),
        ..erased
    };
    for (record, is_good) in [(bare, true), (salted, false), (cut, false), (other, false)] {
        let changes = Changes::new().put(entry(2), record.encode_to_vec());
        sealed(world.engine.clone()).apply(&changes).unwrap();
        let answer = verify(auditor).await;
        match answer.result {
            Some(Verdict::Checkpoint(_)) => {
                assert!(is_good);
                assert_eq!((answer.checked_entries, answer.erased_entries), (4, 1));
            }
            Some(Verdict::Fault(fault)) => {
                assert!(!is_good);
                let found = (fault.sequence, fault.code.as_str());
                assert_eq!(found, (2, "RECEIPT_LOG_INVALID_ENTRY"));
                assert_eq!((answer.checked_entries, answer.erased_entries), (1, 0));
            }
            None => panic!("no answer"),
        }
    }
}
