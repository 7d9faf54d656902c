//! What a log costs as it grows: appends, a restart, and the portable format beside it.

use std::path::Path;
use std::time::Duration;

use cl_host::telemetry::Telemetry;
use cl_kv::RocksEngine;
use cl_model::log::LogState;
use cl_model::record::Record;
use cl_wire::receipt::v1::append_request::Body;
use tempfile::TempDir;

use crate::FOLDER;
use crate::appends::{Appending, CALLERS, SLOW_SYNC};
use crate::documents::append;
use crate::floor::Delayed;
use crate::report::{Goal, Row, quantile, start};

/// Receipts of the large log, and of those that it is compared with.
const LARGE: usize = 1_000_000;
const SMALL: usize = 1_000;
const MIDDLE: usize = 10_000;

/// Callers that fill a log, as many as one group takes, and how much each does at once.
const FILLERS: usize = 128;
const FILL: usize = 8;

/// Appends of one caller in a turn.
const APPENDS: usize = 8;
const TURNS: usize = 9;
const RESTARTS: usize = 7;

/// Sizes of portable logs.
const PORTABLE: [usize; 3] = [100, 1_000, 2_000];

pub(crate) async fn rows(telemetry: &Telemetry, sync: Duration) -> Vec<Row> {
    let mut rows = latency(telemetry, sync).await;
    rows.extend(portable(telemetry).await);
    rows.extend(growth(telemetry).await);
    rows
}

/// A store in a folder, and how many receipts it has.
struct Grown<'a> {
    telemetry: &'a Telemetry,
    folder: TempDir,
    size: usize,
}

impl<'a> Grown<'a> {
    async fn new(telemetry: &'a Telemetry, size: usize) -> Self {
        let grown = Self {
            telemetry,
            folder: TempDir::new_in(FOLDER).expect("a folder"),
            size,
        };
        let store = grown.open(Duration::ZERO);
        let mut filled = 0;
        while filled < size {
            store.burst(filled as u64, FILLERS, FILL).await;
            filled += FILLERS * FILL;
        }
        store.end().await;
        grown
    }

    fn open(&self, delay: Duration) -> Appending {
        opened(self.telemetry, self.folder.path(), delay)
    }

    /// The first number that no receipt has.
    fn next(&self, turn: usize) -> u64 {
        let filled = self.size.next_multiple_of(FILLERS * FILL);
        (filled + turn * CALLERS * APPENDS) as u64
    }

    /// The time for an append among many, a turn at a time.
    async fn appends(&self, store: &Appending, turn: usize) -> Duration {
        let (elapsed, _) = store.burst(self.next(turn), CALLERS, APPENDS).await;
        elapsed / u32::try_from(CALLERS * APPENDS).expect("few")
    }

    /// The time from an end to the first acknowledgement after it.
    async fn restart(&self, number: u64) -> Duration {
        let start = start();
        let store = self.open(Duration::ZERO);
        store.append(number).await;
        let elapsed = start.elapsed();
        store.end().await;
        elapsed
    }
}

fn opened(telemetry: &Telemetry, folder: &Path, delay: Duration) -> Appending {
    let engine = RocksEngine::open(&folder.join("receipts")).expect("a store");
    Appending::new(telemetry, Delayed::new(engine, delay), folder.join("pins"))
}

/// The time from call to acknowledgement, while all callers call.
async fn latency(telemetry: &Telemetry, sync: Duration) -> Vec<Row> {
    let mut rows = Vec::new();
    for (delay, suffix) in [(Duration::ZERO, ""), (SLOW_SYNC, ", sync + 1 ms")] {
        let folder = TempDir::new_in(FOLDER).expect("a folder");
        let store = opened(telemetry, folder.path(), delay);
        store.burst(0, CALLERS, APPENDS).await;
        let mut times = Vec::new();
        for turn in 1..=TURNS {
            let first = (turn * CALLERS * APPENDS) as u64;
            times.extend(store.burst(first, CALLERS, APPENDS).await.1);
        }
        store.end().await;
        let floor = sync + delay;
        let applies = floor >= SLOW_SYNC;
        rows.push(Row {
            name: format!("receipt append p50, {CALLERS} callers{suffix}"),
            goal: applies.then_some(Goal::AtMost(12.0)),
            ours: quantile(&mut times, 0.5).into(),
            floor: floor.into(),
            floor_is: "one fdatasync".to_owned(),
            note: None,
        });
    }
    rows
}

