//! What one caller may rely on.

use cl_kv::{
    Batch, Durability, Engine, Error, Limit, MAX_KEY_BYTES, MAX_VALUE_BYTES, Precondition, Scan,
};

use crate::{Subject, conflict, put, stored, unchanged, version};

fn keys(engine: &impl Engine, scan: &Scan) -> Vec<String> {
    let entries = engine.scan(scan).unwrap();
    entries
        .into_iter()
        .map(|entry| String::from_utf8(entry.key).unwrap())
        .collect()
}

pub(crate) fn absent_keys_read_as_none_and_delete_as_ok<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    assert_eq!(engine.get(b"a").unwrap(), None);
    assert_eq!(engine.get_many(&[b"a", b"b"]).unwrap(), [None, None]);
    assert_eq!(engine.scan(&Scan::new([], 10)).unwrap(), []);
    engine.apply(Batch::new().delete("a")).unwrap();
    engine.apply(Batch::new()).unwrap();
}

pub(crate) fn stores_values_of_every_size<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    for (number, size) in [(1, 0), (2, 1), (3, 4096), (4, 3 << 20)] {
        let value = stored(number, vec![0xa5; size]);
        engine
            .apply(Batch::new().put("key", value.clone()))
            .unwrap();
        assert_eq!(engine.get(b"key").unwrap(), Some(value));
    }
    engine.apply(Batch::new().delete("key")).unwrap();
    assert_eq!(engine.get(b"key").unwrap(), None);
}

pub(crate) fn absent_holds_only_for_absent_keys<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let create = |number| {
        Batch::new()
            .require("a", Precondition::Absent)
            .put("a", stored(number, "value"))
    };
    engine.apply(create(1)).unwrap();
    assert_eq!(conflict(engine.apply(create(2))), 0);
    assert_eq!(engine.get(b"a").unwrap(), Some(stored(1, "value")));
    engine.apply(Batch::new().delete("a")).unwrap();
    engine.apply(create(3)).unwrap();
}

pub(crate) fn unchanged_holds_only_for_the_same_version<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let change = |from, to| {
        Batch::new()
            .require("a", unchanged(from))
            .put("a", stored(to, "same"))
    };
    assert_eq!(conflict(engine.apply(change(1, 2))), 0);
    put(engine, "a", 1);
    engine.apply(change(1, 2)).unwrap();
    assert_eq!(conflict(engine.apply(change(1, 3))), 0);
    // The version is what counts, not the bytes.
    engine.apply(change(2, 2)).unwrap();
    engine
        .apply(Batch::new().require("a", unchanged(2)).delete("a"))
        .unwrap();
    assert_eq!(conflict(engine.apply(change(2, 3))), 0);
    assert_eq!(engine.get(b"a").unwrap(), None);
}

pub(crate) fn a_conflict_names_the_lowest_and_stores_nothing<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    put(engine, "a", 1);
    put(engine, "b", 2);
    let batch = Batch::new()
        .require("a", unchanged(1))
        .require("b", unchanged(9))
        .require("a", Precondition::Absent)
        .put("c", stored(3, "new"))
        .delete("a");
    assert_eq!(conflict(engine.apply(batch)), 1);
    assert_eq!(keys(engine, &Scan::new([], 10)), ["a", "b"]);
}

pub(crate) fn preconditions_judge_the_state_before_the_batch<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let batch = Batch::new()
        .put("a", stored(1, "new"))
        .require("a", Precondition::Absent)
        .require("a", Precondition::Absent);
    engine.apply(batch).unwrap();
    assert_eq!(engine.get(b"a").unwrap(), Some(stored(1, "new")));
}

pub(crate) fn the_last_write_to_a_key_counts<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let batch = Batch::new()
        .put("a", stored(1, "first"))
        .put("b", stored(2, "gone"))
        .put("a", stored(3, "second"))
        .delete("b");
    engine.apply(batch).unwrap();
    assert_eq!(
        engine.get_many(&[b"b", b"a"]).unwrap(),
        [None, Some(stored(3, "second"))]
    );
    // Also for preconditions that come right after.
    engine
        .apply(
            Batch::new()
                .require("a", unchanged(3))
                .require("b", Precondition::Absent),
        )
        .unwrap();
}

