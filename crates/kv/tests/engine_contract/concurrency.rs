//! What many callers at once may rely on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use cl_kv::{Batch, Engine, Error, Precondition, Scan, Stored};

use crate::{Subject, stored, unchanged};

const THREADS: u64 = 8;

fn number(stored: &Stored) -> u64 {
    u64::from_be_bytes(stored.value.as_slice().try_into().unwrap())
}

fn numbered(version: u64, number: u64) -> Stored {
    stored(version, number.to_be_bytes())
}

pub(crate) fn every_increment_counts_once<S: Subject>() {
    const EACH: u64 = 25;
    let subject = S::fresh();
    let engine = subject.engine();
    let versions = AtomicU64::new(1);
    engine
        .apply(Batch::new().put("counter", numbered(0, 0)))
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut done = 0;
                while done < EACH {
                    let current = engine.get(b"counter").unwrap().unwrap();
                    let next = versions.fetch_add(1, Ordering::Relaxed);
                    let batch = Batch::new()
                        .require("counter", Precondition::Unchanged(current.version))
                        .put("counter", numbered(next, number(&current) + 1));
                    match engine.apply(batch) {
                        Ok(()) => done += 1,
                        Err(Error::Conflict { index: 0 }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(
        number(&engine.get(b"counter").unwrap().unwrap()),
        THREADS * EACH
    );
}

pub(crate) fn one_of_many_creators_wins<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    for round in 0..20 {
        let key = format!("round/{round}");
        let winners = thread::scope(|scope| {
            let creators: Vec<_> = (0..THREADS)
                .map(|creator| {
                    let batch = Batch::new()
                        .require(key.as_str(), Precondition::Absent)
                        .put(key.as_str(), numbered(creator, creator));
                    scope.spawn(move || engine.apply(batch).is_ok().then_some(creator))
                })
                .collect();
            let outcomes = creators.into_iter().map(|creator| creator.join().unwrap());
            outcomes.flatten().collect::<Vec<_>>()
        });
        let [winner] = winners[..] else {
            panic!("{winners:?} created the same key");
        };
        assert_eq!(
            number(&engine.get(key.as_bytes()).unwrap().unwrap()),
            winner
        );
    }
}

/// Each of two writers sets its own key only if the other's is not set: never are both.
pub(crate) fn preconditions_on_keys_not_written_exclude<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    for round in 0..50 {
        let keys = [format!("{round}/left"), format!("{round}/right")];
        let set = |own: &str, other: &str| {
            engine
                .apply(
                    Batch::new()
                        .require(other, Precondition::Absent)
                        .put(own, stored(1, "set")),
                )
                .is_ok()
        };
        let (left, right) = thread::scope(|scope| {
            let left = scope.spawn(|| set(&keys[0], &keys[1]));
            let right = scope.spawn(|| set(&keys[1], &keys[0]));
            (left.join().unwrap(), right.join().unwrap())
        });
        assert!(left != right, "round {round}: left {left}, right {right}");
        assert_eq!(
            engine
                .scan(&Scan::new(format!("{round}/"), 9))
                .unwrap()
                .len(),
            1
        );
    }
}

pub(crate) fn readers_see_whole_batches<S: Subject>() {
    const KEYS: [&[u8]; 4] = [b"k/a", b"k/b", b"k/c", b"k/d"];
    let subject = S::fresh();
    let engine = subject.engine();
    let write = |round: u64| {
        let batch = KEYS.iter().fold(Batch::new(), |batch, key| {
            batch.put(*key, numbered(round, round))
        });
        engine.apply(batch).unwrap();
    };
    write(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let scanned = engine.scan(&Scan::new("k/", 9)).unwrap();
                    let got = engine.get_many(&KEYS).unwrap();
                    let scanned: Vec<_> =
                        scanned.iter().map(|entry| number(&entry.stored)).collect();
                    let got: Vec<_> = got.iter().flatten().map(number).collect();
                    assert_eq!(scanned, [scanned[0]; 4]);
                    assert_eq!(got, [got[0]; 4]);
                    assert!(
                        last <= scanned[0] && scanned[0] <= got[0],
                        "went back in time"
                    );
                    last = got[0];
                }
            });
        }
        (1..200).for_each(write);
        done.store(true, Ordering::Release);
    });
}

/// Threads send groups in which every second batch fails; each gets exactly its own results.
pub(crate) fn groups_of_batches_keep_their_own_results<S: Subject>() {
    let subject = S::fresh();
    let engine = subject.engine();
    engine
        .apply(Batch::new().put("taken", stored(1, "x")))
        .unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..10 {
                    let group = (0..6).map(|position| {
                        let key = format!("{thread}/{round}/{position}");
                        let required = if position % 2 == 0 {
                            unchanged(1)
                        } else {
                            unchanged(2)
                        };
                        Batch::new()
                            .require("taken", required)
                            .put(key, stored(1, "x"))
                    });
                    let results = engine.apply_many(group.collect());
                    let outcomes: Vec<_> = results.iter().map(Result::is_ok).collect();
                    assert_eq!(outcomes, [true, false, true, false, true, false]);
                }
            });
        }
    });
    let entries = engine.scan(&Scan::new([], 10_000)).unwrap();
    let keys: BTreeSet<_> = entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys.len() as u64, 1 + THREADS * 10 * 3);
    assert!(keys.contains(&b"7/9/4"[..]) && !keys.contains(&b"7/9/5"[..]));
}
