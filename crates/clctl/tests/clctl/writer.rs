//! What the policy engine may write, without a policy engine.

use std::sync::Arc;

use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::{Clock, SystemClock};
use cl_host::ids::{Ids, SystemIds};
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_model::canonical;
use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::time::UnixTime;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::receipt::v1::{AppendRequest, BeginRequest, CompleteRequest, Routing};
use prost_types::Timestamp;
use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::support::TestHome;

const ENGINE: &str = "spiffe://context-layer.local/exchange/cl-policy-engine";

/// The members that an intent fixes.
const FIXED: [&str; 5] = ["operation", "actor", "issuer", "subject_ref", "started_at"];

pub(crate) struct Writer {
    runtime: Runtime,
    client: ReceiptServiceClient<PeerChannel>,
    ids: SystemIds,
}

impl Writer {
    pub(crate) fn new(home: &TestHome) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = TlsFiles {
            chain: home.path("pki/cl-policy-engine.pem"),
            key: home.path("pki/cl-policy-engine.key"),
            trust: home.path("pki/ca.pem"),
        };
        let endpoints = home.endpoints().unwrap();
        let address = &endpoints["processes"]["cl-receipt-store"]["addr"];
        let target = Target {
            address: address.as_str().unwrap().to_owned(),
            id: "spiffe://context-layer.local/exchange/cl-receipt-store"
                .parse()
                .unwrap(),
        };
        let runtime = Runtime::new().unwrap();
        let credentials =
            Credentials::load(files, ServerTls::INTERNAL, Arc::clone(&clock)).unwrap();
        let channel = PeerChannel::new(target, credentials, ClientLimits::default()).unwrap();
        Self {
            client: ReceiptServiceClient::new(channel),
            ids: SystemIds::new(clock),
            runtime,
        }
    }

    /// Where the receipt of a new operation belongs, and its members.
    fn operation(&self) -> (Routing, Vec<u8>) {
        let operation_id = format!("urn:cl:operation:{}", self.ids.uuid().unwrap());
        let now = UnixTime::from_milliseconds(SystemClock.now_unix_ms());
        let draft = Draft::new(
            "policy.replay",
            ENGINE,
            "urn:cl:alias:x",
            Outcome::Success,
            "Again.",
            now,
        );
        let draft = draft
            .issued_by(ENGINE)
            .with_metadata("operation_id", &operation_id);
        let routing = Routing {
            tenant: "default".to_owned(),
            operation_id,
            subject_tag: None,
        };
        (routing, draft.members().unwrap())
    }

    pub(crate) fn append(&self, count: u64) {
        self.append_routed(None, count);
    }

    /// Appends receipts about one subject.
    pub(crate) fn append_about(&self, tag: &str, count: u64) {
        self.append_routed(Some(tag), count);
    }

    fn append_routed(&self, tag: Option<&str>, count: u64) {
        self.runtime.block_on(async {
            let mut calls = JoinSet::new();
            for _ in 0..count {
                let (routing, members) = self.operation();
                let request = AppendRequest {
                    routing: Some(Routing {
                        subject_tag: tag.map(str::to_owned),
                        ..routing
                    }),
                    body: Some(Body::Members(members)),
                };
                let mut client = self.client.clone();
                calls.spawn(async move { client.append(request).await.map(drop) });
                if calls.len() == 64 {
                    calls.join_next().await.unwrap().unwrap().unwrap();
                }
            }
            for appended in calls.join_all().await {
                appended.unwrap();
            }
        });
    }

    /// Announces an operation that is to end within two seconds; `complete` ends it.
    pub(crate) fn begin(&self) -> CompleteRequest {
        let (routing, members) = self.operation();
        let mut known: Map<String, Value> = serde_json::from_slice(&members).unwrap();
        known.retain(|name, _| FIXED.contains(&name.as_str()));
        let request = BeginRequest {
            routing: Some(routing.clone()),
            deadline: Some(Timestamp {
                seconds: SystemClock.now_unix_ms() / 1000 + 2,
                nanos: 0,
            }),
            members: canonical::to_text(&Value::Object(known)).into_bytes(),
        };
        let mut client = self.client.clone();
        self.runtime.block_on(client.begin(request)).unwrap();
        CompleteRequest {
            routing: Some(routing),
            members,
        }
    }

    pub(crate) fn complete(&self, request: CompleteRequest) {
        let mut client = self.client.clone();
        self.runtime.block_on(client.complete(request)).unwrap();
    }
}
