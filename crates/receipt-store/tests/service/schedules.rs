//! Two committers on one store and a reader beside them, in the orders in which their steps can fall.
//!
//! A step is a call of the engine or of the pins: what lies between is decided in memory. The orders
//! are random ones from a seed; a failure prints it, and `SHUTTLE_RANDOM_SEED` has it happen again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cl_host::clock::{Clock, ManualClock};
use cl_host::ids::{Ids, SeededIds};
use cl_kv::{Batch, Engine, Entry, Error as KvError, MemoryEngine, Scan, Stored};
use cl_receipt_store::committer::{Metrics, Writer};
use cl_receipt_store::core::command::{Answer, Command, Placed, Rules};
use cl_receipt_store::core::kept::Kept;
use cl_receipt_store::core::routing::Tenant;
use cl_receipt_store::cosigning::Cosigning;
use cl_receipt_store::error::Error;
use cl_receipt_store::open_store;
use cl_receipt_store::pin::{NotAdvanced, Pin, PinFailed};
use cl_receipt_store::proven::Proven;
use cl_receipt_store::reader::Reader;
use cl_testbed::telemetry;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

use crate::failpoints::MemoryPin;
use crate::groups::{append, parsed, rules};
use crate::requests::{consumption, members, with};
use crate::support::{START_MS, WRITERS, log_key, sealed, verify_proof};

/// How many orders of each kind are tried.
const ORDERS: usize = 100;

/// How often the order of a thread's steps is broken, in the second kind.
const PREEMPTIONS: usize = 3;

/// Enough for a commit in a build without optimization.
const STACK_BYTES: usize = 1 << 20;

/// Lets others take their turn around each step.
#[derive(Clone)]
struct Turns<T>(T);

impl<T> Turns<T> {
    fn step<R>(&self, step: impl FnOnce(&T) -> R) -> R {
        thread::yield_now();
        let result = step(&self.0);
        thread::yield_now();
        result
    }
}

impl Engine for Turns<MemoryEngine> {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, KvError> {
        self.step(|engine| engine.get(key))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, KvError> {
        self.step(|engine| engine.get_many(keys))
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, KvError> {
        self.step(|engine| engine.scan(scan))
    }

    fn apply(&self, batch: Batch) -> Result<(), KvError> {
        self.step(|engine| engine.apply(batch))
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), KvError>> {
        self.step(|engine| engine.apply_many(batches))
    }

    fn purge(&self) -> Result<(), KvError> {
        self.step(Engine::purge)
    }
}

impl Pin for Turns<MemoryPin> {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        self.step(|pin| pin.read(origin))
    }

    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced> {
        self.step(|pin| pin.advance(origin, from, to))
    }

    fn origins(&self) -> Result<Vec<String>, PinFailed> {
        self.step(Pin::origins)
    }

    fn probe(&self) -> Result<(), PinFailed> {
        self.step(Pin::probe)
    }
}

/// What all replicas share.
#[derive(Clone)]
struct Disk {
    engine: MemoryEngine,
    pin: MemoryPin,
    rules: Arc<Rules>,
    metrics: Metrics,
}

impl Disk {
    fn writer(&self, seed: u64) -> Writer {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(START_MS));
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(seed, Arc::clone(&clock)));
        let pin = Arc::new(Turns(self.pin.clone()));
        Writer {
            store: open_store(sealed(Turns(self.engine.clone())), &ids).unwrap(),
            kept: Arc::new(Kept::new(log_key(), pin, Cosigning::default())),
            rules: Arc::clone(&self.rules),
            clock,
            ids,
            proven: Proven::default(),
            metrics: self.metrics.clone(),
        }
    }

    fn append(&self, number: u64) -> Command {
        append(&parsed(&members(number)), number, &self.rules)
    }

    fn consume(&self, number: u64) -> Command {
        let actor = serde_json::json!({"actor": "urn:cl:policy-engine:x"});
        append(
            &parsed(&with(consumption(number), actor)),
            number,
            &self.rules,
        )
    }
}

fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// Commits a group until its commands are decided, and keeps what was acknowledged.
fn commit(writer: &Writer, group: &[Command], heard: &Mutex<Heard>) {
    let mut open: Vec<&Command> = group.iter().collect();
    while !open.is_empty() {
        let commands: Vec<_> = open.iter().map(|command| (*command).clone()).collect();
        let answers = writer.commit(&commands);
        let mut again = Vec::new();
        for (command, answer) in open.into_iter().zip(answers) {
            match answer {
                Ok(Answer::Entry(placed, proof)) => heard.lock().unwrap().entry(placed, &proof),
                Ok(_) => panic!("no entry"),
                Err(Error::ReplayConflict) => heard.lock().unwrap().conflicts += 1,
                Err(Error::Busy) => again.push(command),
                Err(error) => panic!("{error}"),
            }
        }
        open = again;
    }
}

#[derive(Default)]
struct Heard {
    /// Which receipt is at a place.
    placed: BTreeMap<u64, String>,
    conflicts: usize,
}

impl Heard {
    fn entry(&mut self, placed: Placed, proof: &str) {
        let at = verify_proof("acme", placed.entry.receipt.as_bytes(), proof);
        assert!(at.size() >= placed.sequence);
        let receipt_ref = placed.entry.receipt_ref;
        let before = self.placed.insert(placed.sequence, receipt_ref.clone());
        assert!(before.is_none_or(|before| before == receipt_ref));
    }
}

fn one_order(disk: &Disk) {
    let disk = Disk {
        engine: MemoryEngine::new(),
        pin: MemoryPin::default(),
        ..disk.clone()
    };
    let heard = Arc::new(Mutex::new(Heard::default()));
    // One operation comes from both, and both consume one bundle.
    let groups = [
        [vec![disk.append(1), disk.consume(2)], vec![disk.append(3)]],
        [vec![disk.append(3), disk.append(4)], vec![disk.consume(5)]],
    ];
    // A store that is new writes its keys first.
    let first = disk.writer(0);
    let replicas = groups.into_iter().zip(1..).map(|(groups, seed)| {
        let (disk, heard) = (disk.clone(), Arc::clone(&heard));
        thread::spawn(move || {
            let writer = disk.writer(seed);
            for group in groups {
                commit(&writer, &group, &heard);
            }
        })
    });
    let replicas: Vec<_> = replicas.collect();
    let mut size = 0;
    for _ in 0..3 {
        let shown = first.kept.shown(&*first.store, &acme(), size).unwrap();
        let now = shown.map_or(0, |tree| tree.size());
        assert!(size <= now, "what was shown is taken back");
        size = now;
    }
    for replica in replicas {
        replica.join().unwrap();
    }
    let heard = heard.lock().unwrap();
    assert_eq!(heard.conflicts, 1, "one of two consumptions");
    assert!(heard.placed.keys().copied().eq(1..=4));
    let reader = Reader::new(Arc::clone(&first.store), Arc::clone(&first.kept));
    let (progress, fault) = reader.begin_check(acme()).unwrap();
    assert_eq!(fault, None);
    let (progress, fault) = reader.check(progress).unwrap();
    assert_eq!((progress.checked(), fault), (4, None));
    for (sequence, receipt_ref) in &heard.placed {
        let entry = reader.entry(&acme(), *sequence).unwrap();
        assert_eq!(entry.receipt_ref, *receipt_ref);
    }
}

#[test]
fn in_no_order_is_an_acknowledged_entry_lost_or_a_bundle_consumed_twice() {
    let disk = Disk {
        engine: MemoryEngine::new(),
        pin: MemoryPin::default(),
        rules: Arc::new(rules(WRITERS)),
        metrics: Metrics::new(&telemetry().meter()),
    };
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    let random = disk.clone();
    Runner::new(RandomScheduler::new(ORDERS), config.clone()).run(move || one_order(&random));
    let few = PctScheduler::new(PREEMPTIONS, ORDERS);
    Runner::new(few, config).run(move || one_order(&disk));
}
