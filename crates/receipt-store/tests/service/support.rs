//! A deployment around one receipt store, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::clock::{Clock, ManualClock};
use cl_host::ids::{Ids, SystemIds};
use cl_host::life::{Shutdown, Tasks};
use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::key::{Seed, SigningKey};
use cl_model::leaf::{self, Salt};
use cl_model::scalar::KeyId;
use cl_receipt_store::core::command::Rules;
use cl_receipt_store::core::readers::Readers;
use cl_receipt_store::core::retention::Retention;
use cl_receipt_store::core::trees::LogKey;
use cl_receipt_store::core::writers::Writers;
use cl_receipt_store::error::Error;
use cl_receipt_store::readers::ReadersFile;
use cl_receipt_store::store::Store;
use cl_receipt_store::{BuildError, Deps, assemble, open_store};
use cl_testbed::{Authority, HANG, Serving, TRUST_DOMAIN, channel, spiffe_id, telemetry};
use cl_tlog::{Algorithm, Checkpoint, Hash, KeyName, ProofFile, VerifierKey, Witnesses};
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{
    ListOpenRequest, ListOpenResponse, VerifyLogRequest, VerifyLogResponse,
};
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

use crate::failpoints::{Failing, FailingPin, Failpoints, MemoryPin};
use crate::witnesses::TestWitnesses;

pub(crate) type Client = ReceiptServiceClient<PeerChannel>;

pub(crate) const STORE: &str = "exchange/cl-receipt-store";
pub(crate) const ENGINE: &str = "exchange/cl-policy-engine";
pub(crate) const ISSUER: &str = "exchange/cl-bundle-issuer";
pub(crate) const GATEWAY: &str = "edge/cl-gateway";
pub(crate) const AUDITOR: &str = "auditor/ann";
pub(crate) const OPERATOR: &str = "operator/olga";

pub(crate) const START_MS: i64 = 1_900_000_000_000;

pub(crate) const WRITERS: &str = r#"{"writers_version":1,"writers":{
    "spiffe://example.org/exchange/cl-policy-engine":{
        "actors":["urn:cl:policy-engine:*","spiffe://*"],
        "operations":["policy.*","bundle.consume","operation.*"],
        "consumer_operations":[]},
    "spiffe://example.org/exchange/cl-bundle-issuer":{
        "actors":["urn:cl:bundle-issuer:*"],
        "operations":["bundle.issue"],
        "consumer_operations":["bundle.consume"]}}}"#;

/// Some see all, so that tests of other things can; the others have one role each.
pub(crate) const READERS: &str = r#"{"readers_version":1,"readers":{
    "spiffe://example.org/auditor/ann":[{"role":"auditor","tenant":"*"}],
    "spiffe://example.org/edge/cl-gateway":[{"role":"auditor","tenant":"*"}],
    "spiffe://example.org/auditor/bob":[{"role":"auditor","tenant":"beta"}],
    "spiffe://example.org/edge/requests":[{"role":"requester","tenant":"*"}],
    "spiffe://example.org/exchange/cl-bundle-issuer":[{"role":"writer","tenant":"*"}],
    "spiffe://example.org/owner/one":[{"role":"subject","tenant":"acme",
        "subject_tag":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"}]}}"#;

/// Decisions go after two days, all else after ten.
pub(crate) const RETENTION: &str = r#"{"retention_version":1,"classes":[
    {"class":"short","days":2,"operations":["policy.decide"]},
    {"class":"other","days":10,"operations":["*"]}]}"#;

pub(crate) fn sealed<E: Engine>(engine: E) -> Sealed<E> {
    try_sealed(engine).unwrap()
}

pub(crate) fn try_sealed<E: Engine>(engine: E) -> Result<Sealed<E>, cl_kv::Error> {
    let kek = KeyEncryptionKey::new(Zeroizing::new([9; 32]));
    Sealed::open(engine, kek, Arc::new(SystemRandom::new()))
}

const SEED: [u8; 32] = [3; 32];

pub(crate) fn signing_key() -> SigningKey {
    let kid = KeyId::new("urn:cl:key:receipts:test").unwrap();
    SigningKey::from_seed(kid, &Seed::new(&SEED).unwrap()).unwrap()
}

pub(crate) fn log_key() -> LogKey {
    LogKey::new(signing_key(), TRUST_DOMAIN)
}

/// The verifier key of a tenant's log.
pub(crate) fn verifier_key(public_key: [u8; 32], tenant: &str) -> VerifierKey {
    let name = KeyName::new(&leaf::origin(TRUST_DOMAIN, tenant)).unwrap();
    VerifierKey::new(name, Algorithm::Ed25519, public_key)
}

pub(crate) fn log_public_key() -> [u8; 32] {
    *signing_key().public_key().as_bytes()
}

/// Checks offline that a receipt is in the log of a tenant, and gives the checkpoint that says so.
pub(crate) fn verify_proof(tenant: &str, receipt: &[u8], proof: &str) -> Checkpoint {
    verify_proof_by(log_public_key(), tenant, receipt, proof)
}

/// The same for a log that another key signs.
pub(crate) fn verify_proof_by(
    public_key: [u8; 32],
    tenant: &str,
    receipt: &[u8],
    proof: &str,
) -> Checkpoint {
    verify_cosigned(public_key, &Witnesses::default(), tenant, receipt, proof)
}

