//! Appends at the receipt store's own API, the service below gRPC, against plain synced writes of
//! records of the same size.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cl_host::clock::{Clock, SystemClock};
use cl_host::identity::PeerId;
use cl_host::ids::{Ids, SystemIds};
use cl_host::life::{Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_kv::{Batch, Engine, RocksEngine, Sealed};
use cl_receipt_store::grpc::Service;
use cl_receipt_store::open_store;
use cl_receipt_store::pin::FolderPin;
use cl_wire::receipt::v1::AppendRequest;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tonic::Request;

use crate::FOLDER;
use crate::deployment::{
    ENGINE, default_retention, kek, log_key, no_readers, receipt_rules, spiffe,
};
use crate::documents::append;
use crate::floor::{Delayed, Open, stored};
use crate::report::{Goal, Row, quantile, start};

pub(crate) const CALLERS: usize = 64;
const ROUNDS: usize = 15;

/// Appends of one caller in a round.
const APPENDS: usize = 16;

/// What the goals presume that a sync costs.
pub(crate) const SLOW_SYNC: Duration = Duration::from_millis(1);

/// Both comparisons: on this disk, and on one whose syncs are slow enough for the goals to apply.
pub(crate) async fn rows(telemetry: &Telemetry, sync: Duration) -> Vec<Row> {
    let mut rows = compare(telemetry, Duration::ZERO, "").await;
    if sync < SLOW_SYNC {
        for row in &mut rows {
            let goal = row.goal.take().map(Goal::number);
            let goal = goal.unwrap_or_default();
            row.note = Some(format!(
                "the goal of {goal} is for syncs of 1 ms or more; here one costs {sync:.2?}"
            ));
        }
    }
    rows.extend(compare(telemetry, SLOW_SYNC, ", sync + 1 ms").await);
    rows
}

async fn compare(telemetry: &Telemetry, delay: Duration, suffix: &str) -> Vec<Row> {
    let folder = TempDir::new_in(FOLDER).expect("a folder");
    let open = |name: &str| {
        let path = folder.path().join(name);
        Delayed::new(RocksEngine::open(&path).expect("a store"), delay)
    };
    let appending = Appending::new(telemetry, open("receipts"), folder.path().join("pins"));
    let plain = Arc::new(open("plain"));
    let record_bytes = appending.record_bytes();
    appending.round(0).await;
    let (mut ours, mut single, mut batched) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        ours.push(appending.round(round).await);
        let writes = Writes {
            plain: Arc::clone(&plain),
            record_bytes,
            round,
        };
        single.push(writes.singly().await);
        let writes = Writes {
            plain: Arc::clone(&plain),
            record_bytes,
            round,
        };
        batched.push(writes.in_batches().await);
    }
    let ours = quantile(&mut ours, 0.5);
    let row = |goal, mut floor: Vec<Duration>, floor_is: &str| Row {
        name: format!("receipt append, {CALLERS} callers{suffix}"),
        goal: Some(Goal::AtLeast(goal)),
        ours: ours.into(),
        floor: quantile(&mut floor, 0.5).into(),
        floor_is: format!("{floor_is} of {record_bytes} bytes"),
        note: None,
    };
    vec![
        row(8.0, single, "one thread, a synced put for each record"),
        row(0.7, batched, "one thread, synced batches of 64 records"),
    ]
}

/// Plain writes, straight to the engine.
struct Writes {
    plain: Arc<Delayed>,
    record_bytes: usize,
    round: usize,
}

impl Writes {
    /// The time for a record, written alone.
    async fn singly(self) -> Duration {
        self.timed(2 * CALLERS, 1).await
    }

    /// The time for a record, written with 63 others.
    async fn in_batches(self) -> Duration {
        self.timed(APPENDS, CALLERS).await
    }

    async fn timed(self, batches: usize, size: usize) -> Duration {
        let written = tokio::task::spawn_blocking(move || {
            let record = stored(self.record_bytes);
            let start = start();
            for number in 0..batches {
                let batch = (0..size).fold(Batch::new(), |batch, index| {
                    let key = format!("{size}/{}/{number}/{index}", self.round);
                    batch.put(key, record.clone())
                });
                self.plain.apply(batch).expect("written");
            }
            start.elapsed()
        });
        let elapsed = written.await.expect("no panic");
        elapsed / u32::try_from(batches * size).expect("few")
    }
}

