//! Nothing acknowledged is lost when the process is killed.

use std::io::{BufRead, BufReader, Write};
use std::thread;

use cl_kv::{Batch, Engine, Error, Precondition, RocksEngine, Scan};
use tempfile::TempDir;

use crate::{child, stored};

const ROUNDS: usize = 8;
const WRITERS: usize = 3;

fn key(writer: usize, number: u64) -> String {
    format!("{writer}/{number:08}")
}

/// Run by `loses_nothing_acknowledged`: each writer continues its own row of numbered entries, and
/// says so after each one.
#[test]
fn errand_write() {
    let Some(folder) = child::errand_folder() else {
        return;
    };
    let engine = RocksEngine::open(&folder).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let engine = &engine;
            scope.spawn(move || {
                let mut number = row(engine, writer);
                loop {
                    let key = key(writer, number);
                    let batch = Batch::new()
                        .require(key.as_str(), Precondition::Absent)
                        .put(key.as_str(), stored(number, vec![b'v'; 300]))
                        .put(format!("last/{writer}"), stored(number, key));
                    engine.apply(batch).unwrap();
                    println!("\nstored {writer} {number}");
                    std::io::stdout().flush().unwrap();
                    number += 1;
                }
            });
        }
    });
}

/// The length of a writer's row, after a check that it has no hole and a matching end.
fn row(engine: &RocksEngine, writer: usize) -> u64 {
    let entries = engine
        .scan(&Scan::new(format!("{writer}/"), 1_000_000))
        .unwrap();
    for (number, entry) in (0..).zip(&entries) {
        assert_eq!(entry.key, key(writer, number).as_bytes());
        assert_eq!(entry.stored, stored(number, vec![b'v'; 300]));
    }
    let last = engine.get(format!("last/{writer}").as_bytes()).unwrap();
    let last = last.map(|stored| stored.value);
    assert_eq!(last, entries.last().map(|entry| entry.key.clone()));
    entries.len() as u64
}

#[test]
fn loses_nothing_acknowledged() {
    let folder = TempDir::new().unwrap();
    let mut acknowledged = [0_u64; WRITERS];
    for round in 0..ROUNDS {
        let mut process = child::start("killed::errand_write", folder.path());
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut seen = 0;
        // The pipe ends some time after the kill: what is still in it was acknowledged, too.
        while let Some(line) = lines.next().transpose().unwrap() {
            let Some(words) = line.strip_prefix("stored ") else {
                continue;
            };
            let (writer, number) = words.split_once(' ').unwrap();
            acknowledged[writer.parse::<usize>().unwrap()] = number.parse::<u64>().unwrap() + 1;
            seen += 1;
            if seen == 20 + 13 * round {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        assert!(
            seen >= 20 + 13 * round,
            "the child stopped by itself after {seen}"
        );

        let engine = RocksEngine::open(folder.path()).unwrap();
        for (writer, acknowledged) in acknowledged.iter().enumerate() {
            let stored = row(&engine, writer);
            // At most the one batch on its way was stored without being acknowledged.
            assert!(
                (*acknowledged..=acknowledged + 1).contains(&stored),
                "{stored} {acknowledged}"
            );
        }
        let taken = Batch::new().require(key(0, 0), Precondition::Absent);
        assert!(matches!(
            engine.apply(taken),
            Err(Error::Conflict { index: 0 })
        ));
    }
}