/// The same for a log whose checkpoints a quorum has cosigned.
pub(crate) fn verify_cosigned(
    public_key: [u8; 32],
    witnesses: &Witnesses,
    tenant: &str,
    receipt: &[u8],
    proof: &str,
) -> Checkpoint {
    let origin = leaf::origin(TRUST_DOMAIN, tenant);
    let key = verifier_key(public_key, tenant);
    let proof = ProofFile::parse(proof.as_bytes()).unwrap();
    let salt = Salt::read(&proof.extra).unwrap();
    let entry = leaf::entry(&salt, std::str::from_utf8(receipt).unwrap());
    let verified = proof.verify(Hash::of_leaf(&entry), &origin, &[&key], witnesses);
    verified.unwrap().checkpoint().clone()
}

/// What a world's store has at rest.
pub(crate) fn kv_store(world: &World) -> Arc<dyn Store> {
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let ids: Arc<dyn Ids> = Arc::new(SystemIds::new(clock));
    open_store(sealed(world.engine.clone()), &ids).unwrap()
}

/// What outlives a restart.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) engine: MemoryEngine,
    pub(crate) pin: MemoryPin,
    pub(crate) adopts_lost_pins: bool,
    pub(crate) witnesses: TestWitnesses,
    pub(crate) points: Arc<Failpoints>,
    pub(crate) clock: ManualClock,
    pub(crate) log_key: fn() -> LogKey,
    pub(crate) retention_interval: Duration,
    pub(crate) max_clock_step: Duration,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            authority: Authority::new(),
            engine: MemoryEngine::new(),
            pin: MemoryPin::default(),
            adopts_lost_pins: false,
            witnesses: TestWitnesses::default(),
            points: Arc::default(),
            clock: ManualClock::new(START_MS),
            log_key,
            retention_interval: HANG,
            // Any jump counts at once.
            max_clock_step: Duration::from_secs(1 << 40),
        }
    }

    pub(crate) fn deps(&self, shutdown: &Shutdown, tasks: &Tasks) -> Result<Deps, Error> {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        // Not seeded: commit ids and nonces must be fresh, also after a restart.
        let ids: Arc<dyn Ids> = Arc::new(SystemIds::new(Arc::clone(&clock)));
        let engine = Failing {
            engine: self.engine.clone(),
            points: Arc::clone(&self.points),
        };
        Ok(Deps {
            store: open_store(sealed(engine), &ids)?,
            pin: Arc::new(FailingPin {
                pin: Arc::new(self.pin.clone()),
                points: Arc::clone(&self.points),
            }),
            adopts_lost_pins: self.adopts_lost_pins,
            cosigning: self.witnesses.cosigning(),
            log_key: (self.log_key)(),
            rules: Rules {
                own_id: spiffe_id(STORE).parse().unwrap(),
                writers: Writers::parse(WRITERS.as_bytes()).unwrap(),
            },
            readers: ReadersFile::fixed(Readers::parse(READERS.as_bytes()).unwrap()),
            retention: Arc::new(Retention::parse(RETENTION.as_bytes()).unwrap()),
            clock,
            ids,
            meter: telemetry().meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
            sweep_interval: Duration::from_millis(5),
            retention_interval: self.retention_interval,
            max_clock_step: self.max_clock_step,
        })
    }

    /// Why the store does not start.
    pub(crate) fn refuses_to_start(&self) -> BuildError {
        let shutdown = Shutdown::default();
        let deps = self.deps(&shutdown, &Tasks::new(shutdown.clone()));
        match deps.map_err(BuildError::from).and_then(assemble) {
            Ok(_) => panic!("the store starts"),
            Err(error) => error,
        }
    }

    pub(crate) async fn start(&self) -> Serving {
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let app = assemble(self.deps(&shutdown, &tasks).unwrap()).unwrap();
        let credentials = self.authority.credentials(STORE);
        Serving::start(app, credentials, shutdown, tasks, telemetry()).await
    }

    pub(crate) fn client(&self, addr: SocketAddr, path: &str) -> Client {
        client(&self.authority, addr, path)
    }
}

pub(crate) fn client(authority: &Authority, addr: SocketAddr, path: &str) -> Client {
    ReceiptServiceClient::new(channel(addr, authority.credentials(path), STORE))
}

pub(crate) async fn verify(auditor: &mut Client) -> VerifyLogResponse {
    let request = VerifyLogRequest {
        tenant: "acme".to_owned(),
    };
    let answer = auditor.verify_log(request).await;
    answer.unwrap().into_inner()
}

/// How many entries the log has; all of them verify.
pub(crate) async fn verified_entries(auditor: &mut Client) -> u64 {
    let answer = verify(auditor).await;
    match answer.result.unwrap() {
        Verdict::Checkpoint(_) => answer.checked_entries,
        Verdict::Fault(fault) => panic!("{fault:?}"),
    }
}

pub(crate) async fn open_intents(writer: &mut Client) -> ListOpenResponse {
    let request = ListOpenRequest::default();
    writer.list_open(request).await.unwrap().into_inner()
}