/// A receipt store without a network, and its caller.
pub(crate) struct Appending {
    service: Arc<Service>,
    shutdown: Shutdown,
    /// The engine, while it is open.
    open: Weak<Open>,
    caller: PeerId,
}

impl Appending {
    /// Takes up what the engine has, and starts.
    pub(crate) fn new(telemetry: &Telemetry, engine: Delayed, pins: PathBuf) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn Ids> = Arc::new(SystemIds::new(Arc::clone(&clock)));
        let random = Arc::new(ring::rand::SystemRandom::new());
        let open = engine.open();
        let sealed = Sealed::open(engine, kek(), random).expect("a sealed store");
        let shutdown = Shutdown::default();
        let service = cl_receipt_store::start(cl_receipt_store::Deps {
            store: open_store(sealed, &ids).expect("a receipt store"),
            pin: Arc::new(FolderPin::open(pins).expect("a pin folder")),
            adopts_lost_pins: false,
            cosigning: cl_receipt_store::cosigning::Cosigning::default(),
            log_key: log_key(),
            rules: receipt_rules(),
            readers: no_readers(),
            retention: default_retention(),
            clock,
            ids,
            meter: telemetry.meter(),
            tasks: Tasks::new(shutdown.clone()),
            shutdown: shutdown.clone(),
            sweep_interval: Duration::from_secs(1),
            retention_interval: Duration::from_secs(60),
            max_clock_step: Duration::from_secs(60),
        });
        let service = service.expect("a service");
        Self {
            service: Arc::new(service),
            shutdown,
            open,
            caller: PeerId {
                id: spiffe(ENGINE),
                serial: "01".to_owned(),
                thumbprint: [1; 32],
                not_before_unix_s: 0,
                not_after_unix_s: i64::MAX,
            },
        }
    }

    /// The size of a receipt as it is sent: the least that a store of receipts must write.
    fn record_bytes(&self) -> usize {
        match append(0).body {
            Some(Body::Members(members)) => members.len(),
            Some(Body::ConsumerReceipt(_)) | None => 0,
        }
    }

    fn call(&self, message: AppendRequest) -> Request<AppendRequest> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(self.caller.clone());
        request
    }

    /// Appends one receipt.
    pub(crate) async fn append(&self, number: u64) {
        let call = self.call(append(number));
        self.service.append(call).await.expect("appended");
    }

    /// The time for an append, while all callers append one receipt after the other.
    async fn round(&self, round: usize) -> Duration {
        let first = round * CALLERS * APPENDS;
        let (elapsed, _) = self.burst(first as u64, CALLERS, APPENDS).await;
        elapsed / u32::try_from(CALLERS * APPENDS).expect("few")
    }

    /// The time that so many callers take for so many appends each, and the times of all appends.
    pub(crate) async fn burst(
        &self,
        first: u64,
        callers: usize,
        appends: usize,
    ) -> (Duration, Vec<Duration>) {
        let calls: Vec<Vec<_>> = (0..callers)
            .map(|caller| {
                let first = first + (caller * appends) as u64;
                (first..first + appends as u64)
                    .map(|number| self.call(append(number)))
                    .collect()
            })
            .collect();
        let mut running = JoinSet::new();
        let whole = start();
        for calls in calls {
            let service = Arc::clone(&self.service);
            running.spawn(async move {
                let mut times = Vec::with_capacity(calls.len());
                for call in calls {
                    let one = start();
                    service.append(call).await.expect("appended");
                    times.push(one.elapsed());
                }
                times
            });
        }
        let times = running.join_all().await.concat();
        (whole.elapsed(), times)
    }

    /// Ends the store and waits until it has let go of its folder.
    pub(crate) async fn end(self) {
        self.shutdown.request();
        drop(self.service);
        while self.open.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