pub(crate) fn scans_are_ordered_and_keep_to_their_prefix<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    for (number, key) in (1..).zip(["b/2", "a", "b", "c", "b/10", "b0", "b/", "bb"]) {
        put(engine, key, number);
    }
    assert_eq!(keys(engine, &Scan::new("b/", 10)), ["b/", "b/10", "b/2"]);
    assert_eq!(
        keys(engine, &Scan::new([], 10)),
        ["a", "b", "b/", "b/10", "b/2", "b0", "bb", "c"]
    );
    assert_eq!(keys(engine, &Scan::new("x", 10)), [""; 0]);
    let first = engine.scan(&Scan::new("c", 1)).unwrap().remove(0);
    assert_eq!(first.stored, stored(4, "c"));
}

pub(crate) fn scans_start_where_asked_and_stop_at_their_limit<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    for (number, key) in (1..).zip(["p1", "p2", "p3", "p4", "q"]) {
        put(engine, key, number);
    }
    let scan = |limit| Scan::new("p", limit);
    assert_eq!(keys(engine, &scan(0)), [""; 0]);
    assert_eq!(keys(engine, &scan(2)), ["p1", "p2"]);
    assert_eq!(keys(engine, &scan(9).from("p2")), ["p2", "p3", "p4"]);
    assert_eq!(keys(engine, &scan(1).after("p2")), ["p3"]);
    assert_eq!(keys(engine, &scan(9).after("p21")), ["p3", "p4"]);
    assert_eq!(keys(engine, &scan(9).from("a")), ["p1", "p2", "p3", "p4"]);
    assert_eq!(keys(engine, &scan(9).after("p4")), [""; 0]);
    assert_eq!(keys(engine, &scan(9).from("z")), [""; 0]);
}

pub(crate) fn scans_of_extreme_prefixes_and_starts<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let all: [&[u8]; 6] = [
        &[0],
        &[0, 0],
        &[0xfe, 0xff],
        &[0xff],
        &[0xff, 0],
        &[0xff, 0xff],
    ];
    for (number, key) in (1..).zip(all) {
        engine
            .apply(Batch::new().put(key, stored(number, "x")))
            .unwrap();
    }
    let found = |scan: Scan| -> Vec<Vec<u8>> {
        engine
            .scan(&scan)
            .unwrap()
            .into_iter()
            .map(|entry| entry.key)
            .collect()
    };
    assert_eq!(found(Scan::new([0xff], 9)), all[3..]);
    assert_eq!(found(Scan::new([0xfe, 0xff], 9)), all[2..3]);
    assert_eq!(found(Scan::new([], 9).after([0])), all[1..]);
    assert_eq!(found(Scan::new([0], 9).after([0])), all[1..2]);
    assert_eq!(found(Scan::new([0xff, 0xff], 9)), all[5..]);
}

pub(crate) fn refuses_what_is_over_a_limit<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let refused = |batch: Batch| match engine.apply(batch) {
        Err(Error::TooLarge(limit)) => limit,
        other => panic!("not refused: {other:?}"),
    };
    let long = vec![b'k'; MAX_KEY_BYTES + 1];
    assert_eq!(refused(Batch::new().put("", stored(1, "x"))), Limit::Key);
    assert_eq!(
        refused(Batch::new().put(&*long, stored(1, "x"))),
        Limit::Key
    );
    assert_eq!(refused(Batch::new().delete(&*long)), Limit::Key);
    assert_eq!(
        refused(Batch::new().require(&*long, Precondition::Absent)),
        Limit::Key
    );
    let huge = stored(1, vec![0; MAX_VALUE_BYTES + 1]);
    assert_eq!(refused(Batch::new().put("a", huge)), Limit::Value);
    let mut batch = Batch::new();
    for key in ["a", "b", "c", "d"] {
        batch = batch.put(key, stored(1, vec![0; MAX_VALUE_BYTES]));
    }
    assert_eq!(refused(batch), Limit::Batch);
    engine
        .apply(Batch::new().put(&long[1..], stored(1, "x")))
        .unwrap();
    assert_eq!(engine.get(&long[1..]).unwrap(), Some(stored(1, "x")));
}

