//! A deployment around one vault.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use cl_host::client::PeerChannel;
use cl_host::clock::ManualClock;
use cl_host::ids::SystemIds;
use cl_host::life::{Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_host::trust::Trust;
use cl_kv::{Engine, KeyEncryptionKey, MemoryEngine, Sealed};
use cl_model::key::Seed;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::UnixTime;
use cl_model::vocabulary::Vocabulary;
use cl_testbed::{Authority, FakeReceipts, Serving, channel, telemetry, within};
use cl_vault::Deps;
use cl_vault::core::content::{Candidate, Extractor, Found, Source, TextOrigin};
use cl_vault::core::keys::Keys;
use cl_vault::extraction::RuleExtractor;
use cl_vault::notices::GrpcNotices;
use cl_vault::receipts::GrpcReceipts;
use cl_vault::store::Store;
use cl_wire::bundle::v1::bundle_service_server::BundleServiceServer;
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::capture_service_client::CaptureServiceClient;
use cl_wire::vault::v1::memory_service_client::MemoryServiceClient;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use cl_wire::vault::v1::vault_service_client::VaultServiceClient;
use cl_wire::vault::v1::{
    CaptureEventsRequest, CapturedItem, ClaimEntry, EraseEventRequest, EraseSubjectRequest,
    EraseSubjectResponse, EventEntry, ExplainClaimRequest, ExplainClaimResponse, ListClaimsRequest,
    ListEventsRequest, ResolveClaimsRequest, ResolveClaimsResponse, SubmitProposalRequest,
    SubmitProposalResponse,
};
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Status;
use tonic::service::Routes;
use zeroize::Zeroizing;

use crate::documents::{self, KID, NOW_MS, SUBJECT, TENANT, operation};
use crate::issuer::FakeIssuer;

/// A line that the extractor of these tests breaks on.
pub(crate) const BROKEN: &str = "break on these private words";

/// Reads claims that the author states in so many words: `predicate confidence value`, and
/// `until time` or `doubtful` behind it. It breaks on a line that says so.
struct LineExtractor;

impl Extractor for LineExtractor {
    fn extract(&self, source: &Source<'_>) -> Found {
        let parts = source.mail.text.iter();
        let own = parts.filter(|part| part.origin == TextOrigin::Author);
        let lines = own.flat_map(|part| part.text.lines());
        assert!(lines.clone().all(|line| line != BROKEN), "{BROKEN}");
        Found {
            candidates: lines.filter_map(stated).collect(),
            marks: Vec::new(),
        }
    }

    fn reason(&self, rule: &str) -> Option<&'static str> {
        (rule == "test.line").then_some("A line that states a claim.")
    }

    fn meaning(&self, mark: &str) -> Option<&'static str> {
        (mark == "test.doubt").then_some("The line says that it doubts itself.")
    }
}

fn stated(words: &str) -> Option<Candidate> {
    let (line, is_doubtful) = match words.strip_suffix(" doubtful") {
        Some(line) => (line, true),
        None => (words, false),
    };
    let (line, until) = match line.split_once(" until ") {
        Some((line, until)) => (line, Some(UnixTime::parse(until)?)),
        None => (line, None),
    };
    let mut members = line.splitn(3, ' ');
    let mark = is_doubtful.then(|| Name::new("test.doubt")).flatten();
    Some(Candidate {
        predicate: Predicate::new(members.next()?)?,
        confidence: Confidence::new(members.next()?.parse().ok()?)?,
        value: serde_json::from_str(members.next()?).ok()?,
        valid_from: None,
        valid_until: until,
        rule: Name::new("test.line")?,
        marks: mark.into_iter().collect(),
        words: words.to_owned(),
        revision: None,
    })
}

const VAULT: &str = "vault/cl-vault";

/// What the vault writes receipts of.
const OPERATIONS: &[&str] = &[
    "vault.capture",
    "vault.resolve",
    "vault.erase_subject",
    "vault.erase_event",
    "memory.propose",
];

/// A deployment: its authority, its peers, and what outlives a vault.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) clock: ManualClock,
    pub(crate) keys: MemoryEngine,
    pub(crate) data: MemoryEngine,
    pub(crate) receipts: FakeReceipts,
    pub(crate) issuer: FakeIssuer,
    folder: TempDir,
    receipts_addr: SocketAddr,
    issuer_addr: SocketAddr,
    _servers: [Serving; 2],
}

