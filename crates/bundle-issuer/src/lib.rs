//! The bundle issuer: one bundle for one decision, handed out once.
//!
//! # Role
//!
//! It verifies a grant for itself, has the semantic proxy project what the grant allows, assembles
//! and signs the bundle and the disclosure notes beside it, and keeps both sealed until the one
//! recipient takes them (spec 7.5, 8.2 steps 7 and 8). A bundle goes from pending through its issue
//! receipt to live, and from live through its delivery receipt to its recipient; a crash anywhere
//! in between is finished by the outbox with the same bytes. It ends bundles by time and by
//! revocation, and has the receipts of recipients recorded.
//!
//! # Holds
//!
//! The bundle key, the notes key, and the sealing key of its own store: bundles until nobody can
//! have them any more, and where each bundle stands. Projected values only, and no raw claim.
//!
//! # Trusts
//!
//! The policy engine's signature. The semantic proxy, to have taken out what must not leave: what
//! it sends is compared with the plan all the same. The gateway, for whom it authenticated: one
//! that lies can take the bundle of any recipient, once, and leaves a receipt. The clock, but for
//! its steps: one that steps back revives nothing, and one that jumps ahead ends nothing for good
//! before the jump has lasted.
//!
//! # A compromise yields
//!
//! The projected values of bundles that are not handed out yet, and signed bundles with other
//! contents; none that goes beyond its scope statement gets past a consumer, and none comes without
//! a decision of the policy engine.

#![deny(missing_docs)]

pub mod config;
pub mod core;
pub mod error;
mod grpc;
pub mod keyfiles;
mod outbox;
pub mod proxy;
pub mod receipts;
mod service;
pub mod store;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use cl_host::callers::CallerTable;
use cl_host::clock::{Clock, SettledClock};
use cl_host::identity::SpiffeId;
use cl_host::life::{Shutdown, Tasks};
use cl_host::trust::Trust;
use cl_host::{App, BoxError, Callers};
use cl_model::part::Issuer;
use cl_wire::bundle::v1::bundle_service_server::BundleServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::core::bundle::Times;
use crate::core::keys::Keys;
use crate::grpc::BundleRpc;
use crate::outbox::Outbox;
use crate::proxy::Proxy;
use crate::receipts::Receipts;
use crate::service::BundleIssuer;
use crate::store::Store;
use crate::sweep::Sweep;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-bundle-issuer";

const POLICY_ENGINE: &[&str] = &["exchange/cl-policy-engine"];
const GATEWAY: &[&str] = &["edge/cl-gateway"];
const REVOKERS: &[&str] = &["exchange/cl-policy-engine", "vault/cl-vault", "operator/*"];

/// Who may call which rpc.
const CALLERS: [(&str, &[&str]); 5] = [
    (
        "/contextlayer.bundle.v1.BundleService/IssueBundle",
        POLICY_ENGINE,
    ),
    (
        "/contextlayer.bundle.v1.BundleService/RedeemBundle",
        GATEWAY,
    ),
    ("/contextlayer.bundle.v1.BundleService/CheckBundle", GATEWAY),
    (
        "/contextlayer.bundle.v1.BundleService/RecordConsumerReceipt",
        GATEWAY,
    ),
    (
        "/contextlayer.bundle.v1.BundleService/RevokeBundles",
        REVOKERS,
    ),
];

/// What the issuer is made of.
pub struct Deps {
    /// Its own state.
    pub store: Arc<dyn Store>,
    /// Where its receipts go.
    pub receipts: Arc<dyn Receipts>,
    /// Where items come from.
    pub proxy: Arc<dyn Proxy>,
    /// Whose grants count.
    pub trust: Arc<Trust>,
    /// Its keys.
    pub keys: Keys,
    /// How long things last.
    pub times: Times,
    /// Time between two looks for bundles that have ended.
    pub sweep_interval: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Its own SPIFFE id: the audience of its grants, the issuer of its bundles and the actor of
    /// its receipts.
    pub own: SpiffeId,
    /// Where its instruments come from.
    pub meter: Meter,
    /// Tells tasks when to end.
    pub shutdown: Shutdown,
    /// Where tasks run.
    pub tasks: Tasks,
}

/// Puts the issuer together and starts its tasks.
pub fn app(deps: Deps) -> Result<App, BoxError> {
    let mut table = CallerTable::new(deps.own.trust_domain())?;
    for (method, callers) in CALLERS {
        table = table.allow(method, callers)?;
    }
    let issuer = Issuer::new(deps.own.as_str()).ok_or("the own SPIFFE id is too long")?;
    let max_step = Duration::from_secs(deps.times.max_clock_step_seconds);
    let stored = deps.store.high_water()?;
    let time = Arc::new(SettledClock::new(deps.clock, stored, max_step));
    let failures = deps
        .meter
        .u64_counter("bundle_receipt_failures")
        .with_description("Receipts that the receipt store did not confirm at once.")
        .build();
    let outbox = Arc::new(Outbox::new(
        Arc::clone(&deps.store),
        Arc::clone(&deps.receipts),
        Arc::clone(&time),
        deps.times,
        deps.own.clone(),
        failures,
    ));
    deps.tasks
        .spawn("outbox", Arc::clone(&outbox).run(deps.shutdown.clone()));
    let sweep = Sweep {
        store: Arc::clone(&deps.store),
        time: Arc::clone(&time),
        times: deps.times,
        interval: deps.sweep_interval,
    };
    deps.tasks.spawn("sweep", sweep.run(deps.shutdown.clone()));
    let watch = Arc::clone(&deps.trust).watch(config::TRUST_INTERVAL, deps.shutdown.token());
    deps.tasks.spawn("trust", watch);
    let issuer = BundleIssuer {
        store: deps.store,
        receipts: deps.receipts,
        proxy: deps.proxy,
        trust: deps.trust,
        outbox,
        keys: deps.keys,
        time,
        times: deps.times,
        own: deps.own,
        issuer,
        calls: deps
            .meter
            .u64_counter("bundle_calls")
            .with_description("Calls about bundles, by how they ended.")
            .build(),
    };
    let service = BundleServiceServer::new(BundleRpc::new(Arc::new(issuer)));
    Ok(App::new(Routes::new(service), Callers::Table(table)))
}
