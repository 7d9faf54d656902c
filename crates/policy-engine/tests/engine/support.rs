//! A deployment around one policy engine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::clock::ManualClock;
use cl_host::ids::SystemIds;
use cl_host::life::{Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::key::{PublicKey, Seed, SigningKey};
use cl_model::passkey::RelyingParty;
use cl_model::scalar::KeyId;
use cl_policy_engine::core::grant::Audiences;
use cl_policy_engine::core::keys::Keys;
use cl_policy_engine::issuer::{GrpcIssuer, Issuer};
use cl_policy_engine::people::PeopleSettings;
use cl_policy_engine::receipts::GrpcReceipts;
use cl_policy_engine::signers::Signers;
use cl_policy_engine::store::{KvStore, Store};
use cl_policy_engine::{Deps, InvalidApp};
use cl_testbed::{Authority, FakeReceipts, Serving, TRUST_DOMAIN, channel, telemetry, within};
use cl_wire::bundle::v1::bundle_service_server::BundleServiceServer;
use cl_wire::policy::v1::approval_service_client::ApprovalServiceClient;
use cl_wire::policy::v1::approver_admin_service_client::ApproverAdminServiceClient;
use cl_wire::policy::v1::policy_admin_service_client::PolicyAdminServiceClient;
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::policy::v1::{
    ActivateSnapshotRequest, GetRequestRequest, PutSnapshotRequest, RequestStatus,
    SubmitRequestRequest,
};
use ring::rand::SystemRandom;
use serde_json::Value;
use tonic::Status;
use tonic::service::Routes;
use zeroize::Zeroizing;

use crate::documents::{self, NOW_MS, TENANT};
use crate::issuer::FakeIssuer;

/// How long engines keep what has ended.
pub(crate) const RETENTION_SECONDS: u64 = 2 * 86_400;

/// The relying party of people's passkeys.
pub(crate) const RP_ID: &str = "notes.example";
/// The console's origin.
pub(crate) const ORIGIN: &str = "https://console.notes.example";
/// How long engines wait for people.
pub(crate) const APPROVAL_SECONDS: u64 = 480;

/// How many rounds of a race there are, if somebody asks for more than a test has time for.
pub(crate) fn asked_rounds() -> Option<u32> {
    #[expect(clippy::disallowed_methods, reason = "a test has no other settings")]
    let text = std::env::var("CL_ROUNDS");
    text.ok().map(|text| text.parse().expect("a number"))
}

const ENGINE: &str = "exchange/cl-policy-engine";

/// What the engine writes receipts of.
const OPERATIONS: &[&str] = &[
    "policy.decide",
    "policy.put_snapshot",
    "policy.activate_snapshot",
    "policy.replay",
    "policy.approve",
    "policy.refuse_approval",
    "policy.refuse_sign_in",
    "policy.open_enrolment",
    "policy.enrol_credential",
    "policy.confirm_credential",
    "policy.revoke_credential",
    "policy.revoke_grant",
    "policy.set_anomaly",
    "policy.clear_anomaly",
    "policy.set_shadow",
    "policy.clear_shadow",
    "policy.delegate",
    "policy.revoke_delegation",
];

/// A deployment: its authority, its receipt store, and what outlives a policy engine.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryEngine,
    pub(crate) receipts: FakeReceipts,
    pub(crate) issuer: FakeIssuer,
    receipts_addr: SocketAddr,
    /// Who has to sign snapshots, if anybody.
    pub(crate) signers: Option<Signers>,
    issuer_server: Option<Serving>,
    _receipt_server: Serving,
}

impl World {
    pub(crate) async fn new() -> Self {
        // Nobody could keep the traces of very many rounds.
        cl_testbed::subscribe(asked_rounds().map_or("trace", |_| "warn"));
        let authority = Authority::new();
        let clock = ManualClock::new(NOW_MS);
        let receipts = FakeReceipts::new(ENGINE, OPERATIONS);
        let server = receipts.serve(&authority).await;
        Self {
            authority,
            memory: MemoryEngine::new(),
            receipts,
            issuer: FakeIssuer::new(clock.clone()),
            clock,
            receipts_addr: server.addr,
            signers: None,
            issuer_server: None,
            _receipt_server: server,
        }
    }

