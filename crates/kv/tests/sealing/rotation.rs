//! Data keys rotate under running writers, and nothing is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use cl_kv::{
    Batch, Changes, Engine, Entry, Error, Fault, KeyId, MemoryEngine, OldKey, Precondition,
    Progress, Range, RocksEngine, Scan, Sealed, Stored,
};
use tempfile::TempDir;

use crate::{claim, entries, key_id, memory, open, plant, put, tenant, value};

fn reseal_all<E: Engine>(store: &Sealed<E>, budget: usize) -> Progress {
    let mut total = Progress::default();
    for _ in 0..10_000 {
        let progress = store.reseal(budget).unwrap();
        assert!(progress.examined <= budget);
        total.examined += progress.examined;
        total.resealed += progress.resealed;
        total.unreadable += progress.unreadable;
        if progress.finished {
            total.finished = true;
            return total;
        }
    }
    panic!("never finished");
}

fn retire_old_keys<E: Engine>(store: &Sealed<E>) {
    for old in store.old_keys().unwrap() {
        store.retire(old.id).unwrap();
    }
}

fn key_ids(engine: &impl Engine) -> Vec<u32> {
    entries(engine)
        .iter()
        .map(|entry| key_id(&entry.stored))
        .collect()
}

#[test]
fn new_values_go_under_the_new_key_and_old_ones_still_open() {
    let (engine, store) = memory();
    let first = store.active_key().unwrap();
    put(&store, &claim(1), "old");
    let second = store.rotate().unwrap();
    assert_eq!(store.active_key().unwrap(), second);
    assert_ne!(first, second);
    put(&store, &claim(2), "new");
    assert_eq!(key_ids(&engine), [first.number(), second.number()]);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("old"));
    drop(store);
    let store = open(engine);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("old"));
    assert_eq!(
        store.old_keys().unwrap(),
        [OldKey {
            id: first,
            unused: false
        }]
    );
}

#[test]
fn resealing_is_bounded_keeps_versions_and_ends() {
    let (engine, store) = memory();
    let versions: Vec<_> = (0..200)
        .map(|number| put(&store, &claim(number), "value"))
        .collect();
    assert_eq!(
        store.reseal(10).unwrap(),
        Progress {
            finished: true,
            ..Progress::default()
        }
    );
    let second = store.rotate().unwrap();
    for _ in 0..7 {
        let progress = store.reseal(10).unwrap();
        assert_eq!(
            progress,
            Progress {
                examined: 10,
                resealed: 10,
                ..Progress::default()
            }
        );
    }
    assert_eq!(
        key_ids(&engine)
            .iter()
            .filter(|id| **id == second.number())
            .count(),
        70
    );
    assert_eq!(store.reseal(0).unwrap(), Progress::default());
    let rest = reseal_all(&store, 75);
    assert_eq!(
        rest,
        Progress {
            examined: 130,
            resealed: 130,
            unreadable: 0,
            finished: true
        }
    );
    assert_eq!(key_ids(&engine), [second.number(); 200]);
    for (number, version) in (0..).zip(versions) {
        let change = Changes::new()
            .require(claim(number), Precondition::Unchanged(version))
            .put(claim(number), "changed");
        store.apply(&change).unwrap();
    }
}

#[test]
fn a_key_is_retired_only_when_no_value_uses_it() {
    let (engine, store) = memory();
    let in_use = |store: &Sealed<MemoryEngine>, id: KeyId| matches!(store.retire(id), Err(Error::KeyInUse(named)) if named == id);
    let first = store.active_key().unwrap();
    put(&store, &claim(1), "value");
    put(&store, &claim(2), "value");
    assert!(in_use(&store, first));
    let second = store.rotate().unwrap();
    assert!(in_use(&store, first));
    store.reseal(1).unwrap();
    assert!(in_use(&store, first));
    reseal_all(&store, 1);
    assert!(in_use(&store, second));
    assert_eq!(
        store.old_keys().unwrap(),
        [OldKey {
            id: first,
            unused: true
        }]
    );
    store.retire(first).unwrap();
    assert!(matches!(store.retire(first), Err(Error::NoSuchKey(id)) if id == first));
    assert_eq!(store.old_keys().unwrap(), []);
    let store = open(engine);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
    // Ids do not come back.
    assert!(store.rotate().unwrap() > second);
}

