//! A deployment around one bundle issuer.

use std::sync::Arc;
use std::time::Duration;

use cl_bundle_issuer::Deps;
use cl_bundle_issuer::core::bundle::Times;
use cl_bundle_issuer::core::keys::Keys;
use cl_bundle_issuer::proxy::GrpcProxy;
use cl_bundle_issuer::receipts::GrpcReceipts;
use cl_bundle_issuer::store::KvStore;
use cl_host::client::PeerChannel;
use cl_host::clock::ManualClock;
use cl_host::life::{Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_host::trust::Trust;
use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::envelope::{TrustedAuthority, VerifiedBundle};
use cl_testbed::{Authority, FakeReceipts, Serving, telemetry, within};
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use cl_wire::bundle::v1::{
    BundleState, CheckBundleRequest, IssueBundleRequest, IssueBundleResponse, RedeemBundleRequest,
    RedeemBundleResponse, RevokeBundlesRequest,
};
use cl_wire::policy::v1::Grant;
use cl_wire::semantic::v1::semantic_proxy_service_server::SemanticProxyServiceServer;
use ring::rand::SystemRandom;
use serde_json::json;
use tonic::Status;
use tonic::service::Routes;
use zeroize::Zeroizing;

use crate::exchange::{
    self, DATE, Exchange, NOW_MS, PERSON, RECIPIENT, TENANT, bytes, operation, signing_key,
};
use crate::fakes::{FakeProxy, TestClock, item, manual};

pub(crate) const ISSUER: &str = "exchange/cl-bundle-issuer";

/// What the issuer writes receipts of.
const OPERATIONS: &[&str] = &["bundle.issue", "bundle.deliver", "bundle.revoke"];

pub(crate) const TIMES: Times = Times {
    retry_window_seconds: 120,
    retention_seconds: 3600,
    issue_lease_seconds: 30,
    // The clock of most tests jumps as it likes.
    max_clock_step_seconds: 1_000_000_000,
};

/// The peers of an issuer.
pub(crate) struct Peers {
    pub(crate) authority: Authority,
    pub(crate) proxy: FakeProxy,
    pub(crate) receipts: FakeReceipts,
    pub(crate) proxy_server: Serving,
    pub(crate) receipt_server: Serving,
}

impl Peers {
    pub(crate) async fn new(clock: TestClock) -> Self {
        cl_testbed::subscribe("trace");
        let authority = Authority::new();
        let proxy = FakeProxy::new(clock);
        let receipts = FakeReceipts::new(ISSUER, OPERATIONS);
        let proxy_server = Serving::peer(
            &authority,
            "exchange/cl-semantic-proxy",
            Routes::new(SemanticProxyServiceServer::new(proxy.clone())),
            &["/contextlayer.semantic.v1.SemanticProxyService/ProjectClaims"],
            ISSUER,
        );
        let proxy_server = proxy_server.await;
        let receipt_server = receipts.serve(&authority).await;
        Self {
            authority,
            proxy,
            receipts,
            proxy_server,
            receipt_server,
        }
    }
}

pub(crate) struct World {
    pub(crate) peers: Peers,
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryEngine,
    pub(crate) times: Times,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = ManualClock::new(NOW_MS);
        Self {
            peers: Peers::new(manual(&clock)).await,
            clock,
            memory: MemoryEngine::new(),
            times: TIMES,
        }
    }

    /// A world whose proxy has two items for an exchange.
    pub(crate) async fn with(exchange: &Exchange) -> Self {
        let world = Self::new().await;
        world.peers.proxy.set_items(items(exchange));
        world
    }

    pub(crate) async fn start(&self) -> Running {
        self.start_on(Arc::new(self.memory.clone())).await
    }

    pub(crate) async fn start_on(&self, engine: Arc<dyn Engine>) -> Running {
        let kek = KeyEncryptionKey::new(Zeroizing::new([9; 32]));
        let sealed = Sealed::open(engine, kek, Arc::new(SystemRandom::new())).unwrap();
        let credentials = self.peers.authority.credentials(ISSUER);
        let folder = tempfile::tempdir().unwrap();
        let trust = folder.path().join("trust.json");
        std::fs::write(&trust, exchange::trust_json()).unwrap();
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let telemetry = telemetry();
        let proxy = self.peers.proxy_server.channel(Arc::clone(&credentials));
        let receipts = self.peers.receipt_server.channel(Arc::clone(&credentials));
        let app = cl_bundle_issuer::app(Deps {
            store: Arc::new(KvStore::new(sealed)),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            proxy: Arc::new(GrpcProxy::new(proxy)),
            trust: Trust::load(trust).unwrap(),
            keys: keys(),
            times: self.times,
            sweep_interval: Duration::from_millis(20),
            clock: Arc::new(self.clock.clone()),
            own: credentials.own().id,
            meter: telemetry.meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let serving = Serving::start(
            app.unwrap(),
            credentials,
            shutdown,
            tasks,
            telemetry.clone(),
        );
        let serving = serving.await;
        let authority = &self.peers.authority;
        let channel = |path| serving.channel(authority.credentials(path));
        Running {
            calls: Calls {
                engine: BundleServiceClient::new(channel("exchange/cl-policy-engine")),
                gateway: BundleServiceClient::new(channel("edge/cl-gateway")),
            },
            serving,
            telemetry,
        }
    }
}

pub(crate) fn keys() -> Keys {
    Keys {
        bundle: signing_key("urn:cl:key:bundle:test", 11),
        notes: signing_key("urn:cl:key:notes:test", 12),
    }
}

/// Two items of one exchange, from two sources.
pub(crate) fn items(exchange: &Exchange) -> Vec<cl_wire::semantic::v1::ProjectedItem> {
    vec![
        item(
            DATE,
            "Delivery was requested by 2026-08.",
            &json!("2026-08"),
            &exchange.handle("e:1"),
        ),
        item(
            PERSON,
            "The request came from \"Harriet Vane\".",
            &json!("Harriet Vane"),
            &exchange.handle("e:2"),
        ),
    ]
}

/// The reference of a source, as a bundle names it.
pub(crate) fn reference(exchange: &Exchange, source: &str) -> String {
    exchange
        .handle(source)
        .replace("prov_", "urn:cl:provenance:")
}

/// Clients of an issuer.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) engine: BundleServiceClient<PeerChannel>,
    pub(crate) gateway: BundleServiceClient<PeerChannel>,
}

pub(crate) struct Running {
    pub(crate) calls: Calls,
    pub(crate) serving: Serving,
    pub(crate) telemetry: Telemetry,
}

impl std::ops::Deref for Running {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}

impl Calls {
    pub(crate) async fn issue(&self, exchange: &Exchange) -> Result<IssueBundleResponse, Status> {
        self.issue_with(issue_message(exchange, exchange.grant()))
            .await
    }

    pub(crate) async fn issue_with(
        &self,
        message: IssueBundleRequest,
    ) -> Result<IssueBundleResponse, Status> {
        let mut engine = self.engine.clone();
        let answer = within("an issue", engine.issue_bundle(message)).await?;
        Ok(answer.into_inner())
    }

    /// Issues the bundle of an exchange and returns its reference.
    pub(crate) async fn issued(&self, exchange: &Exchange) -> String {
        self.issue(exchange).await.unwrap().bundle_ref
    }

    pub(crate) async fn redeem(
        &self,
        bundle_ref: &str,
        key: Option<&str>,
        number: u32,
    ) -> Result<RedeemBundleResponse, Status> {
        self.redeem_with(redeem_message(bundle_ref, key, number))
            .await
    }

    pub(crate) async fn redeem_with(
        &self,
        message: RedeemBundleRequest,
    ) -> Result<RedeemBundleResponse, Status> {
        let mut gateway = self.gateway.clone();
        let answer = within("a redemption", gateway.redeem_bundle(message)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn check(&self, bundle_ref: &str) -> Result<BundleState, Status> {
        let message = CheckBundleRequest {
            tenant: TENANT.to_owned(),
            bundle_ref: bundle_ref.to_owned(),
            recipient: RECIPIENT.to_owned(),
        };
        let mut gateway = self.gateway.clone();
        let answer = within("a check", gateway.check_bundle(message)).await?;
        Ok(answer.into_inner().state())
    }

    pub(crate) async fn revoke(&self, target: Target, number: u32) -> Result<u32, Status> {
        self.revoke_as(target, operation(number)).await
    }

    pub(crate) async fn revoke_as(
        &self,
        target: Target,
        operation_id: String,
    ) -> Result<u32, Status> {
        let message = RevokeBundlesRequest {
            tenant: TENANT.to_owned(),
            target: Some(target),
            reason: "subject.erased".to_owned(),
            operation_id,
        };
        let mut engine = self.engine.clone();
        let answer = within("a revocation", engine.revoke_bundles(message)).await?;
        Ok(answer.into_inner().revoked)
    }
}

impl Running {
    /// Ends as a killed process does.
    pub(crate) async fn kill(self) {
        self.serving.kill().await;
    }
}

pub(crate) fn issue_message(exchange: &Exchange, grant: Grant) -> IssueBundleRequest {
    IssueBundleRequest {
        tenant: TENANT.to_owned(),
        request: bytes(&exchange.request),
        grant: Some(grant),
        operation_id: operation(1),
    }
}

pub(crate) fn redeem_message(
    bundle_ref: &str,
    key: Option<&str>,
    number: u32,
) -> RedeemBundleRequest {
    RedeemBundleRequest {
        tenant: TENANT.to_owned(),
        bundle_ref: bundle_ref.to_owned(),
        recipient: RECIPIENT.to_owned(),
        idempotency_key: key.map(str::to_owned),
        operation_id: operation(number),
    }
}

/// Opens an envelope as a consumer does.
pub(crate) fn open(envelope: &[u8]) -> VerifiedBundle {
    let authority = TrustedAuthority::new(keys().bundle.public_key());
    VerifiedBundle::open(envelope, &authority).unwrap()
}