    /// A deployment with a bundle issuer.
    pub(crate) async fn with_issuer() -> Self {
        let mut world = Self::new().await;
        let server = Serving::peer(
            &world.authority,
            "exchange/cl-bundle-issuer",
            Routes::new(BundleServiceServer::new(world.issuer.clone())),
            &[
                "/contextlayer.bundle.v1.BundleService/IssueBundle",
                "/contextlayer.bundle.v1.BundleService/RevokeBundles",
            ],
            ENGINE,
        );
        world.issuer_server = Some(server.await);
        world
    }

    /// Starts a policy engine on what earlier ones left in memory.
    pub(crate) async fn start(&self) -> Running {
        self.start_on(Arc::new(self.memory.clone())).await
    }

    pub(crate) async fn start_on(&self, engine: Arc<dyn Engine>) -> Running {
        self.try_start_on(engine).await.unwrap()
    }

    pub(crate) async fn try_start_on(
        &self,
        engine: Arc<dyn Engine>,
    ) -> Result<Running, InvalidApp> {
        let kek = KeyEncryptionKey::new(Zeroizing::new([9; 32]));
        let sealed = Sealed::open(engine, kek, Arc::new(SystemRandom::new())).unwrap();
        let store: Arc<dyn Store> = Arc::new(KvStore::new(sealed));
        let credentials = self.authority.credentials(ENGINE);
        let to_receipts = channel(
            self.receipts_addr,
            Arc::clone(&credentials),
            "exchange/cl-receipt-store",
        );
        let issuer = self.issuer_server.as_ref().map(|serving| {
            let channel = serving.channel(Arc::clone(&credentials));
            Arc::new(GrpcIssuer::new(channel)) as Arc<dyn Issuer>
        });
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let telemetry = telemetry();
        let app = cl_policy_engine::app(Deps {
            store: Arc::clone(&store),
            receipts: Arc::new(GrpcReceipts::new(to_receipts)),
            issuer,
            keys: keys(),
            signers: self.signers.clone(),
            retention_seconds: RETENTION_SECONDS,
            sweep_interval: Duration::from_millis(20),
            // The clock of tests jumps as it likes.
            max_clock_step: Duration::from_secs(1_000_000_000),
            people: PeopleSettings {
                relying_party: RelyingParty::new(RP_ID, vec![ORIGIN.to_owned()]).unwrap(),
                approval_seconds: APPROVAL_SECONDS,
            },
            audiences: Audiences::of(TRUST_DOMAIN).unwrap(),
            clock: Arc::new(self.clock.clone()),
            ids: Arc::new(SystemIds::new(Arc::new(self.clock.clone()))),
            own: credentials.own().id,
            meter: telemetry.meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let serving = Serving::start(
            app?,
            Arc::clone(&credentials),
            shutdown,
            tasks,
            telemetry.clone(),
        );
        let serving = serving.await;
        let gateway = self.authority.credentials("edge/cl-gateway");
        let operator = self.authority.credentials("operator/ann");
        let console = self.authority.credentials("edge/cl-console");
        Ok(Running {
            approvals: ApprovalServiceClient::new(serving.channel(console)),
            approvers: ApproverAdminServiceClient::new(serving.channel(Arc::clone(&operator))),
            policy: PolicyServiceClient::new(serving.channel(gateway)),
            admin: PolicyAdminServiceClient::new(serving.channel(operator)),
            serving,
            store,
            telemetry,
        })
    }

    /// Starts a policy engine whose tenant has an active snapshot.
    pub(crate) async fn ready(&self) -> Running {
        let running = self.start().await;
        running.activate_new(&documents::snapshot("v1"), None).await;
        running
    }
}

pub(crate) fn decision_key() -> SigningKey {
    let kid = KeyId::new("urn:cl:key:decision:test").unwrap();
    SigningKey::from_seed(kid, &Seed::new(&[1; 32]).unwrap()).unwrap()
}

pub(crate) fn decision_public_key() -> PublicKey {
    decision_key().public_key()
}

fn keys() -> Keys {
    let seed = |byte| Seed::new(&[byte; 32]).unwrap();
    Keys::new(decision_key(), &seed(2), &seed(3))
}

/// A policy engine that runs.
pub(crate) struct Running {
    pub(crate) policy: PolicyServiceClient<PeerChannel>,
    pub(crate) admin: PolicyAdminServiceClient<PeerChannel>,
    pub(crate) approvals: ApprovalServiceClient<PeerChannel>,
    pub(crate) approvers: ApproverAdminServiceClient<PeerChannel>,
    pub(crate) serving: Serving,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) telemetry: Telemetry,
}

impl Running {
    pub(crate) async fn submit(
        &self,
        submission: SubmitRequestRequest,
    ) -> Result<RequestStatus, Status> {
        let mut policy = self.policy.clone();
        let answer = within("a submission", policy.submit_request(submission)).await?;
        Ok(answer.into_inner().status.unwrap())
    }

