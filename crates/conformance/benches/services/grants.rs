//! The whole exchange over real processes: submit, redeem, open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cl_model::canonical;
use cl_model::key::SigningKey;
use cl_sdk::{Client, ClientConfig, Credential};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::FOLDER;
use crate::deployment::{Authority, ENGINE, GATEWAY, channel, signing_key};
use crate::documents::now;
use crate::floor::{Hop, Once, Plain, Sizes, turn};
use crate::memory;
use crate::processes::{Deployment, PROCESSES};
use crate::report::{Goal, Measure, Row, quantile, start};

const GOAL: f64 = 2.0;
const WARM_UP: usize = 20;

/// Grants of both sides altogether, of one client and of many.
const GRANTS: usize = 300;
const MANY_GRANTS: usize = 1280;
const MANY_CLIENTS: usize = 32;

/// Grants of each client between two turns.
const GRANTS_IN_TURN: usize = 10;

/// Documents that one grant signs: scope statement, plan, bundle and notes.
const SIGNATURES: u64 = 4;

/// Signatures that one grant verifies: the tokens of four calls; the plan by vault, proxy and
/// issuer, the scope statement by the issuer; what the recipient opens, three documents.
const VERIFICATIONS: u64 = 11;
const SIGNED_BYTES: usize = 1500;

/// The messages of a hop, both ways.
const MESSAGE: Sizes = Sizes {
    request: 1500,
    answer: 1500,
};

/// A mailbox of fixtures, whose owner is [`OWNER`].
const MAILBOX: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../conformance/fixtures/mail/lantern.mbox"
);
const OWNER: &str = "mira@solberg.example";

const AGENT: &str = "urn:cl:agent:demo";
const MODEL: &str = "urn:cl:model:demo";

pub(crate) async fn rows() -> Vec<Row> {
    let folder = TempDir::new_in(FOLDER).expect("a folder");
    let deployment = Deployment::start_in(folder, "info", |_| ()).await;
    let memory_at_start = memory(&deployment);
    deployment.clctl(&["capture", "mail", MAILBOX, "--owner-address", OWNER]);
    let grants = Grants::of(&deployment);
    grants.turn(1, WARM_UP).await;
    let before = Counted::now(&deployment);
    grants.turn(1, WARM_UP).await;
    let path = Counted::now(&deployment)
        .since(&before)
        .each(WARM_UP as u64);
    println!("a grant: {path}");
    let floor = Floor::start(&deployment, &path).await;
    turn(&floor, 1, WARM_UP).await;

    let mut rows = Vec::new();
    for (clients, total) in [(1, GRANTS), (MANY_CLIENTS, MANY_GRANTS)] {
        let (mut our_times, mut floor_times) = (Vec::new(), Vec::new());
        for _ in 0..total / clients / GRANTS_IN_TURN {
            our_times.extend(grants.turn(clients, GRANTS_IN_TURN).await);
            floor_times.extend(turn(&floor, clients, GRANTS_IN_TURN).await);
        }
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            rows.push(Row {
                name: format!("grant, {clients} clients, {name}"),
                goal: Some(Goal::AtMost(GOAL)).filter(|_| share == 0.5),
                ours: quantile(&mut our_times, share).into(),
                floor: quantile(&mut floor_times, share).into(),
                floor_is: path.to_string(),
                note: None,
            });
        }
    }
    rows.extend(memory(&deployment).into_iter().map(|(name, peak)| Row {
        name: format!("{name}, peak memory"),
        goal: None,
        ours: Measure::Bytes(peak),
        floor: Measure::Bytes(memory_at_start[name]),
        floor_is: "the same process after its start".to_owned(),
        note: None,
    }));
    rows
}

fn memory(deployment: &Deployment) -> BTreeMap<&'static str, u64> {
    let peaks = PROCESSES.map(|(name, _)| {
        let peak = memory::peak(deployment.pid(name));
        (name, peak.expect("a running process"))
    });
    peaks.into()
}

/// Requesters and recipients of a deployment.
struct Grants {
    requester: Client,
    recipient: Client,
    example: Value,
    numbers: Arc<AtomicU64>,
}

impl Grants {
    fn of(deployment: &Deployment) -> Self {
        let example = deployment.home().join("examples/request.json");
        let example = std::fs::read(example).expect("an example");
        Self {
            requester: client(deployment, AGENT, "context.request"),
            recipient: client(deployment, MODEL, "context.redeem receipt.write"),
            example: serde_json::from_slice(&example).expect("JSON"),
            numbers: Arc::default(),
        }
    }

