//! A deployment around one gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_gateway::Deps;
use cl_gateway::bundles::Bundles;
use cl_gateway::engine::Engine;
use cl_gateway::in_flight::CallLimits;
use cl_gateway::keyfile::KeySetFile;
use cl_gateway::proposals::Proposals;
use cl_gateway::receipts::Receipts;
use cl_gateway::store::KvStore;
use cl_host::client::PeerChannel;
use cl_host::clock::ManualClock;
use cl_host::ids::SystemIds;
use cl_host::life::{Server, Shutdown, Tasks, Timings};
use cl_host::telemetry::Telemetry;
use cl_host::tls::Credentials;
use cl_kv::{Engine as KvEngine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::part::Issuer;
use cl_testbed::{Authority, HANG, Serving, TRUST_DOMAIN, channel, telemetry, timings};
use cl_wire::bundle::v1::bundle_service_server::BundleServiceServer;
use cl_wire::exchange::v1::exchange_service_client::ExchangeServiceClient;
use cl_wire::policy::v1::policy_service_server::PolicyServiceServer;
use cl_wire::receipt::v1::receipt_service_server::ReceiptServiceServer;
use cl_wire::vault::v1::memory_service_server::MemoryServiceServer;
use ring::rand::SystemRandom;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::service::Routes;
use zeroize::Zeroizing;

use crate::bundle_issuer::FakeIssuer;
use crate::client::{Answer, Call, Client};
use crate::engine::FakeEngine;
use crate::receipt_store::FakeReceiptStore;
use crate::tokens::TokenIssuer;
use crate::vault::FakeVault;

/// 2030-06-01T08:00:05Z.
pub(crate) const NOW_S: i64 = 1_906_531_205;

/// The services behind the gateway, by the paths of their SPIFFE ids.
pub(crate) const ENGINE: &str = "exchange/cl-policy-engine";
pub(crate) const ISSUER: &str = "exchange/cl-bundle-issuer";
pub(crate) const STORE: &str = "exchange/cl-receipt-store";
pub(crate) const VAULT: &str = "vault/cl-vault";

/// A deployment: its authority, its services, its token issuer, and what outlives a gateway.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryEngine,
    pub(crate) engine: FakeEngine,
    pub(crate) bundles: FakeIssuer,
    pub(crate) receipts: FakeReceiptStore,
    pub(crate) vault: FakeVault,
    pub(crate) issuer: TokenIssuer,
    processes: BTreeMap<&'static str, Process>,
    home: TempDir,
}

/// A service behind the gateway, which keeps its address while it is down.
struct Process {
    addr: SocketAddr,
    serving: Option<Serving>,
}