pub(crate) fn batches_sent_together_are_independent<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    put(engine, "taken", 1);
    let create = |key: &str| {
        Batch::new()
            .require(key, Precondition::Absent)
            .put(key, stored(2, "new"))
    };
    let results = engine.apply_many(vec![
        create("a"),
        create("taken"),
        Batch::new().put("", stored(2, "new")),
        create("b").durability(Durability::Relaxed),
    ]);
    assert!(matches!(
        results.as_slice(),
        [
            Ok(()),
            Err(Error::Conflict { index: 0 }),
            Err(Error::TooLarge(Limit::Key)),
            Ok(())
        ]
    ));
    assert_eq!(keys(engine, &Scan::new([], 10)), ["a", "b", "taken"]);
    assert_eq!(engine.get(b"taken").unwrap().unwrap().version, version(1));
    assert!(engine.apply_many(Vec::new()).is_empty());
}

pub(crate) fn batches_sent_together_see_earlier_ones<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    put(engine, "a", 1);
    let results = engine.apply_many(vec![
        Batch::new()
            .require("a", unchanged(1))
            .put("a", stored(2, "second")),
        Batch::new()
            .require("a", unchanged(1))
            .put("a", stored(3, "late")),
        Batch::new().require("a", unchanged(2)).delete("a"),
        Batch::new()
            .require("a", Precondition::Absent)
            .put("a", stored(4, "again")),
    ]);
    let outcomes: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(outcomes, [true, false, true, true]);
    assert_eq!(engine.get(b"a").unwrap(), Some(stored(4, "again")));
}

pub(crate) fn synced_batches_survive<S: Subject>() {
    let mut subject = S::fresh();
    for round in 0..3 {
        let engine = subject.engine();
        for number in 0..20 {
            let key = format!("{round}/{number:02}");
            engine
                .apply(Batch::new().put(key, stored(number, vec![7; 100])))
                .unwrap();
        }
        engine
            .apply(Batch::new().delete(format!("{round}/00")))
            .unwrap();
        subject = subject.reopen();
        assert_eq!(
            keys(subject.engine(), &Scan::new([], 100)).len(),
            19 * (round + 1)
        );
    }
    let kept = subject.engine().get(b"1/07").unwrap();
    assert_eq!(kept, Some(stored(7, vec![7; 100])));
}

pub(crate) fn relaxed_batches_survive_with_a_later_synced_one<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    let relaxed = |key: &str| {
        Batch::new()
            .put(key, stored(1, "x"))
            .durability(Durability::Relaxed)
    };
    engine.apply(relaxed("a")).unwrap();
    // A batch without changes syncs what came before it, too.
    engine.apply(Batch::new()).unwrap();
    engine.apply(relaxed("b")).unwrap();
    put(engine, "c", 2);
    engine.apply(relaxed("d")).unwrap();
    let subject = subject.reopen();
    let kept = keys(subject.engine(), &Scan::new([], 10));
    assert_eq!(kept[..3], ["a", "b", "c"]);
}

pub(crate) fn a_purge_keeps_what_is_stored<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    engine.purge().unwrap();
    put(engine, "a", 1);
    put(engine, "a", 2);
    put(engine, "b", 3);
    engine.apply(Batch::new().delete("b")).unwrap();
    engine.purge().unwrap();
    assert_eq!(engine.get(b"a").unwrap(), Some(stored(2, "a")));
    assert_eq!(engine.get(b"b").unwrap(), None);
    let subject = subject.reopen();
    assert_eq!(subject.engine().get(b"a").unwrap(), Some(stored(2, "a")));
}
