//! Who may open a data folder, and what state it may be in.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cl_kv::{Batch, Damage, Engine, Error, RocksEngine, Scan};
use tempfile::TempDir;

use crate::{child, stored};

/// Run by `refuses_a_second_process`.
#[test]
fn errand_open() {
    let Some(folder) = child::errand_folder() else {
        return;
    };
    match RocksEngine::open(&folder) {
        Ok(_) => println!("\noutcome opened"),
        Err(Error::Locked) => println!("\noutcome locked"),
        Err(error) => println!("\noutcome {error:?}"),
    }
}

fn outcome_of_second_process(folder: &Path) -> String {
    let output = child::start("folder::errand_open", folder)
        .wait_with_output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output
        .lines()
        .find_map(|line| line.strip_prefix("outcome "))
        .unwrap()
        .to_owned()
}

#[test]
fn refuses_a_second_process() {
    let folder = TempDir::new().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    engine.apply(Batch::new().put("a", stored(1, "x"))).unwrap();
    assert_eq!(outcome_of_second_process(folder.path()), "locked");
    assert_eq!(engine.get(b"a").unwrap(), Some(stored(1, "x")));
    drop(engine);
    assert_eq!(outcome_of_second_process(folder.path()), "opened");
}

#[test]
fn refuses_a_second_engine_in_the_process() {
    let folder = TempDir::new().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    assert!(matches!(
        RocksEngine::open(folder.path()),
        Err(Error::Locked)
    ));
    drop(engine);
    RocksEngine::open(folder.path()).unwrap();
}

#[test]
fn makes_folders_for_the_owner_only() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("data/process");
    drop(RocksEngine::open(&folder).unwrap());
    assert_eq!(
        fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn refuses_a_folder_whose_database_is_gone() {
    let folder = TempDir::new().unwrap();
    drop(RocksEngine::open(folder.path()).unwrap());
    fs::remove_dir_all(folder.path().join("db")).unwrap();
    let refused = RocksEngine::open(folder.path());
    assert!(matches!(refused, Err(Error::Corrupt(Damage::Missing))));
    assert!(!folder.path().join("db").exists());
}

#[test]
fn refuses_a_folder_of_another_format() {
    let folder = TempDir::new().unwrap();
    drop(RocksEngine::open(folder.path()).unwrap());
    fs::write(folder.path().join("format"), "cl-kv rocksdb 2\n").unwrap();
    assert!(matches!(
        RocksEngine::open(folder.path()),
        Err(Error::Corrupt(Damage::Files))
    ));
}

/// A folder with 100 entries that are still in the log, and that log.
fn folder_with_log() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    for number in 0..100 {
        let batch = Batch::new().put(format!("{number:02}"), stored(number, vec![7; 500]));
        engine.apply(batch).unwrap();
    }
    drop(engine);
    let files = fs::read_dir(folder.path().join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    logs.sort();
    (folder, logs.pop().unwrap())
}

#[test]
fn opens_without_a_batch_that_was_torn_off() {
    let (folder, log) = folder_with_log();
    let file = OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(file.metadata().unwrap().len() - 3).unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    assert_eq!(engine.scan(&Scan::new([], 200)).unwrap().len(), 99);
}

#[test]
fn refuses_a_log_that_is_damaged_inside() {
    let (folder, log) = folder_with_log();
    let file = OpenOptions::new().write(true).open(&log).unwrap();
    file.write_all_at(b"damage", file.metadata().unwrap().len() / 2)
        .unwrap();
    let opened = RocksEngine::open(folder.path()).map(|_| "opened");
    let is_refused = matches!(opened, Err(Error::Corrupt(Damage::Files)));
    assert!(is_refused, "{opened:?}");
}
