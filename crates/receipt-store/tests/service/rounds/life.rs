//! One life of the store in a round: from a start on what is there to the end or a kill.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::{Clock, ManualClock};
use cl_host::ids::{Ids, SeededIds};
use cl_host::life::{Shutdown, Tasks};
use cl_kv::Engine;
use cl_model::leaf;
use cl_receipt_store::check::Inconsistent;
use cl_receipt_store::core::command::{Command, Rules};
use cl_receipt_store::core::readers::Readers;
use cl_receipt_store::core::retention::Retention;
use cl_receipt_store::core::routing::Tenant;
use cl_receipt_store::core::writers::Writers;
use cl_receipt_store::cosigning::Cosigning;
use cl_receipt_store::error::Error;
use cl_receipt_store::grpc::Service;
use cl_receipt_store::http::File;
use cl_receipt_store::pin::Pin;
use cl_receipt_store::readers::ReadersFile;
use cl_receipt_store::{BuildError, Deps, open_store, start};
use cl_testbed::{TRUST_DOMAIN, spiffe_id, telemetry, within};
use cl_tlog::SignedCheckpoint;

use super::schedule::{CLOCK_MS, Call, Heard, Random, TENANTS};
use crate::failpoints::{Failing, FailingPin, Failpoints};
use crate::support::{READERS, RETENTION, START_MS, STORE, WRITERS, log_key, try_sealed};

/// Longer than any round: deadlines are looked at by calls alone, so that a seed fixes all steps.
const NO_SWEEP: Duration = Duration::from_secs(3600);

const MAX_BATCHES: u64 = 8;
const MAX_CALLERS: u64 = 8;

/// What outlives the store.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) pin: Arc<dyn Pin>,
}

/// A store without a network before it.
pub(crate) struct Store {
    pub(crate) service: Arc<Service>,
    pub(crate) clock: ManualClock,
    shutdown: Shutdown,
}

