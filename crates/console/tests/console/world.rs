//! A deployment in the test's own process: the console, and fakes of what is behind it.

use std::sync::Arc;

use cl_console::engine::Engine;
use cl_console::origin::Origin;
use cl_console::receipts::{Log, Receipts};
use cl_console::{Deps, Limits};
use cl_host::clock::ManualClock;
use cl_host::ids::SystemIds;
use cl_host::life::{Server, Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_host::trust::Trust;
use cl_testbed::{Authority, HANG, Serving, TRUST_DOMAIN, telemetry, timings};
use cl_wire::policy::v1::approval_service_server::ApprovalServiceServer;
use cl_wire::receipt::v1::receipt_service_server::ReceiptServiceServer;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::service::Routes;

use crate::client::{Answer, Call, Client};
use crate::engine::FakeEngine;
use crate::receipt_store::FakeReceiptStore;

const ENGINE: &str = "exchange/cl-policy-engine";
const STORE: &str = "exchange/cl-receipt-store";

const CONSOLE: &str = "edge/cl-console";

/// What the console calls of the policy engine.
const METHODS: &[&str] = &[
    "/contextlayer.policy.v1.ApprovalService/BeginSignIn",
    "/contextlayer.policy.v1.ApprovalService/FinishSignIn",
    "/contextlayer.policy.v1.ApprovalService/EndSession",
    "/contextlayer.policy.v1.ApprovalService/BeginEnrolment",
    "/contextlayer.policy.v1.ApprovalService/FinishEnrolment",
    "/contextlayer.policy.v1.ApprovalService/ListPendingApprovals",
    "/contextlayer.policy.v1.ApprovalService/GetPendingApproval",
    "/contextlayer.policy.v1.ApprovalService/BeginAnswer",
    "/contextlayer.policy.v1.ApprovalService/FinishAnswer",
    "/contextlayer.policy.v1.ApprovalService/ListDecisions",
    "/contextlayer.policy.v1.ApprovalService/GetDecision",
    "/contextlayer.policy.v1.ApprovalService/RevokeGrant",
    "/contextlayer.policy.v1.ApprovalService/ListSubjects",
];

/// 2030-06-01T08:00:05Z.
pub(crate) const NOW_S: i64 = 1_906_531_205;

/// The passkey of the person, as far as the fake engine looks at it.
pub(crate) const CREDENTIAL: [u8; 16] = [7; 16];

pub(crate) struct World {
    pub(crate) engine: FakeEngine,
    pub(crate) receipts: FakeReceiptStore,
    pub(crate) client: Client,
    pub(crate) origin: String,
    pub(crate) telemetry: Telemetry,
    _home: TempDir,
    _servers: [Serving; 3],
}

pub(crate) struct Options {
    pub(crate) limits: Limits,
    pub(crate) rp_id: &'static str,
    pub(crate) has_receipts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits {
                max_in_flight: 64,
                tries_per_minute: 60_000,
                max_body_time: HANG,
            },
            rp_id: "localhost",
            has_receipts: true,
        }
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        cl_testbed::subscribe("trace");
        let authority = Authority::new();
        let engine = FakeEngine::default();
        engine.know(&CREDENTIAL);
        let receipts = FakeReceiptStore::new();
        let routes = Routes::new(ApprovalServiceServer::new(engine.clone()));
        let engine_server = Serving::peer(&authority, ENGINE, routes, METHODS, CONSOLE).await;
        let routes = Routes::new(ReceiptServiceServer::new(receipts.clone()));
        let reads = [
            "/contextlayer.receipt.v1.ReceiptService/GetReceipt",
            "/contextlayer.receipt.v1.ReceiptService/ListReceipts",
        ];
        let store_server = Serving::peer(&authority, STORE, routes, &reads, CONSOLE).await;

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let origin = format!("https://localhost:{}", addr.port());
        engine.serve(&origin, options.rp_id);
        let home = tempfile::tempdir().unwrap();
        let trust = home.path().join("trust.json");
        std::fs::write(&trust, receipts.trust()).unwrap();
        let log = Log::new(Trust::load(trust).unwrap(), TRUST_DOMAIN.to_owned());
        let credentials = authority.edge_credentials(CONSOLE);
        let to = |server: &Serving| server.channel(Arc::clone(&credentials));
        let store = Receipts::new(to(&store_server), log);
        let clock = Arc::new(ManualClock::new(NOW_S * 1000));
        let ids = Arc::new(SystemIds::new(Arc::<ManualClock>::clone(&clock)));
        let telemetry = telemetry();
        let app = cl_console::app(Deps {
            origin: Origin::parse(&origin).unwrap(),
            engine: Engine::new(to(&engine_server)),
            receipts: options.has_receipts.then_some(store),
            limits: options.limits,
            form_key: Deps::form_key(&*ids).unwrap(),
            clock,
            ids,
            meter: telemetry.meter(),
        });
        let shutdown = Shutdown::default();
        let server = Server {
            app,
            credentials,
            telemetry: telemetry.clone(),
            timings: timings(),
            tasks: Tasks::new(shutdown.clone()),
            shutdown,
        };
        let own = Serving::serve(server, listener).await;
        Self {
            engine,
            receipts,
            client: Client::new(addr, authority.root()),
            origin,
            telemetry,
            _home: home,
            _servers: [engine_server, store_server, own],
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Call::get(path).by(&self.client).await
    }

    /// Signs the person in as the script of the page does; their browser from then on.
    pub(crate) async fn signed_in(&self) -> Person<'_> {
        let visit = self.visit("/sign-in").await;
        let open = visit.begin("/sign-in/begin", &[]).await;
        let answer = visit.post("/sign-in", &self.assertion(&open)).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.cookie("__Host-cl-session");
        let mut person = Person {
            world: self,
            cookie,
            csrf: String::new(),
        };
        person.csrf = person.get("/approvals").await.field("csrf");
        person
    }

    /// A browser that is not signed in, with a page.
    pub(crate) async fn visit(&self, path: &str) -> Person<'_> {
        let page = self.get(path).await;
        Person {
            world: self,
            cookie: page.cookie("__Host-cl-visit"),
            csrf: page.field("csrf"),
        }
    }

    /// The fields that a passkey's answer to a challenge gives.
    pub(crate) fn assertion(&self, open: &serde_json::Value) -> Vec<(&'static str, String)> {
        let ceremony = open["ceremony_id"].as_str().unwrap();
        let challenge = open["challenge"].as_str().unwrap();
        self.signed(ceremony, challenge, "webauthn.get")
    }

    pub(crate) fn signed(
        &self,
        ceremony: &str,
        challenge: &str,
        kind: &str,
    ) -> Vec<(&'static str, String)> {
        use data_encoding::BASE64URL_NOPAD as BASE64;

        let data = serde_json::json!({
            "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false,
        });
        vec![
            ("ceremony_id", ceremony.to_owned()),
            ("credential_id", BASE64.encode(&CREDENTIAL)),
            ("client_data", BASE64.encode(data.to_string().as_bytes())),
            ("authenticator_data", BASE64.encode(&[0; 37])),
            ("signature", BASE64.encode(&[1; 70])),
        ]
    }
}

