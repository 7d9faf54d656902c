//! Both services in this process, over mutual TLS and on RocksDB.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cl_host::App;
use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::{Clock, SystemClock};
use cl_host::identity::SpiffeId;
use cl_host::ids::{Ids, SystemIds};
use cl_host::life::{Listeners, Server, Shutdown, Signals, Tasks, Timings};
use cl_host::telemetry::Telemetry;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_kv::{Engine, KeyEncryptionKey, RocksEngine, Sealed};
use cl_model::key::{Seed, SigningKey};
use cl_model::passkey::RelyingParty;
use cl_model::scalar::KeyId;
use cl_pki::{Leaf, Validity};
use cl_policy_engine::core::grant::Audiences;
use cl_policy_engine::core::keys::Keys;
use cl_policy_engine::people::PeopleSettings;
use cl_policy_engine::receipts::GrpcReceipts;
use cl_policy_engine::store::KvStore;
use cl_receipt_store::core::command::Rules;
use cl_receipt_store::core::readers::Readers;
use cl_receipt_store::core::retention::{DEFAULT_TABLE, Retention};
use cl_receipt_store::core::trees::LogKey;
use cl_receipt_store::core::writers::Writers;
use cl_receipt_store::pin::FolderPin;
use cl_receipt_store::readers::ReadersFile;
use cl_wire::policy::v1::policy_admin_service_client::PolicyAdminServiceClient;
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::policy::v1::{ActivateSnapshotRequest, PutSnapshotRequest};
use ring::rand::SystemRandom;
use tempfile::TempDir;
use tokio::net::TcpListener;
use zeroize::Zeroizing;

use crate::FOLDER;
use crate::documents::{self, TENANT};
use crate::floor::{Count, Counted};

const TRUST_DOMAIN: &str = "example.org";
pub(crate) const STORE: &str = "exchange/cl-receipt-store";
pub(crate) const ENGINE: &str = "exchange/cl-policy-engine";
pub(crate) const GATEWAY: &str = "edge/cl-gateway";
const OPERATOR: &str = "operator/ann";

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}

pub(crate) fn spiffe(path: &str) -> SpiffeId {
    id(path).parse().expect("an id")
}

pub(crate) fn kek() -> KeyEncryptionKey {
    KeyEncryptionKey::new(Zeroizing::new([9; 32]))
}

/// The policy engine may write what it writes.
pub(crate) fn receipt_rules() -> Rules {
    let table = serde_json::json!({"writers_version": 1, "writers": {(id(ENGINE)): {
        "actors": [id(ENGINE)], "operations": ["policy.*"], "consumer_operations": [],
    }}});
    Rules {
        own_id: spiffe(STORE),
        writers: Writers::parse(table.to_string().as_bytes()).expect("a table"),
    }
}

/// Nothing is read.
pub(crate) fn no_readers() -> Arc<ReadersFile> {
    let table = br#"{"readers_version":1,"readers":{}}"#;
    ReadersFile::fixed(Readers::parse(table).expect("a table"))
}

pub(crate) fn default_retention() -> Arc<Retention> {
    Arc::new(Retention::parse(DEFAULT_TABLE.as_bytes()).expect("a table"))
}

pub(crate) fn signing_key() -> SigningKey {
    let kid = KeyId::new("urn:cl:key:decision:bench").expect("a key id");
    SigningKey::from_seed(kid, &Seed::new(&[1; 32]).expect("32 bytes")).expect("a key")
}

pub(crate) fn log_key() -> LogKey {
    LogKey::new(signing_key(), TRUST_DOMAIN)
}

/// The services, their clients, and what they write.
pub(crate) struct Deployment {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
    pub(crate) policy: PolicyServiceClient<PeerChannel>,
    /// Synced batches of the receipt store.
    pub(crate) store_writes: Arc<Count>,
    /// Synced batches of the policy engine.
    pub(crate) engine_writes: Arc<Count>,
}

impl Deployment {
    /// Starts both services; a snapshot is active.
    pub(crate) async fn start(telemetry: &Telemetry) -> Self {
        let folder = TempDir::new_in(FOLDER).expect("a folder");
        let authority = Authority::new();
        let (store_writes, engine_writes) = (Arc::default(), Arc::default());
        let counted = |name: &str, count: &Arc<Count>| {
            let engine = RocksEngine::open(&folder.path().join(name)).expect("a store");
            Counted::new(engine, Arc::clone(count))
        };
        let receipts = Starting::new(telemetry, authority.credentials(STORE));
        let receipts = receipts
            .receipt_store(
                counted("receipts", &store_writes),
                folder.path().join("pins"),
            )
            .await;
        let own = authority.credentials(ENGINE);
        let to_receipts = channel(receipts, Arc::clone(&own), STORE);
        let engine = Starting::new(telemetry, own);
        let engine = engine
            .policy_engine(counted("policy", &engine_writes), to_receipts)
            .await;
        let operator = channel(engine, authority.credentials(OPERATOR), ENGINE);
        activate(PolicyAdminServiceClient::new(operator)).await;
        let gateway = channel(engine, authority.credentials(GATEWAY), ENGINE);
        Self {
            policy: PolicyServiceClient::new(gateway),
            folder,
            authority,
            store_writes,
            engine_writes,
        }
    }
}

