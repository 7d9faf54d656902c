//! Values come back as they went in, or not at all.

use std::sync::Arc;

use cl_kv::{
    Batch, Changes, Damage, Engine, Error, Fault, FoundPart, Kind, MemoryEngine, Precondition,
    Range, Stored, Target, Tenant, Version,
};
use proptest::prelude::*;

use crate::{CLAIM, claim, conflict, entries, key_id, memory, open, plant, put, tenant, value};

#[test]
fn stores_and_opens_values() {
    let (_, store) = memory();
    assert_eq!(value(&store, &claim(1)), None);
    put(&store, &claim(1), "");
    put(&store, &claim(2), "second");
    assert_eq!(value(&store, &claim(1)).as_deref(), Some(""));
    let found = store.get_many(&[claim(3).into(), claim(2).into()]).unwrap();
    assert!(found[0].is_none());
    assert_eq!(*found[1].as_ref().unwrap().value, b"second");
    store.apply(&Changes::new().delete(claim(2))).unwrap();
    assert_eq!(value(&store, &claim(2)), None);
}

#[test]
fn seals_over_an_engine_chosen_at_run_time() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let store = open(engine);
    put(&store, &claim(1), "value");
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
}

#[test]
fn tenants_kinds_and_parts_are_apart() {
    let (_, store) = memory();
    let keys = [
        tenant("acme").key(CLAIM),
        tenant("acme").key(CLAIM).private("x"),
        tenant("acme").key(CLAIM).public("x"),
        tenant("acme").key(CLAIM).public("x").public("x"),
        tenant("acme").key(CLAIM).number(120),
        tenant("acme").key(Kind::new("claims")),
        tenant("acmeclaim").key(Kind::new("x")),
        Tenant::process().key(CLAIM),
    ];
    for (number, key) in keys.iter().enumerate() {
        put(&store, key, &number.to_string());
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(value(&store, key), Some(number.to_string()));
    }
}

#[test]
fn preconditions_hold_and_count_as_the_caller_does() {
    let (_, store) = memory();
    let create = Changes::new()
        .require(claim(1), Precondition::Absent)
        .put(claim(1), "first");
    let first = store.apply(&create).unwrap()[0];
    assert_eq!(conflict(store.apply(&create)), 0);
    let change = Changes::new()
        .require(claim(2), Precondition::Absent)
        .require(claim(1), Precondition::Unchanged(first))
        .put(claim(1), "second")
        .delete(claim(9))
        .put(claim(2), "other");
    let versions = store.apply(&change).unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(store.get(claim(2)).unwrap().unwrap().version, versions[1]);
    store.apply(&Changes::new().delete(claim(2))).unwrap();
    assert_eq!(conflict(store.apply(&change)), 1);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("second"));
}

#[test]
fn the_same_value_written_again_is_another_version() {
    let (engine, store) = memory();
    let first = put(&store, &claim(1), "same");
    let before = entries(&engine);
    assert_ne!(put(&store, &claim(1), "same"), first);
    assert_ne!(entries(&engine)[0].stored.value, before[0].stored.value);
}

#[test]
fn changes_sent_together_are_independent() {
    let (_, store) = memory();
    let create = |number| {
        Changes::new()
            .require(claim(number), Precondition::Absent)
            .put(claim(number), "value")
    };
    let results = store.apply_many(&[create(1), create(1), create(2)]);
    assert!(matches!(
        results.as_slice(),
        [Ok(_), Err(Error::Conflict { index: 0 }), Ok(versions)] if versions.len() == 1
    ));
}

#[test]
fn scans_give_public_parts_back() {
    let (_, store) = memory();
    for number in [3, 1, 2, 256] {
        put(&store, &claim(number), &format!("claim {number}"));
    }
    put(
        &store,
        &tenant("acme").key(Kind::new("event")).public("e"),
        "event",
    );
    put(&store, &tenant("beta").key(CLAIM).number(1), "other tenant");

    let claims = tenant("acme").key(CLAIM);
    let page = store.scan(&Range::of(claims.clone(), 3)).unwrap();
    let numbers = |found: &[cl_kv::Found]| -> Vec<FoundPart> {
        found
            .iter()
            .map(|found| found.key.parts()[0].clone())
            .collect()
    };
    assert_eq!(numbers(&page), [1, 2, 3].map(FoundPart::Number));
    assert_eq!(*page[0].opened.value, b"claim 1");
    let rest = Range::of(claims.clone(), 3).after(&page[2].key);
    assert_eq!(
        numbers(&store.scan(&rest).unwrap()),
        [FoundPart::Number(256)]
    );
    let from = Range::of(claims.clone(), 2).from(claims.number(3));
    assert_eq!(
        numbers(&store.scan(&from).unwrap()),
        [3, 256].map(FoundPart::Number)
    );

    let everything = store.scan(&Range::of_tenant(tenant("acme"), 100)).unwrap();
    assert_eq!(everything.len(), 5);
    assert_eq!(everything[4].key.kind(), "event");
    assert_eq!(everything[4].key.tenant(), &tenant("acme"));
}

#[test]
fn found_keys_stand_for_their_entries() {
    let (_, store) = memory();
    put(&store, &claim(1), "first");
    let found = store
        .scan(&Range::of_tenant(tenant("acme"), 1))
        .unwrap()
        .remove(0);
    let unchanged = Precondition::Unchanged(found.opened.version);
    store
        .apply(
            &Changes::new()
                .require(&found.key, unchanged)
                .put(&found.key, "second"),
        )
        .unwrap();
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("second"));
    assert_eq!(*store.get(&found.key).unwrap().unwrap().value, b"second");
    store
        .apply(&Changes::new().delete(Target::from(found.key)))
        .unwrap();
    assert_eq!(value(&store, &claim(1)), None);
}