/// Appends and restarts of a large log beside those of a small one.
async fn growth(telemetry: &Telemetry) -> Vec<Row> {
    let large = Grown::new(telemetry, LARGE).await;
    let middle = Grown::new(telemetry, MIDDLE).await;
    let (mut restarts, mut restarts_of_middle) = (Vec::new(), Vec::new());
    for number in 0..RESTARTS as u64 {
        // Numbers far behind those of the turns below.
        let number = (2 * LARGE) as u64 + number;
        restarts.push(large.restart(number).await);
        restarts_of_middle.push(middle.restart(number).await);
    }
    let (mut appends, mut appends_to_small) = (Vec::new(), Vec::new());
    let store = large.open(Duration::ZERO);
    for turn in 0..TURNS {
        let small = Grown::new(telemetry, SMALL).await;
        let small_store = small.open(Duration::ZERO);
        appends.push(large.appends(&store, turn).await);
        appends_to_small.push(small.appends(&small_store, 0).await);
        small_store.end().await;
    }
    store.end().await;
    let row = |name: String, goal, mut ours: Vec<Duration>, mut floor: Vec<Duration>, size| Row {
        name,
        goal: Some(Goal::AtMost(goal)),
        ours: quantile(&mut ours, 0.5).into(),
        floor: quantile(&mut floor, 0.5).into(),
        floor_is: format!("the same with {size} receipts"),
        note: None,
    };
    vec![
        row(
            format!("receipt append, {LARGE} receipts there"),
            1.3,
            appends,
            appends_to_small,
            SMALL,
        ),
        row(
            format!("restart to first append, {LARGE} receipts"),
            1.5,
            restarts,
            restarts_of_middle,
            MIDDLE,
        ),
    ]
}

/// The portable format verifies all of a file before it appends.
async fn portable(telemetry: &Telemetry) -> Vec<Row> {
    let folder = TempDir::new_in(FOLDER).expect("a folder");
    let store = opened(telemetry, folder.path(), Duration::ZERO);
    let mut rows = Vec::new();
    for (turn, size) in PORTABLE.into_iter().enumerate() {
        let mut state = LogState::empty();
        let mut log = String::new();
        for number in 0..size as u64 {
            log += &state.append(&receipt(number)).expect("a receipt");
        }
        let next = receipt(size as u64);
        let (mut times, mut ours) = (Vec::new(), Vec::new());
        for number in 0..TURNS {
            let portable = start();
            let mut state = LogState::verify(log.as_bytes()).expect("a log");
            let line = state.append(&next).expect("a receipt");
            times.push(portable.elapsed());
            assert!(!line.is_empty());
            let own = start();
            store.append((turn * TURNS + number) as u64).await;
            ours.push(own.elapsed());
        }
        rows.push(Row {
            name: format!("portable log append, {size} receipts there"),
            goal: None,
            ours: quantile(&mut times, 0.5).into(),
            floor: quantile(&mut ours, 0.5).into(),
            floor_is: "one caller's append to the receipt store, durable".to_owned(),
            note: None,
        });
    }
    store.end().await;
    rows
}

/// The receipt of an append, whole.
fn receipt(number: u64) -> Record {
    let Some(Body::Members(members)) = append(number).body else {
        panic!("members");
    };
    let members = serde_json::from_slice(&members).expect("members");
    let (record, _) = cl_model::receipt::finalize(members).expect("a receipt");
    record
}