    /// Submits a request with the ordinary facts.
    pub(crate) async fn ask(&self, request: &Value, number: u32) -> Result<RequestStatus, Status> {
        self.submit(documents::submission(request, number)).await
    }

    pub(crate) async fn look(&self, request: &Value) -> Result<RequestStatus, Status> {
        let message = GetRequestRequest {
            tenant: TENANT.to_owned(),
            request_ref: request["id"].as_str().unwrap().to_owned(),
            facts: Some(documents::facts()),
        };
        let mut policy = self.policy.clone();
        let answer = within("a read", policy.get_request(message)).await?;
        Ok(answer.into_inner().status.unwrap())
    }

    pub(crate) async fn put(
        &self,
        tenant: &str,
        snapshot: &Value,
        number: u32,
    ) -> Result<String, Status> {
        let message = PutSnapshotRequest {
            tenant: tenant.to_owned(),
            snapshot: documents::bytes(snapshot),
            operation_id: documents::operation(number),
            signature: None,
        };
        let mut admin = self.admin.clone();
        let answer = within("a put", admin.put_snapshot(message)).await?;
        Ok(answer.into_inner().digest)
    }

    pub(crate) async fn activate(
        &self,
        tenant: &str,
        digest: &str,
        expected: Option<&str>,
        number: u32,
    ) -> Result<(), Status> {
        let message = ActivateSnapshotRequest {
            tenant: tenant.to_owned(),
            digest: digest.to_owned(),
            expected_current_digest: expected.map(str::to_owned),
            operation_id: documents::operation(number),
        };
        let mut admin = self.admin.clone();
        let answer = within("an activation", admin.activate_snapshot(message)).await?;
        assert!(answer.into_inner().info.unwrap().active);
        Ok(())
    }

    /// Stores a snapshot for the ordinary tenant and makes it active.
    pub(crate) async fn activate_new(&self, snapshot: &Value, expected: Option<&str>) -> String {
        let number = if expected.is_none() { 0xa000 } else { 0xb000 };
        let digest = self.put(TENANT, snapshot, number).await.unwrap();
        self.activate(TENANT, &digest, expected, number + 1)
            .await
            .unwrap();
        digest
    }

    /// Ends as a killed process does.
    pub(crate) async fn kill(self) {
        self.serving.kill().await;
    }

    /// Ends as a process does that is told to.
    pub(crate) async fn end(self) {
        self.serving.end().await;
    }
}

pub(crate) fn decision(status: &RequestStatus) -> Value {
    let value: Value = serde_json::from_slice(&status.decision).unwrap();
    assert_eq!(documents::bytes(&value), status.decision);
    value
}