#[test]
fn a_rotation_during_a_pass_starts_another() {
    let (engine, store) = memory();
    for number in 0..10 {
        put(&store, &claim(number), "value");
    }
    store.rotate().unwrap();
    store.reseal(6).unwrap();
    let third = store.rotate().unwrap();
    let progress = reseal_all(&store, 4);
    assert_eq!((progress.examined, progress.resealed), (10, 10));
    assert_eq!(key_ids(&engine), [third.number(); 10]);
    retire_old_keys(&store);
    assert_eq!(value(&open(engine), &claim(3)).as_deref(), Some("value"));
}

#[test]
fn an_unreadable_value_keeps_its_key() {
    let (engine, store) = memory();
    for number in 0..3 {
        put(&store, &claim(number), "value");
    }
    let first = store.active_key().unwrap();
    let mut entry = entries(&engine).remove(1);
    let whole = entry.stored.clone();
    entry.stored.value[20] ^= 1;
    plant(&engine, &entry.key, entry.stored);
    store.rotate().unwrap();
    let progress = reseal_all(&store, 2);
    assert_eq!((progress.resealed, progress.unreadable), (2, 1));
    assert!(matches!(store.retire(first), Err(Error::KeyInUse(_))));
    // Repaired, say from a backup.
    plant(&engine, &entry.key, whole);
    let progress = reseal_all(&store, 2);
    assert_eq!((progress.resealed, progress.unreadable), (1, 0));
    store.retire(first).unwrap();
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
}

/// An engine that lets something else happen, once, right after a scan.
#[derive(Default)]
struct Interrupted {
    engine: MemoryEngine,
    interruption: Mutex<Option<Interruption>>,
}

struct Interruption {
    /// Whether it comes after the first scan that finds nothing, or the first that finds something.
    after_empty: bool,
    act: Box<dyn FnOnce() + Send>,
}

impl Interrupted {
    fn plan(&self, after_empty: bool, act: impl FnOnce() + Send + 'static) {
        let act = Box::new(act);
        *self.interruption.lock().unwrap() = Some(Interruption { after_empty, act });
    }
}

impl Engine for Interrupted {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        let entries = self.engine.scan(scan)?;
        let interruption = self
            .interruption
            .lock()
            .unwrap()
            .take_if(|interruption| interruption.after_empty == entries.is_empty());
        if let Some(interruption) = interruption {
            (interruption.act)();
        }
        Ok(entries)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.engine.apply(batch)
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        self.engine.apply_many(batches)
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

/// Otherwise the key that the pass sealed under would count as unused, with all values under it.
#[test]
fn a_rotation_elsewhere_at_the_end_of_a_pass_voids_it() {
    let interrupted = Arc::new(Interrupted::default());
    let store = open(Arc::clone(&interrupted));
    let elsewhere = open(interrupted.engine.clone());
    put(&store, &claim(1), "value");
    let second = store.rotate().unwrap();
    interrupted.plan(true, move || {
        elsewhere.rotate().unwrap();
    });
    assert!(!store.reseal(100).unwrap().finished);
    assert!(matches!(store.retire(second), Err(Error::KeyInUse(_))));
    assert!(reseal_all(&store, 100).finished);
    retire_old_keys(&store);
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
}

#[test]
fn a_change_or_removal_right_before_resealing_stays() {
    let interrupted = Arc::new(Interrupted::default());
    let store = open(Arc::clone(&interrupted));
    let elsewhere = open(interrupted.engine.clone());
    let versions: Vec<_> = (0..3).map(|n| put(&store, &claim(n), "old")).collect();
    store.rotate().unwrap();
    interrupted.plan(false, move || {
        put(&elsewhere, &claim(0), "changed");
        elsewhere.apply(&Changes::new().delete(claim(1))).unwrap();
    });
    assert_eq!(reseal_all(&store, 100).resealed, 1);
    retire_old_keys(&store);
    assert_eq!(value(&store, &claim(0)).as_deref(), Some("changed"));
    assert_eq!(value(&store, &claim(1)), None);
    assert_eq!(store.get(claim(2)).unwrap().unwrap().version, versions[2]);
}

#[test]
fn a_rotation_elsewhere_in_the_middle_of_a_pass_starts_another() {
    let interrupted = Arc::new(Interrupted::default());
    let store = open(Arc::clone(&interrupted));
    let elsewhere = open(interrupted.engine.clone());
    put(&store, &claim(1), "old");
    store.rotate().unwrap();
    interrupted.plan(false, move || {
        elsewhere.rotate().unwrap();
        put(&elsewhere, &claim(2), "new");
    });
    assert_eq!(store.reseal(100).unwrap(), Progress::default());
    assert_eq!(reseal_all(&store, 100).resealed, 1);
    retire_old_keys(&store);
    assert_eq!(key_ids(store.engine()), [3, 3]);
}

/// A second process that has not heard of the rotation neither fails nor stores under the old key.
#[test]
fn a_writer_with_retired_keys_seals_anew() {
    let (engine, here) = memory();
    let there = open(engine.clone());
    put(&there, &claim(1), "value");
    let second = here.rotate().unwrap();
    reseal_all(&here, 100);
    retire_old_keys(&here);
    let version = put(&there, &claim(2), "late");
    let results = there.apply_many(&[
        Changes::new()
            .require(claim(2), Precondition::Unchanged(version))
            .put(claim(2), "later"),
        Changes::new()
            .require(claim(2), Precondition::Absent)
            .put(claim(2), "never"),
    ]);
    assert!(matches!(
        results.as_slice(),
        [Ok(_), Err(Error::Conflict { index: 0 })]
    ));
    assert_eq!(key_ids(&engine), [second.number(); 2]);
    assert_eq!(value(&here, &claim(2)).as_deref(), Some("later"));
}

#[test]
fn a_reader_learns_new_keys_by_itself() {
    let (engine, here) = memory();
    let there = open(engine);
    here.rotate().unwrap();
    put(&here, &claim(1), "value");
    assert_eq!(value(&there, &claim(1)).as_deref(), Some("value"));
}

#[test]
fn every_step_may_fail_and_be_repeated() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let (engine, store) = memory();
        for number in 0..5 {
            put(&store, &claim(number), "value");
        }
        let first = store.active_key().unwrap();
        engine.plan(fault);
        store.rotate().unwrap_err();
        store.rotate().unwrap();
        // One of the values fails, then the note that none is left under an old key.
        for finished in [false, true] {
            engine.plan(fault);
            store.reseal(5).unwrap_err();
            assert_eq!(store.reseal(5).unwrap().finished, finished);
        }
        engine.plan(fault);
        store.retire(first).unwrap_err();
        let repeated = store.retire(first);
        match fault {
            Fault::Full | Fault::BeforePersist => repeated.unwrap(),
            Fault::AfterPersist => assert!(matches!(repeated, Err(Error::NoSuchKey(_)))),
        }
        let store = open(engine);
        for number in 0..5 {
            assert_eq!(value(&store, &claim(number)).as_deref(), Some("value"));
        }
    }
}

