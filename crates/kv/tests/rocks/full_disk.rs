//! A full disk refuses writes, and only as long as it is full.

use std::fs;
use std::thread;

use cl_kv::{Batch, Engine, Error, RocksEngine, Scan};

use crate::small_disk::SmallDisk;
use crate::stored;

/// Bytes that do not compress, so that tables take as much room as the log.
fn value(number: u64) -> Vec<u8> {
    let mut state = number + 1;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 31)
    });
    words.take(2048).flat_map(u64::to_be_bytes).collect()
}

fn put(engine: &RocksEngine, number: u64) -> Result<(), Error> {
    engine.apply(Batch::new().put(format!("{number:06}"), stored(number, value(number))))
}

/// Every entry below this number is there and whole. One more may be, from a batch that was refused
/// after it had reached the disk.
fn check_all(engine: &RocksEngine, count: u64) {
    let entries = engine.scan(&Scan::new([], 1_000_000)).unwrap();
    assert!(
        entries.len() as u64 >= count,
        "{} of {count} entries",
        entries.len()
    );
    for (number, entry) in (0..count).zip(entries) {
        assert_eq!(entry.key, format!("{number:06}").as_bytes());
        assert_eq!(entry.stored, stored(number, value(number)));
    }
}

fn put_until_full(engine: &RocksEngine, mut number: u64) -> u64 {
    loop {
        match put(engine, number) {
            Ok(()) => number += 1,
            Err(Error::Full) => return number,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn serves_again_by_itself_once_there_is_room() {
    let Some(disk) = SmallDisk::mount("96m") else {
        return;
    };
    let engine = RocksEngine::open(&disk.path().join("data")).unwrap();
    let mut count = 0;
    for round in 0..3 {
        for _ in 0..20 {
            put(&engine, count).unwrap();
            count += 1;
        }
        let ballast = disk.fill("ballast");
        count = put_until_full(&engine, count);
        for _ in 0..5 {
            assert!(
                matches!(put(&engine, count), Err(Error::Full)),
                "round {round}"
            );
        }
        // What is there can be read all the while.
        check_all(&engine, count);
        fs::remove_file(ballast).unwrap();
        put(&engine, count).unwrap();
        count += 1;
    }
    drop(engine);
    check_all(
        &RocksEngine::open(&disk.path().join("data")).unwrap(),
        count,
    );
}

/// The store itself fills the disk, so that moving the log to tables fails as well.
#[test]
fn survives_filling_the_disk_itself() {
    let Some(disk) = SmallDisk::mount("128m") else {
        return;
    };
    // More than the log takes by then: opening again may move all of it to tables.
    let reserve = disk.path().join("reserve");
    fs::write(&reserve, vec![b'x'; 48 << 20]).unwrap();
    let engine = RocksEngine::open(&disk.path().join("data")).unwrap();
    let count = put_until_full(&engine, 0);
    assert!(count > 100);
    check_all(&engine, count);
    fs::remove_file(reserve).unwrap();
    put(&engine, count).unwrap();
    check_all(&engine, count + 1);
}

#[test]
fn writers_at_once_all_see_the_full_disk() {
    let Some(disk) = SmallDisk::mount("96m") else {
        return;
    };
    let engine = RocksEngine::open(&disk.path().join("data")).unwrap();
    put(&engine, 0).unwrap();
    let ballast = disk.fill("ballast");
    let write = |writer: u64| {
        let mut stored_keys = Vec::new();
        for number in 0_u64.. {
            let key = format!("{writer}/{number:04}");
            match engine.apply(Batch::new().put(key.as_str(), stored(1, value(number)))) {
                Ok(()) => stored_keys.push(key),
                Err(Error::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        stored_keys
    };
    let write = &write;
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    fs::remove_file(ballast).unwrap();
    put(&engine, 1).unwrap();
    for key in acknowledged {
        assert!(
            engine.get(key.as_bytes()).unwrap().is_some(),
            "{key} was acknowledged"
        );
    }
}

#[test]
fn refuses_to_open_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount("32m") else {
        return;
    };
    let ballast = disk.fill("ballast");
    assert!(matches!(
        RocksEngine::open(&disk.path().join("data")),
        Err(Error::Full)
    ));
    fs::remove_file(ballast).unwrap();
    let engine = RocksEngine::open(&disk.path().join("data")).unwrap();
    put(&engine, 0).unwrap();
}