impl Store {
    /// Starts on a disk. `life` must be another one for each start: random numbers come from it.
    pub(crate) fn start(
        disk: &Disk,
        points: &Arc<Failpoints>,
        life: u64,
    ) -> Result<Self, BuildError> {
        let clock = ManualClock::new(START_MS);
        let injected: Arc<dyn Clock> = Arc::new(clock.clone());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(life, Arc::clone(&injected)));
        let engine = Failing {
            engine: Arc::clone(&disk.engine),
            points: Arc::clone(points),
        };
        let shutdown = Shutdown::default();
        let service = start(Deps {
            store: open_store(try_sealed(engine).map_err(Error::from)?, &ids)?,
            pin: Arc::new(FailingPin {
                pin: Arc::clone(&disk.pin),
                points: Arc::clone(points),
            }),
            adopts_lost_pins: false,
            cosigning: Cosigning::default(),
            log_key: log_key(),
            rules: Rules {
                own_id: spiffe_id(STORE).parse().unwrap(),
                writers: Writers::parse(WRITERS.as_bytes()).unwrap(),
            },
            readers: ReadersFile::fixed(Readers::parse(READERS.as_bytes()).unwrap()),
            retention: Arc::new(Retention::parse(RETENTION.as_bytes()).unwrap()),
            clock: injected,
            ids,
            meter: telemetry().meter(),
            shutdown: shutdown.clone(),
            tasks: Tasks::new(shutdown.clone()),
            sweep_interval: NO_SWEEP,
            retention_interval: NO_SWEEP,
            max_clock_step: NO_SWEEP,
        })?;
        Ok(Self {
            service: Arc::new(service),
            clock,
            shutdown,
        })
    }

    /// Ends it and waits until it writes no more.
    pub(crate) async fn end(self) {
        self.shutdown.request();
        let commits = &self.service.commits;
        let ended = async { while commits.submit(probe()).await.is_ok() {} };
        within("the committer's end", ended).await;
    }

    /// Calls at once, in the order given, and what came of them in that order.
    async fn call(&self, calls: Vec<Call>, disk: &Disk) -> Vec<Heard> {
        let now_ms = self.clock.now_unix_ms();
        let running: Vec<_> = calls
            .into_iter()
            .map(|call| (call, tokio::spawn(call.run(Arc::clone(&self.service)))))
            .collect();
        let mut heard = Vec::new();
        for (call, answer) in running {
            let answer = within("a call", answer).await.unwrap();
            heard.push(Heard::Answer {
                call,
                now_ms,
                answer: answer.map_err(|status| cl_wire::status::reason(&status).unwrap()),
                pinned: pinned(disk, call.tenant()),
            });
        }
        heard
    }

    /// Reads the checkpoint of a log, if there is one to be had.
    pub(crate) async fn checkpoint(&self, tenant: &'static str) -> Option<String> {
        let reader = self.service.reader.clone();
        let file = tokio::task::spawn_blocking(move || {
            let tenant = Tenant::parse(tenant).unwrap();
            reader.file(&tenant, "checkpoint")
        });
        match within("a read", file).await.unwrap() {
            Ok(Some(File::Checkpoint(text))) => Some(text),
            Ok(_) | Err(Error::Unavailable(_) | Error::Unpinned(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many entries of a tenant's log are pinned.
fn pinned(disk: &Disk, tenant: &str) -> u64 {
    let origin = leaf::origin(TRUST_DOMAIN, tenant);
    disk.pin.read(&origin).unwrap().map_or(0, |text| {
        let signed = SignedCheckpoint::parse(text.as_bytes()).unwrap();
        signed.checkpoint().size()
    })
}

/// Lives until the end of the schedule, or until the plan ends it. All that is heard is told at
/// once.
pub(crate) async fn live(
    disk: &Disk,
    points: &Arc<Failpoints>,
    (seed, life): (u64, u64),
    tell: &mut impl FnMut(Heard),
) {
    match Store::start(disk, points, seed << 8 | life) {
        Ok(store) => {
            serve(&store, disk, points, Random::new(seed, life), tell).await;
            tell_faults(points, tell);
            store.end().await;
        }
        Err(
            BuildError::Store(Error::Unavailable(_) | Error::Unpinned(_))
            | BuildError::Inconsistent(Inconsistent::Unreadable(
                Error::Unavailable(_) | Error::Unpinned(_),
            )),
        ) => tell_faults(points, tell),
        Err(error) => panic!("{error}"),
    }
}

fn tell_faults(points: &Failpoints, tell: &mut impl FnMut(Heard)) {
    for action in points.done() {
        tell(Heard::Fault(format!("{action:?}")));
    }
}

async fn serve(
    store: &Store,
    disk: &Disk,
    points: &Failpoints,
    mut random: Random,
    tell: &mut impl FnMut(Heard),
) {
    // The committer looks at deadlines once when it starts; after that, only calls make steps.
    tokio::task::yield_now().await;
    store.call(vec![Call::PREFLIGHT], disk).await;
    let mut failed = Vec::new();
    for _ in 0..=random.below(MAX_BATCHES) {
        let jump = random.below(CLOCK_MS);
        store.clock.set(START_MS + i64::try_from(jump).unwrap());
        let any = (0..=random.below(MAX_CALLERS)).map(|_| Call::any(&mut random));
        let mut calls: Vec<_> = any.collect();
        // Who was told to come back often does so before anybody else calls.
        if !failed.is_empty() && random.below(2) == 0 {
            calls = mem::take(&mut failed);
        }
        for heard in store.call(calls, disk).await {
            failed.extend(heard.failed());
            tell(heard);
        }
        if random.below(3) == 0 {
            let tenant = TENANTS[usize::try_from(random.below(2)).unwrap()];
            if let Some(text) = store.checkpoint(tenant).await {
                let tenant = tenant.to_owned();
                tell(Heard::Checkpoint { tenant, text });
            }
        }
        if points.is_dead() {
            break;
        }
    }
}

fn probe() -> Command {
    Command::Probe(Tenant::parse("acme").unwrap())
}