/// A browser with its cookie, and the value of its forms.
pub(crate) struct Person<'a> {
    pub(crate) world: &'a World,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Person<'_> {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let call = Call::get(path).header("cookie", &self.cookie);
        call.by(&self.world.client).await
    }

    /// A form of the console's own page, ready to be sent or spoilt.
    pub(crate) fn form(&self, path: &str, fields: &[(&str, String)]) -> Call {
        let csrf = ("csrf", self.csrf.clone());
        let fields: Vec<_> = fields.iter().cloned().chain([csrf]).collect();
        Call::post(path, &fields)
            .header("cookie", &self.cookie)
            .header("origin", &self.world.origin)
            .header("sec-fetch-site", "same-origin")
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, String)]) -> Answer {
        self.form(path, fields).by(&self.world.client).await
    }

    pub(crate) async fn begin(&self, path: &str, fields: &[(&str, String)]) -> serde_json::Value {
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Looks at an item and answers it; the page with what is to be signed.
    pub(crate) async fn review(&self, name: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.get(&format!("/approvals/{name}")).await;
        let digest = ("item_digest", page.field("item_digest"));
        let given = fields
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let fields: Vec<_> = given.chain([digest]).collect();
        self.post(&format!("/approvals/{name}/answer"), &fields)
            .await
    }

    /// The fields that confirm a reviewed answer.
    pub(crate) fn confirmation(&self, review: &Answer) -> Vec<(&'static str, String)> {
        let challenge = review.attribute("data-challenge");
        let ceremony = review.field("ceremony_id");
        let mut fields = self.world.signed(&ceremony, &challenge, "webauthn.get");
        fields.push(("operation_id", review.field("operation_id")));
        fields
    }
}