/// Counters go up in many threads while keys rotate, values are re-sealed and old keys retire.
fn updates_survive_rotations<E: Engine>(store: &Sealed<E>, each: u64) {
    const COUNTERS: u64 = 3;
    const WRITERS: u64 = 4;
    for counter in 0..COUNTERS {
        put(store, &claim(counter), "0");
    }
    let before = store.active_key().unwrap();
    let running = AtomicU64::new(WRITERS);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let running = &running;
            scope.spawn(move || {
                let mut done = 0;
                while done < each {
                    let key = claim((writer + done) % COUNTERS);
                    let current = store.get(&key).unwrap().unwrap();
                    let count: u64 = std::str::from_utf8(&current.value)
                        .unwrap()
                        .parse()
                        .unwrap();
                    let change = Changes::new()
                        .require(&key, Precondition::Unchanged(current.version))
                        .put(&key, (count + 1).to_string())
                        .put(claim(1000 * (writer + 1) + done), "done");
                    match store.apply(&change) {
                        Ok(_) => done += 1,
                        Err(Error::Conflict { index: 0 }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            store.rotate().unwrap();
            reseal_all(store, 7);
            retire_old_keys(store);
        }
    });
    assert!(store.active_key().unwrap() > before);
    let counts = (0..COUNTERS).map(|counter| value(store, &claim(counter)).unwrap());
    let counted: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(counted, WRITERS * each);
    assert_eq!(
        entries(store.engine()).len() as u64,
        COUNTERS + WRITERS * each
    );
    let readable = reseal_all(store, 1000);
    assert_eq!(readable.unreadable, 0);
    retire_old_keys(store);
}

#[test]
fn updates_survive_rotations_in_memory() {
    let (engine, store) = memory();
    updates_survive_rotations(&store, 150);
    let store = open(engine);
    let all = store
        .scan(&Range::of_tenant(tenant("acme"), 10_000))
        .unwrap();
    assert_eq!(all.len(), 603);
}

#[test]
fn updates_survive_rotations_on_disk() {
    let folder = TempDir::new().unwrap();
    let store = open(RocksEngine::open(folder.path()).unwrap());
    updates_survive_rotations(&store, 25);
    drop(store);
    let store = open(RocksEngine::open(folder.path()).unwrap());
    let all = store
        .scan(&Range::of_tenant(tenant("acme"), 10_000))
        .unwrap();
    assert_eq!(all.len(), 103);
}