    /// The times of this many clients, each of which goes through a few exchanges.
    async fn turn(&self, clients: usize, grants: usize) -> Vec<Duration> {
        let mut running = JoinSet::new();
        for _ in 0..clients {
            let (requester, recipient) = (self.requester.clone(), self.recipient.clone());
            let requests: Vec<_> = (0..grants).map(|_| self.request()).collect();
            running.spawn(async move {
                let mut times = Vec::with_capacity(grants);
                for request in requests {
                    let start = start();
                    exchange(&requester, &recipient, request).await;
                    times.push(start.elapsed());
                }
                times
            });
        }
        running.join_all().await.concat()
    }

    fn request(&self) -> Vec<u8> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut request = self.example.clone();
        request["id"] = json!(format!("urn:cl:request:bench-{number}"));
        request["created_at"] = json!(now().to_string());
        request["expires_at"] = json!(now().plus_seconds(3600).to_string());
        canonical::to_text(&request).into_bytes()
    }
}

/// From a request to facts in the recipient's hands.
async fn exchange(requester: &Client, recipient: &Client, request: Vec<u8>) {
    let mut status = requester.submit(request).await.expect("decided");
    let bundle = loop {
        if let Some(bundle) = status.bundle_ref {
            break bundle;
        }
        assert_eq!(status.failure_code, None);
        tokio::time::sleep(Duration::from_millis(1)).await;
        status = requester.status(&status.request_ref).await.expect("known");
    };
    let (_, key) = bundle.rsplit_once(':').expect("a URN");
    let delivery = recipient.redeem(&bundle, key).await.expect("redeemed");
    recipient.open(&delivery).await.expect("opened");
}

fn client(deployment: &Deployment, principal: &str, scope: &str) -> Client {
    let minted = deployment.clctl(&[
        "token", "mint", "--sub", principal, "--scope", scope, "--ttl", "2h",
    ]);
    let file = |name: &str| std::fs::read(deployment.home().join(name)).expect("a file");
    Client::connect(ClientConfig {
        gateway: deployment.gateway_url(),
        authorities_pem: file("pki/ca.pem"),
        credential: Credential::bearer(minted["access_token"].as_str().expect("a token")),
        recipient: principal.to_owned(),
        trust: file("trust.json"),
    })
    .expect("a client")
}

/// What the processes say that they did.
#[derive(Clone, Copy)]
struct Counted {
    calls: u64,
    synced_batches: u64,
    synced_bytes: u64,
}

impl Counted {
    fn now(deployment: &Deployment) -> Self {
        let metrics: String = PROCESSES.map(|(name, _)| deployment.metrics(name)).concat();
        let sum = |name: &str, label: &str| {
            let lines = metrics.lines().filter(|line| {
                line.starts_with(name) && line.contains(label) && !line.contains("grpc.health")
            });
            let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.sum::<f64>() as u64
        };
        Self {
            calls: sum("rpc_server_calls_total{", ""),
            synced_batches: sum("storage_batches_total{", r#"synced="true""#),
            synced_bytes: sum("storage_written_bytes_total{", r#"synced="true""#),
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            synced_batches: self.synced_batches - before.synced_batches,
            synced_bytes: self.synced_bytes - before.synced_bytes,
        }
    }

    /// The share of each of so many grants, rounded.
    fn each(self, grants: u64) -> Self {
        let share = |sum: u64| (sum + grants / 2) / grants;
        Self {
            calls: share(self.calls),
            synced_batches: share(self.synced_batches),
            synced_bytes: share(self.synced_bytes),
        }
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} hops, {} synced writes of {} bytes in all, {SIGNATURES} signatures, \
             {VERIFICATIONS} verifications",
            self.calls, self.synced_batches, self.synced_bytes
        )
    }
}

/// The primitives of one grant, one after the other.
#[derive(Clone)]
struct Floor {
    hop: Hop,
    calls: u64,
    disk: Plain,
    key: Arc<SigningKey>,
}

impl Floor {
    async fn start(deployment: &Deployment, path: &Counted) -> Self {
        let authority = Authority::new();
        let client = authority.credentials(GATEWAY);
        let hop = Hop::start(MESSAGE, authority.credentials(ENGINE), |port| {
            channel(port, client, ENGINE)
        });
        let writes = usize::try_from(path.synced_batches).expect("few");
        let bytes = usize::try_from(path.synced_bytes / path.synced_batches).expect("small");
        let folder = deployment.home().join("data/plain");
        Self {
            hop: hop.await,
            calls: path.calls,
            disk: Plain::open(&folder, writes, bytes),
            key: Arc::new(signing_key()),
        }
    }
}

impl Once for Floor {
    async fn once(&mut self) {
        for _ in 0..self.calls {
            self.hop.call().await;
        }
        let (message, key) = ([7; SIGNED_BYTES], self.key.public_key());
        let signature = self.key.sign(&message);
        for _ in 1..SIGNATURES {
            std::hint::black_box(self.key.sign(&message));
        }
        for _ in 0..VERIFICATIONS {
            assert!(key.verifies(&message, &signature));
        }
        self.disk.write().await;
    }
}