impl World {
    pub(crate) async fn new() -> Self {
        cl_testbed::subscribe("trace");
        let authority = Authority::new();
        let receipts = FakeReceipts::new(VAULT, OPERATIONS);
        let issuer = FakeIssuer::default();
        let receipt_server = receipts.serve(&authority).await;
        let issuer_server = Serving::peer(
            &authority,
            "exchange/cl-bundle-issuer",
            Routes::new(BundleServiceServer::new(issuer.clone())),
            &["/contextlayer.bundle.v1.BundleService/RevokeBundles"],
            VAULT,
        );
        let issuer_server = issuer_server.await;
        let folder = tempfile::tempdir().unwrap();
        let world = Self {
            authority,
            clock: ManualClock::new(NOW_MS),
            keys: MemoryEngine::new(),
            data: MemoryEngine::new(),
            receipts,
            issuer,
            folder,
            receipts_addr: receipt_server.addr,
            issuer_addr: issuer_server.addr,
            _servers: [receipt_server, issuer_server],
        };
        world.trust(&trust_file());
        world
    }

    pub(crate) fn receipts_addr(&self) -> SocketAddr {
        self.receipts_addr
    }

    /// Replaces the file of trusted keys.
    pub(crate) fn trust(&self, file: &Value) {
        fs::write(self.folder.path().join("trust.json"), file.to_string()).unwrap();
    }

    /// Starts a vault on what earlier ones left in memory.
    pub(crate) async fn start(&self) -> Running {
        let (keys, data) = (Arc::new(self.keys.clone()), Arc::new(self.data.clone()));
        self.start_on(keys, data, true).await
    }

    /// Starts a vault that reads claims by the published rules.
    pub(crate) async fn start_with_rules(&self) -> Running {
        let (keys, data) = (Arc::new(self.keys.clone()), Arc::new(self.data.clone()));
        self.start_as(keys, data, true, Arc::new(RuleExtractor))
            .await
    }

    pub(crate) async fn start_on(
        &self,
        keys: Arc<dyn Engine>,
        data: Arc<dyn Engine>,
        has_issuer: bool,
    ) -> Running {
        self.start_as(keys, data, has_issuer, Arc::new(LineExtractor))
            .await
    }