fn damage<T: std::fmt::Debug>(result: Result<T, Error>) -> Damage {
    match result {
        Err(Error::Corrupt(damage)) => damage,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn refuses_a_value_with_any_byte_changed() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    let entry = entries(&engine).remove(0);
    for position in 0..entry.stored.value.len() {
        let mut stored = entry.stored.clone();
        stored.value[position] ^= 1;
        plant(&engine, &entry.key, stored);
        let expected = |damage| match position {
            0 => damage == Damage::UnknownFormat(0),
            1..5 => matches!(damage, Damage::UnknownKey(_)),
            _ => damage == Damage::Forged,
        };
        let damage = damage(store.get(claim(1)));
        assert!(expected(damage), "{damage:?} at {position}");
    }
    plant(&engine, &entry.key, entry.stored);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
}

#[test]
fn refuses_a_value_of_another_length() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    let entry = entries(&engine).remove(0);
    for length in 0..entry.stored.value.len() {
        let value = entry.stored.value[..length].to_vec();
        plant(
            &engine,
            &entry.key,
            Stored {
                value,
                ..entry.stored.clone()
            },
        );
        let expected = if length < 33 {
            Damage::Truncated
        } else {
            Damage::Forged
        };
        assert_eq!(damage(store.get(claim(1))), expected, "{length} bytes");
    }
    let value = [&entry.stored.value[..], &[0]].concat();
    plant(
        &engine,
        &entry.key,
        Stored {
            value,
            ..entry.stored
        },
    );
    assert_eq!(damage(store.get(claim(1))), Damage::Forged);
}

#[test]
fn refuses_a_value_in_another_place() {
    let (engine, store) = memory();
    let here = tenant("acme").key(CLAIM).number(1);
    put(&store, &here, "value");
    let value = entries(&engine).remove(0).stored;
    let elsewhere = [
        tenant("acme").key(CLAIM).number(2),
        tenant("acme").key(CLAIM).number(1).number(1),
        tenant("acme").key(CLAIM).public("1"),
        tenant("acme").key(Kind::new("event")).number(1),
        tenant("beta").key(CLAIM).number(1),
        Tenant::process().key(CLAIM).number(1),
    ];
    for key in elsewhere {
        put(&store, &key, "place");
        let place = entries(&engine)
            .into_iter()
            .find(|entry| entry.stored.version == store.get(&key).unwrap().unwrap().version);
        plant(&engine, &place.unwrap().key, value.clone());
        assert_eq!(damage(store.get(&key)), Damage::Forged, "{key:?}");
        store.apply(&Changes::new().delete(&key)).unwrap();
    }
}

#[test]
fn refuses_a_value_under_another_version() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    let entry = entries(&engine).remove(0);
    plant(
        &engine,
        &entry.key,
        Stored {
            version: Version::new([9; 16]),
            ..entry.stored
        },
    );
    assert_eq!(damage(store.get(claim(1))), Damage::Forged);
}

#[test]
fn refuses_a_value_of_another_store() {
    let (engine, store) = memory();
    let (other_engine, other) = memory();
    let key = tenant("acme").key(CLAIM).number(1);
    put(&store, &key, "value");
    put(&other, &key, "other");
    let entry = entries(&other_engine).remove(0);
    assert_eq!(key_id(&entry.stored), 1);
    plant(&engine, &entry.key, entry.stored);
    assert_eq!(damage(store.get(&key)), Damage::Forged);
}

#[test]
fn refuses_a_scan_with_a_misplaced_value() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    let entry = entries(&engine).remove(0);
    let range = Range::of_tenant(tenant("acme"), 10);
    let misplaced = [&entry.key[..], &[9]].concat();
    plant(&engine, &misplaced, entry.stored);
    assert_eq!(damage(store.scan(&range)), Damage::Forged);
    engine.apply(Batch::new().delete(misplaced)).unwrap();
    assert_eq!(store.scan(&range).unwrap().len(), 1);
}

#[test]
fn failures_of_the_engine_reach_the_caller() {
    let (engine, store) = memory();
    let changes = Changes::new()
        .require(claim(1), Precondition::Absent)
        .put(claim(1), "value");
    engine.plan(Fault::Full);
    assert!(matches!(store.apply(&changes), Err(Error::Full)));
    engine.plan(Fault::BeforePersist);
    assert!(matches!(store.apply(&changes), Err(Error::Unavailable(_))));
    assert_eq!(value(&store, &claim(1)), None);
    engine.plan(Fault::AfterPersist);
    assert!(matches!(store.apply(&changes), Err(Error::Unavailable(_))));
    // The repeat finds out that it was stored.
    assert_eq!(conflict(store.apply(&changes)), 0);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
}

proptest! {
    #[test]
    fn any_value_comes_back(
        bytes in proptest::collection::vec(any::<u8>(), 0..5000),
        secret: Vec<u8>,
    ) {
        let (engine, store) = memory();
        let key = tenant("acme").key(CLAIM).private(&secret);
        store.apply(&Changes::new().put(&key, bytes.as_slice())).unwrap();
        drop(store);
        let store = open(engine);
        prop_assert_eq!(&*store.get(&key).unwrap().unwrap().value, &bytes);
    }

    #[test]
    fn any_planted_bytes_are_refused(bytes: Vec<u8>, version: [u8; 16]) {
        let (engine, store) = memory();
        put(&store, &claim(1), "value");
        let key = entries(&engine).remove(0).key;
        plant(&engine, &key, Stored { version: Version::new(version), value: bytes });
        prop_assert!(matches!(store.get(claim(1)), Err(Error::Corrupt(_))));
    }
}