async fn activate(mut admin: PolicyAdminServiceClient<PeerChannel>) {
    let put = PutSnapshotRequest {
        tenant: TENANT.to_owned(),
        snapshot: documents::bytes(&documents::snapshot()),
        operation_id: documents::operation(0xa000_0000),
        signature: None,
    };
    let stored = admin.put_snapshot(put).await.expect("stored").into_inner();
    let activation = ActivateSnapshotRequest {
        tenant: TENANT.to_owned(),
        digest: stored.digest,
        expected_current_digest: None,
        operation_id: documents::operation(0xa000_0001),
    };
    admin.activate_snapshot(activation).await.expect("active");
}

/// A server that is put together as its process does it.
struct Starting {
    telemetry: Telemetry,
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    shutdown: Shutdown,
    tasks: Tasks,
}

impl Starting {
    fn new(telemetry: &Telemetry, credentials: Arc<Credentials>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let shutdown = Shutdown::default();
        Self {
            telemetry: telemetry.clone(),
            credentials,
            ids: Arc::new(SystemIds::new(Arc::clone(&clock))),
            clock,
            tasks: Tasks::new(shutdown.clone()),
            shutdown,
        }
    }

    async fn receipt_store(self, engine: Counted, pins: PathBuf) -> u16 {
        let sealed = Sealed::open(engine, kek(), Arc::new(SystemRandom::new()));
        let sealed = sealed.expect("a sealed store");
        let app = cl_receipt_store::assemble(cl_receipt_store::Deps {
            store: cl_receipt_store::open_store(sealed, &self.ids).expect("a receipt store"),
            pin: Arc::new(FolderPin::open(pins).expect("a pin folder")),
            adopts_lost_pins: false,
            cosigning: cl_receipt_store::cosigning::Cosigning::default(),
            log_key: log_key(),
            rules: receipt_rules(),
            readers: no_readers(),
            retention: default_retention(),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            meter: self.telemetry.meter(),
            shutdown: self.shutdown.clone(),
            tasks: self.tasks.clone(),
            sweep_interval: Duration::from_secs(1),
            retention_interval: Duration::from_secs(60),
            max_clock_step: Duration::from_secs(60),
        });
        self.serve(app.expect("an app")).await
    }

    async fn policy_engine(self, engine: Counted, receipts: PeerChannel) -> u16 {
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let sealed = Sealed::open(engine, kek(), Arc::new(SystemRandom::new()));
        let seed = |byte| Seed::new(&[byte; 32]).expect("32 bytes");
        let app = cl_policy_engine::app(cl_policy_engine::Deps {
            store: Arc::new(KvStore::new(sealed.expect("a sealed store"))),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            issuer: None,
            keys: Keys::new(signing_key(), &seed(2), &seed(3)),
            retention_seconds: 3600,
            sweep_interval: Duration::from_secs(60),
            max_clock_step: Duration::from_secs(60),
            people: PeopleSettings {
                relying_party: RelyingParty::new("localhost", vec!["https://localhost".to_owned()])
                    .expect("a relying party"),
                approval_seconds: 60,
            },
            signers: None,
            audiences: Audiences::of(TRUST_DOMAIN).expect("a trust domain"),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            own: self.credentials.own().id,
            meter: self.telemetry.meter(),
            shutdown: self.shutdown.clone(),
            tasks: self.tasks.clone(),
        });
        self.serve(app.expect("an app")).await
    }

    /// Serves on a free port until the process ends.
    async fn serve(self, app: App) -> u16 {
        let main = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let admin = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = main.local_addr().expect("an address").port();
        let server = Server {
            app,
            credentials: self.credentials,
            telemetry: self.telemetry,
            timings: Timings::default(),
            shutdown: self.shutdown,
            tasks: self.tasks,
        };
        let (signals, receiver) = Signals::injected();
        tokio::spawn(async move {
            let _held_so_that_no_signal_comes = signals;
            server.serve(Listeners { main, admin }, receiver).await
        });
        port
    }
}

/// Calls the server with this SPIFFE path.
pub(crate) fn channel(port: u16, own: Arc<Credentials>, path: &str) -> PeerChannel {
    let target = Target {
        address: format!("localhost:{port}"),
        id: spiffe(path),
    };
    PeerChannel::new(target, own, ClientLimits::default()).expect("a channel")
}

/// From 2000 to 2090.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 3_786_912_000,
};

/// Issues the certificates of the deployment.
pub(crate) struct Authority(cl_pki::Authority);

impl Authority {
    pub(crate) fn new() -> Self {
        Self(cl_pki::Authority::new("bench", VALIDITY).expect("an authority"))
    }

    pub(crate) fn credentials(&self, path: &str) -> Arc<Credentials> {
        let folder = TempDir::new().expect("a folder");
        let files = TlsFiles {
            chain: folder.path().join("own.pem"),
            key: folder.path().join("own.key"),
            trust: folder.path().join("ca.pem"),
        };
        let issued = self.0.issue(&Leaf {
            uris: &[&id(path)],
            names: &["localhost"],
            validity: VALIDITY,
            serial: 1,
        });
        let issued = issued.expect("a certificate");
        write(&files.chain, &issued.chain_pem);
        write(&files.key, &issued.key_pem);
        write(&files.trust, self.0.pem());
        let clock = Arc::new(SystemClock);
        Credentials::load(files, ServerTls::INTERNAL, clock).expect("credentials")
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("private");
}
