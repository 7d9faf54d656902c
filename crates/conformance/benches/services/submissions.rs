//! Submissions over mutual TLS, both services on RocksDB, against the primitives of their path.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cl_host::telemetry::Telemetry;
use cl_model::key::SigningKey;
use cl_wire::policy::v1::RequestState;
use prost::Message;
use tokio::task::JoinSet;

use crate::deployment::{Deployment, ENGINE, GATEWAY, STORE, channel, signing_key};
use crate::documents::{append, now, submission};
use crate::floor::{Hop, Once, Overwritten, Plain, Sizes, turn};
use crate::report::{Goal, Row, quantile, start};

/// By share of the calls.
const GOALS: [(&str, f64, f64); 2] = [("p50", 0.5, 1.5), ("p99", 0.99, 2.0)];
const WARM_UP: usize = 200;

/// Calls that both sides make altogether, of one client and of many.
const CALLS: usize = 1000;
const MANY_CALLS: usize = 6400;
const MANY_CLIENTS: usize = 32;

/// Calls of each client between two turns.
const CALLS_IN_TURN: usize = 10;

/// A submission that is allowed signs a scope statement and a plan, and its receipt a checkpoint.
const SIGNATURES: usize = 3;
const SIGNED_BYTES: usize = 1500;

/// Answers of the receipt store: to a preflight, and the log entry of an append.
const PREFLIGHT: Sizes = Sizes {
    request: 22,
    answer: 2,
};
const APPEND_ANSWER_BYTES: usize = 200;

pub(crate) async fn rows(telemetry: &Telemetry) -> Vec<Row> {
    let deployment = Deployment::start(telemetry).await;
    let ours = Submissions {
        deployment: &deployment,
        numbers: AtomicU64::new(1),
    };
    let answer_bytes = ours.one().await;
    deployment.store_writes.take();
    deployment.engine_writes.take();
    let before = start();
    for _ in 0..WARM_UP {
        ours.one().await;
    }
    println!(
        "warm-up: {:.2?} a submission",
        before.elapsed() / WARM_UP as u32
    );
    let counted = Counted::of(&deployment);
    let floor = Floor::start(&deployment, &counted, answer_bytes).await;
    turn(&floor, 1, WARM_UP).await;
    let mut rows = Vec::new();
    for (clients, calls) in [(1, CALLS), (MANY_CLIENTS, MANY_CALLS)] {
        let (mut our_times, mut floor_times) = (Vec::new(), Vec::new());
        for _ in 0..calls / clients / CALLS_IN_TURN {
            our_times.extend(ours.turn(clients).await);
            floor_times.extend(turn(&floor, clients, CALLS_IN_TURN).await);
        }
        for (name, share, goal) in GOALS {
            rows.push(Row {
                name: format!("SubmitRequest, {clients} clients, {name}"),
                goal: Some(Goal::AtMost(goal)),
                ours: quantile(&mut our_times, share).into(),
                floor: quantile(&mut floor_times, share).into(),
                floor_is: counted.to_string(),
                note: None,
            });
        }
    }
    rows
}

/// What one submission writes, as the engines under both services counted it.
struct Counted {
    store_writes: usize,
    store_bytes: usize,
    engine_writes: usize,
    engine_bytes: usize,
}

impl Counted {
    fn of(deployment: &Deployment) -> Self {
        let per_call = |(batches, bytes): (u64, usize)| {
            let calls = WARM_UP as f64;
            ((batches as f64 / calls).round() as usize, bytes)
        };
        let (store_writes, store_bytes) = per_call(deployment.store_writes.take());
        let (engine_writes, engine_bytes) = per_call(deployment.engine_writes.take());
        Self {
            store_writes,
            store_bytes,
            engine_writes,
            engine_bytes,
        }
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "3 hops, {} + {} synced writes, 1 synced pin, {SIGNATURES} signatures",
            self.engine_writes, self.store_writes
        )
    }
}

/// Clients that submit fresh requests.
struct Submissions<'a> {
    deployment: &'a Deployment,
    numbers: AtomicU64,
}

impl Submissions<'_> {
    /// Submits once, and gives the size of the answer.
    async fn one(&self) -> usize {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut policy = self.deployment.policy.clone();
        let answer = policy.submit_request(submission(number, now())).await;
        let answer = answer.expect("decided").into_inner();
        let state = answer.status.as_ref().map(|status| status.state());
        assert_eq!(state, Some(RequestState::Decided));
        answer.encoded_len()
    }

    /// The times of this many clients, each of which submits a few requests.
    async fn turn(&self, clients: usize) -> Vec<Duration> {
        let mut running = JoinSet::new();
        for _ in 0..clients {
            let first = self
                .numbers
                .fetch_add(CALLS_IN_TURN as u64, Ordering::Relaxed);
            let mut policy = self.deployment.policy.clone();
            running.spawn(async move {
                let mut times = Vec::with_capacity(CALLS_IN_TURN);
                for number in first..first + CALLS_IN_TURN as u64 {
                    let message = submission(number, now());
                    let start = start();
                    policy.submit_request(message).await.expect("decided");
                    times.push(start.elapsed());
                }
                times
            });
        }
        running.join_all().await.concat()
    }
}

/// The primitives of one submission, one after the other.
#[derive(Clone)]
struct Floor {
    submit: Hop,
    preflight: Hop,
    append: Hop,
    store: Plain,
    engine: Plain,
    pin: Overwritten,
    key: Arc<SigningKey>,
}

impl Floor {
    async fn start(deployment: &Deployment, counted: &Counted, answer_bytes: usize) -> Self {
        let authority = &deployment.authority;
        let hop = async |sizes, server, client| {
            let client = authority.credentials(client);
            Hop::start(sizes, authority.credentials(server), |port| {
                channel(port, client, server)
            })
            .await
        };
        let submit = Sizes {
            request: submission(0, now()).encoded_len(),
            answer: answer_bytes,
        };
        let appended = Sizes {
            request: append(0).encoded_len(),
            answer: APPEND_ANSWER_BYTES,
        };
        let plain = |name: &str, writes, bytes| {
            Plain::open(&deployment.folder.path().join(name), writes, bytes)
        };
        Self {
            submit: hop(submit, ENGINE, GATEWAY).await,
            preflight: hop(PREFLIGHT, STORE, ENGINE).await,
            append: hop(appended, STORE, ENGINE).await,
            store: plain("plain-receipts", counted.store_writes, counted.store_bytes),
            engine: plain("plain-policy", counted.engine_writes, counted.engine_bytes),
            pin: Overwritten::create(&deployment.folder.path().join("plain-pin")),
            key: Arc::new(signing_key()),
        }
    }
}

impl Once for Floor {
    async fn once(&mut self) {
        self.submit.call().await;
        self.preflight.call().await;
        for _ in 0..SIGNATURES {
            std::hint::black_box(self.key.sign(&[7; SIGNED_BYTES]));
        }
        self.append.call().await;
        self.engine.write().await;
        self.store.write().await;
        self.pin.write().await;
    }
}