    async fn start_as(
        &self,
        keys: Arc<dyn Engine>,
        data: Arc<dyn Engine>,
        has_issuer: bool,
        extractor: Arc<dyn Extractor>,
    ) -> Running {
        let sealed = |engine, byte| {
            let kek = KeyEncryptionKey::new(Zeroizing::new([byte; 32]));
            Sealed::open(engine, kek, Arc::new(SystemRandom::new())).unwrap()
        };
        let clock = Arc::new(self.clock.clone());
        let ids = Arc::new(SystemIds::new(clock.clone()));
        let store = Arc::new(Store::new(sealed(keys, 8), sealed(data, 9), ids.clone()));
        let credentials = self.authority.credentials(VAULT);
        let to = |addr, path| channel(addr, Arc::clone(&credentials), path);
        let issuer = to(self.issuer_addr, "exchange/cl-bundle-issuer");
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let telemetry = telemetry();
        let seed = |bytes: &[u8]| Seed::new(bytes).unwrap();
        let app = cl_vault::app(Deps {
            store: Arc::clone(&store),
            receipts: Arc::new(GrpcReceipts::new(to(
                self.receipts_addr,
                "exchange/cl-receipt-store",
            ))),
            notices: Arc::new(GrpcNotices::new(has_issuer.then_some(issuer))),
            keys: Arc::new(Keys::new(
                &seed(&documents::ALIAS_SEED),
                &seed(&documents::TAG_SEED),
            )),
            trust: Trust::load(self.folder.path().join("trust.json")).unwrap(),
            extractor,
            vocabulary: Vocabulary::published().unwrap(),
            clock,
            ids,
            own: credentials.own().id,
            meter: telemetry.meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let serving = Serving::start(
            app.unwrap(),
            Arc::clone(&credentials),
            shutdown,
            tasks,
            telemetry.clone(),
        );
        let serving = serving.await;
        let as_peer = |path: &str| serving.channel(self.authority.credentials(path));
        Running {
            proxy: VaultServiceClient::new(as_peer("exchange/cl-semantic-proxy")),
            capture: CaptureServiceClient::new(as_peer("vault/cl-capture")),
            owner: OwnerServiceClient::new(as_peer("owner/acme")),
            gateway: MemoryServiceClient::new(as_peer("edge/cl-gateway")),
            serving,
            store,
            telemetry,
        }
    }
}

pub(crate) fn trust_file() -> Value {
    let key = documents::decision_key(1).public_key();
    json!({"keys": [{
        "kid": KID, "purpose": "decision", "alg": "Ed25519",
        "x": BASE64URL_NOPAD.encode(key.as_bytes()),
        "not_before": null, "not_after": null, "revoked": false,
    }]})
}

/// A vault that runs.
pub(crate) struct Running {
    pub(crate) proxy: VaultServiceClient<PeerChannel>,
    pub(crate) capture: CaptureServiceClient<PeerChannel>,
    pub(crate) owner: OwnerServiceClient<PeerChannel>,
    pub(crate) gateway: MemoryServiceClient<PeerChannel>,
    pub(crate) serving: Serving,
    pub(crate) store: Arc<Store>,
    pub(crate) telemetry: Telemetry,
}

impl Running {
    pub(crate) async fn capture(
        &self,
        batch: CaptureEventsRequest,
    ) -> Result<Vec<CaptureResult>, Status> {
        let mut capture = self.capture.clone();
        let answer = within("a capture", capture.capture_events(batch)).await?;
        let outcomes = answer.into_inner().outcomes.into_iter();
        Ok(outcomes.map(|outcome| outcome.result.unwrap()).collect())
    }

    /// Captures items that are new; their event references.
    pub(crate) async fn take(&self, items: Vec<CapturedItem>, number: u32) -> Vec<String> {
        let outcomes = self.capture(documents::batch(items, number)).await.unwrap();
        let taken = outcomes.into_iter().map(|outcome| match outcome {
            CaptureResult::Captured(event) => event.event_ref,
            other @ (CaptureResult::Duplicate(_) | CaptureResult::RefusedCode(_)) => {
                panic!("{other:?}")
            }
        });
        taken.collect()
    }

    pub(crate) async fn resolve(
        &self,
        call: ResolveClaimsRequest,
    ) -> Result<ResolveClaimsResponse, Status> {
        let mut proxy = self.proxy.clone();
        let answer = within("a resolution", proxy.resolve_claims(call)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn events(&self) -> Vec<EventEntry> {
        let request = ListEventsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            page_size: 1000,
            page_token: String::new(),
        };
        let mut owner = self.owner.clone();
        let page = within("a list", owner.list_events(request)).await.unwrap();
        page.into_inner().events
    }

    pub(crate) async fn claims(&self) -> Vec<ClaimEntry> {
        let request = ListClaimsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            predicate: None,
            page_size: 1000,
            page_token: String::new(),
        };
        let mut owner = self.owner.clone();
        let page = within("a list", owner.list_claims(request)).await.unwrap();
        page.into_inner().claims
    }

    /// The claims about the subject, as documents.
    pub(crate) async fn claim_documents(&self) -> Vec<Value> {
        let claims = self.claims().await.into_iter();
        claims.map(|entry| document(&entry.claim)).collect()
    }

    pub(crate) async fn explain(&self, claim: &str) -> Result<ExplainClaimResponse, Status> {
        let request = ExplainClaimRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            claim_ref: claim.to_owned(),
        };
        let mut owner = self.owner.clone();
        let answer = within("an explanation", owner.explain_claim(request)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn erase_event(&self, event: &str, number: u32) -> Result<u64, Status> {
        let request = EraseEventRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            event_ref: event.to_owned(),
            operation_id: operation(number),
        };
        let mut owner = self.owner.clone();
        let answer = within("an erasure", owner.erase_event(request)).await?;
        Ok(answer.into_inner().retracted_claims)
    }

    pub(crate) async fn erase_subject(&self, number: u32) -> Result<EraseSubjectResponse, Status> {
        let request = EraseSubjectRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            operation_id: operation(number),
        };
        let mut owner = self.owner.clone();
        let answer = within("an erasure", owner.erase_subject(request)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn propose(
        &self,
        submission: SubmitProposalRequest,
    ) -> Result<SubmitProposalResponse, Status> {
        let mut gateway = self.gateway.clone();
        let answer = within("a proposal", gateway.submit_proposal(submission)).await?;
        Ok(answer.into_inner())
    }

    /// Ends as a killed process does.
    pub(crate) async fn kill(self) {
        self.serving.kill().await;
    }
}

/// A document, which is canonical.
pub(crate) fn document(bytes: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(documents::bytes(&value), bytes);
    value
}

/// The values of resolved claims.
pub(crate) fn values(answer: &ResolveClaimsResponse) -> Vec<Value> {
    let claims = answer.claims.iter();
    claims.map(|claim| document(&claim.value)).collect()
}
