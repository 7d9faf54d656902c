//! A store's own keys: made once, wrapped, and never replaced by accident.

use cl_kv::{Batch, Damage, Engine, Error, Fault, MemoryEngine, Scan, Sealed, Stored};

use crate::{claim, entries, kek, memory, open, plant, put, random, value};

const LOOKUP: &[u8] = b"\0lookup";
const KEYS: &[u8] = b"\0keys";

fn refusal(engine: &MemoryEngine, key: u8) -> Error {
    match Sealed::open(engine.clone(), kek(key), random()) {
        Ok(_) => panic!("opened"),
        Err(error) => error,
    }
}

#[test]
fn an_opened_store_reads_what_was_stored() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    drop(store);
    assert_eq!(value(&open(engine), &claim(1)).as_deref(), Some("value"));
}

#[test]
fn refuses_another_key_encryption_key_and_changes_nothing() {
    let (engine, store) = memory();
    let before = engine.scan(&Scan::new([], 10)).unwrap();
    assert_eq!(before.len(), 2);
    assert!(matches!(refusal(&engine, 2), Error::WrongKey));
    put(&store, &claim(1), "value");
    assert!(matches!(refusal(&engine, 2), Error::WrongKey));
    assert_eq!(engine.scan(&Scan::new([], 2)).unwrap(), before);
    assert_eq!(value(&open(engine), &claim(1)).as_deref(), Some("value"));
}

#[test]
fn never_makes_new_keys_over_existing_data() {
    for missing in [&[LOOKUP][..], &[KEYS], &[LOOKUP, KEYS]] {
        let (engine, store) = memory();
        put(&store, &claim(1), "value");
        for key in missing {
            engine.apply(Batch::new().delete(*key)).unwrap();
        }
        let before = engine.scan(&Scan::new([], 10)).unwrap();
        assert!(matches!(
            refusal(&engine, 1),
            Error::Corrupt(Damage::KeysMissing)
        ));
        assert_eq!(engine.scan(&Scan::new([], 10)).unwrap(), before);
    }
}

#[test]
fn refuses_damaged_or_exchanged_key_records() {
    for key in [LOOKUP, KEYS] {
        let (engine, _) = memory();
        let stored = engine.get(key).unwrap().unwrap();
        for position in 0..stored.value.len() {
            let mut damaged = stored.clone();
            damaged.value[position] ^= 1;
            plant(&engine, key, damaged);
            let refusal = refusal(&engine, 1);
            assert!(match position {
                0 => matches!(refusal, Error::Corrupt(Damage::UnknownFormat(_))),
                1..17 => matches!(refusal, Error::WrongKey),
                _ => matches!(refusal, Error::Corrupt(Damage::Forged)),
            });
        }
        for length in 0..stored.value.len() {
            let value = stored.value[..length].to_vec();
            plant(
                &engine,
                key,
                Stored {
                    value,
                    ..stored.clone()
                },
            );
            assert!(matches!(refusal(&engine, 1), Error::Corrupt(_)));
        }
    }
    let (engine, _) = memory();
    let [lookup, keys] = [LOOKUP, KEYS].map(|key| engine.get(key).unwrap().unwrap());
    plant(&engine, LOOKUP, keys);
    plant(&engine, KEYS, lookup);
    assert!(matches!(
        refusal(&engine, 1),
        Error::Corrupt(Damage::Forged)
    ));
}

#[test]
fn a_failed_creation_leaves_no_half_store() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let engine = MemoryEngine::new();
        engine.plan(fault);
        refusal(&engine, 1);
        let store = open(engine.clone());
        put(&store, &claim(1), "value");
        assert_eq!(value(&open(engine), &claim(1)).as_deref(), Some("value"));
    }
}

#[test]
fn openers_at_once_agree_on_one_set_of_keys() {
    for _ in 0..20 {
        let engine = MemoryEngine::new();
        let stores = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| open(engine.clone())))
                .collect();
            openers
                .into_iter()
                .map(|opener| opener.join().unwrap())
                .collect::<Vec<_>>()
        });
        put(&stores[0], &claim(1), "value");
        for store in stores {
            assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
        }
    }
}

#[test]
fn a_new_key_encryption_key_opens_the_same_store() {
    let (engine, store) = memory();
    put(&store, &claim(1), "value");
    store.rotate().unwrap();
    put(&store, &claim(2), "newer");
    let values = entries(&engine);
    drop(store);
    assert!(matches!(
        kek(3).replace(&kek(2), &engine, &*random()),
        Err(Error::WrongKey)
    ));
    kek(1).replace(&kek(2), &engine, &*random()).unwrap();
    assert!(matches!(refusal(&engine, 1), Error::WrongKey));
    assert_eq!(entries(&engine), values);
    let store = Sealed::open(engine, kek(2), random()).unwrap();
    assert_eq!(value(&store, &claim(1)).as_deref(), Some("value"));
    assert_eq!(value(&store, &claim(2)).as_deref(), Some("newer"));
}

#[test]
fn debug_shows_no_secret() {
    let (_, store) = memory();
    let key = crate::tenant("acme").key(crate::CLAIM).private("hidden");
    let changes = cl_kv::Changes::new().put(&key, "hidden value");
    store.apply(&changes).unwrap();
    let found = store.get(&key).unwrap();
    let range = cl_kv::Range::of(key.clone(), 1).from(&key);
    let scanned = store.scan(&range).unwrap();
    let text = format!("{store:?} {key:?} {changes:?} {found:?} {range:?} {scanned:?}");
    assert!(text.contains("acme") && text.contains("claim"));
    // As text, and as the numbers that a list of bytes shows.
    assert!(!text.contains("hidden") && !text.contains("104, 105, 100, 100, 101, 110"));
    assert_eq!(format!("{:?}", kek(65)), "KeyEncryptionKey(..)");
}