/// How a test's gateway differs from the ordinary one.
pub(crate) struct Options {
    pub(crate) tokens: bool,
    /// Whether the gateway is told where the services are that recipients need.
    pub(crate) is_for_recipients: bool,
    pub(crate) max_in_flight: usize,
    pub(crate) max_in_flight_per_tenant: usize,
    pub(crate) max_in_flight_per_caller: usize,
    pub(crate) max_body_time: Duration,
    pub(crate) max_call: Duration,
    pub(crate) public_url: Option<String>,
    pub(crate) kv: Option<Arc<dyn KvEngine>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tokens: true,
            is_for_recipients: true,
            max_in_flight: 64,
            max_in_flight_per_tenant: 64,
            max_in_flight_per_caller: 64,
            max_body_time: HANG,
            max_call: HANG,
            public_url: None,
            kv: None,
        }
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        cl_testbed::subscribe("trace");
        let authority = Authority::new();
        let engine = FakeEngine::default();
        let issuer = TokenIssuer::new();
        let home = tempfile::tempdir().unwrap();
        let receipts = FakeReceiptStore::default();
        let mut world = Self {
            authority,
            clock: ManualClock::new(NOW_S * 1000),
            memory: MemoryEngine::new(),
            engine,
            bundles: FakeIssuer::new(receipts.clone()),
            receipts,
            vault: FakeVault::default(),
            issuer,
            processes: BTreeMap::new(),
            home,
        };
        for path in [ENGINE, ISSUER, STORE, VAULT] {
            world.launch(path, "127.0.0.1:0".parse().unwrap()).await;
        }
        world.write_keys(&world.issuer.jwks());
        world
    }

    pub(crate) fn write_keys(&self, jwks: &Value) {
        std::fs::write(self.keys_path(), jwks.to_string()).unwrap();
    }

    pub(crate) fn keys_path(&self) -> PathBuf {
        self.home.path().join("jwks.json")
    }

    /// Ends a service behind the gateway.
    pub(crate) async fn stop_service(&mut self, path: &'static str) {
        let process = self.processes.get_mut(path).unwrap();
        process.serving.take().unwrap().kill().await;
    }

    /// Starts it again, where it was.
    pub(crate) async fn restart_service(&mut self, path: &'static str) {
        let addr = self.processes[path].addr;
        self.launch(path, addr).await;
    }

    async fn launch(&mut self, path: &'static str, addr: SocketAddr) {
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (routes, methods) = self.service(path);
        let serving = Serving::peer_on(
            listener,
            &self.authority,
            path,
            routes,
            methods,
            "edge/cl-gateway",
        );
        let serving = Some(serving.await);
        self.processes.insert(path, Process { addr, serving });
    }

    /// A service behind the gateway, and the methods that the gateway calls.
    fn service(&self, path: &str) -> (Routes, &'static [&'static str]) {
        match path {
            ENGINE => (
                Routes::new(PolicyServiceServer::new(self.engine.clone())),
                &[
                    "/contextlayer.policy.v1.PolicyService/SubmitRequest",
                    "/contextlayer.policy.v1.PolicyService/GetRequest",
                    "/contextlayer.policy.v1.PolicyService/WatchRequest",
                ],
            ),
            ISSUER => (
                Routes::new(BundleServiceServer::new(self.bundles.clone())),
                &[
                    "/contextlayer.bundle.v1.BundleService/RedeemBundle",
                    "/contextlayer.bundle.v1.BundleService/CheckBundle",
                    "/contextlayer.bundle.v1.BundleService/RecordConsumerReceipt",
                ],
            ),
            STORE => (
                Routes::new(ReceiptServiceServer::new(self.receipts.clone())),
                &["/contextlayer.receipt.v1.ReceiptService/GetReceipt"],
            ),
            VAULT => (
                Routes::new(MemoryServiceServer::new(self.vault.clone())),
                &["/contextlayer.vault.v1.MemoryService/SubmitProposal"],
            ),
            other => panic!("no service {other}"),
        }
    }

    pub(crate) async fn start(&self) -> Running {
        self.start_with(Options::default()).await
    }

    /// Starts a gateway on what earlier ones left.
    pub(crate) async fn start_with(&self, options: Options) -> Running {
        let kv = options.kv.unwrap_or_else(|| Arc::new(self.memory.clone()));
        let kek = KeyEncryptionKey::new(Zeroizing::new([5; 32]));
        let sealed = Sealed::open(kv, kek, Arc::new(SystemRandom::new())).unwrap();
        let credentials = self.authority.edge_credentials("edge/cl-gateway");
        let to =
            |path: &'static str| channel(self.processes[path].addr, Arc::clone(&credentials), path);
        let if_told = |path| options.is_for_recipients.then(|| to(path));
        let keys = KeySetFile::load(self.keys_path()).unwrap();
        let telemetry = telemetry();
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let clock = Arc::new(self.clock.clone());
        let app = cl_gateway::app(Deps {
            trust_domain: TRUST_DOMAIN.to_owned(),
            tokens: options
                .tokens
                .then(|| (TokenIssuer::policy(), Arc::new(keys))),
            key_set_interval: Duration::from_millis(5),
            engine: Engine::new(to(ENGINE)),
            bundles: if_told(ISSUER).map(Bundles::new),
            receipts: if_told(STORE).map(Receipts::new),
            proposals: if_told(VAULT).map(Proposals::new),
            store: Arc::new(KvStore::new(sealed)),
            sweep_interval: Duration::from_millis(5),
            clock: Arc::<ManualClock>::clone(&clock),
            ids: Arc::new(SystemIds::new(clock)),
            issuer: Issuer::new("urn:cl:gateway:test").unwrap(),
            public_url: options.public_url,
            call_limits: CallLimits {
                max_in_flight: options.max_in_flight,
                max_in_flight_per_tenant: options.max_in_flight_per_tenant,
                max_in_flight_per_caller: options.max_in_flight_per_caller,
            },
            max_body_time: options.max_body_time,
            meter: telemetry.meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let timings = Timings {
            max_call: options.max_call,
            ..timings()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            app,
            credentials,
            telemetry: telemetry.clone(),
            timings,
            shutdown,
            tasks,
        };
        let serving = Serving::serve(server, listener).await;
        Running {
            client: Client::new(serving.addr, self.authority.root(), None),
            token: self.issuer.token(NOW_S),
            telemetry,
            serving,
        }
    }

    /// A client with a certificate for this SPIFFE id.
    pub(crate) fn client_as(&self, running: &Running, spiffe_id: &str) -> Client {
        let own = self.authority.client(spiffe_id);
        Client::new(running.serving.addr, self.authority.root(), Some(own))
    }
}

/// A gateway that runs, and an ordinary caller of it.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) token: String,
    pub(crate) telemetry: Telemetry,
    serving: Serving,
}

impl Running {
    /// Sends a call with the ordinary token.
    pub(crate) async fn call(&self, call: Call) -> Answer {
        call.bearer(&self.token).by(&self.client).await
    }

    /// Submits a document with the ordinary token, in a form that is not canonical.
    pub(crate) async fn submit(&self, document: &Value) -> Answer {
        let text = serde_json::to_string_pretty(document).unwrap();
        self.call(Call::submit(text)).await
    }

    /// Reports a receipt with the ordinary token, in a form that is not canonical.
    pub(crate) async fn record(&self, bundle: &str, receipt: &Value) -> Answer {
        let text = serde_json::to_string_pretty(receipt).unwrap();
        self.call(Call::record(bundle, text)).await
    }

    /// Proposes with the ordinary token, in a form that is not canonical.
    pub(crate) async fn propose(&self, proposal: &Value) -> Answer {
        let text = serde_json::to_string_pretty(proposal).unwrap();
        self.call(Call::propose(text)).await
    }

    /// Submits a document under a key.
    pub(crate) async fn submit_once(&self, document: &Value, key: &str) -> Answer {
        self.call(Call::submit(document.to_string()).key(key)).await
    }

    /// The gRPC door, as a process with these credentials sees it.
    pub(crate) fn exchange(
        &self,
        credentials: Arc<Credentials>,
    ) -> ExchangeServiceClient<PeerChannel> {
        ExchangeServiceClient::new(self.serving.channel(credentials))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.serving.addr
    }

    pub(crate) async fn kill(self) {
        self.serving.kill().await;
    }

    /// Ends in order.
    pub(crate) async fn end(self) {
        self.serving.end().await;
    }
}
