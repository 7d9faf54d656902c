//! What rests in the data folder.

use std::fs;
use std::path::Path;

use cl_kv::{Batch, Changes, Engine, RocksEngine, Stored, Version};
use tempfile::TempDir;

use crate::{CLAIM, open, put, tenant};

/// How many files below a folder contain some bytes.
fn files_with(folder: &Path, needle: &[u8]) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += files_with(&path, needle);
        } else if fs::read(&path)
            .unwrap()
            .windows(needle.len())
            .any(|window| window == needle)
        {
            count += 1;
        }
    }
    count
}

const PUBLIC: &str = "canary-public-4f1d";
const PRIVATE: &str = "canary-private-90ab";
const VALUE: &str = "canary-value-c3e7";
const CHANGED: &str = "canary-changed-77d0";

#[test]
fn private_words_never_reach_the_folder() {
    let folder = TempDir::new().unwrap();
    let kek = [1; 32];
    for round in 0..3 {
        let store = open(RocksEngine::open(folder.path()).unwrap());
        let key = |number| {
            tenant("acme")
                .key(CLAIM)
                .public(PUBLIC)
                .private(PRIVATE)
                .number(number)
        };
        for number in 0..20 {
            put(&store, &key(number), &VALUE.repeat(50));
            put(&store, &key(number), CHANGED);
        }
        store.apply(&Changes::new().delete(key(round))).unwrap();
        store.rotate().unwrap();
        while !store.reseal(10).unwrap().finished {}
        // Enough to move the log to tables.
        for number in 0..20 {
            put(&store, &key(1000 + number), &VALUE.repeat(50_000));
        }
    }
    for word in [PRIVATE, VALUE, CHANGED] {
        assert_eq!(files_with(folder.path(), word.as_bytes()), 0, "{word}");
    }
    assert_eq!(files_with(folder.path(), &kek), 0);
    // The search does find what is there.
    assert!(files_with(folder.path(), PUBLIC.as_bytes()) > 0);
}

#[test]
fn the_search_finds_what_is_not_sealed() {
    let folder = TempDir::new().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    let stored = Stored {
        version: Version::new([1; 16]),
        value: VALUE.into(),
    };
    engine.apply(Batch::new().put(PRIVATE, stored)).unwrap();
    assert!(files_with(folder.path(), VALUE.as_bytes()) > 0);
    assert!(files_with(folder.path(), PRIVATE.as_bytes()) > 0);
}
