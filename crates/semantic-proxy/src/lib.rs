//! The semantic proxy: granted claims in, their least revealing form out.
//!
//! # Role
//!
//! It verifies a grant for itself, has the vault resolve it, and turns each claim into an item that
//! may leave (spec 8.2 step 6, 11.3 to 11.5): it checks the vault's answer against the plan, applies
//! the plan's projections and the decision's transforms, writes the text from a published template
//! with the value inside, and refuses everything when a denied value of the same sources would
//! leave with it. Each projection is announced to the receipt store before the vault is asked, and
//! nothing is returned before its receipt is durable.
//!
//! # Holds
//!
//! The transform key, under which it names people and other values within one exchange. Nothing
//! durable; raw claims only while a call lasts.
//!
//! # Trusts
//!
//! The policy engine's signature, and nobody's word beside it. The bundle issuer, to keep to what it
//! gets: it sees nothing that the grant does not allow to leave. The vault, for the claims
//! themselves: one that lies about values is believed, one that sends something outside the plan is
//! refused whole. Values are untrusted text of whoever wrote the source, and never become an
//! instruction.
//!
//! # A compromise yields
//!
//! The raw values of claims that grants allow while it lasts, and guesses at denied values of the
//! same sources, which it can test against their fingerprints. With the transform key, whether a
//! guessed person is the one behind a name. No claim without a grant, and no signature.

#![deny(missing_docs)]

pub mod config;
pub mod core;
pub mod error;
mod grpc;
pub mod keyfiles;
pub mod receipts;
mod service;
mod settlement;
pub mod vault;

use std::sync::Arc;

use cl_host::callers::{CallerTable, InvalidCallerTable};
use cl_host::clock::Clock;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_host::life::{Shutdown, Tasks};
use cl_host::trust::Trust;
use cl_host::{App, Callers};
use cl_model::vocabulary::Vocabulary;
use cl_wire::semantic::v1::semantic_proxy_service_server::SemanticProxyServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::core::names::Names;
use crate::grpc::ProxyRpc;
use crate::receipts::Receipts;
use crate::service::SemanticProxy;
use crate::vault::Vault;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-semantic-proxy";

/// Who may call which rpc.
const CALLERS: [(&str, &[&str]); 1] = [(
    "/contextlayer.semantic.v1.SemanticProxyService/ProjectClaims",
    &["exchange/cl-bundle-issuer"],
)];

/// What the proxy is made of.
pub struct Deps {
    /// Where claims come from.
    pub vault: Arc<dyn Vault>,
    /// Where its receipts go.
    pub receipts: Arc<dyn Receipts>,
    /// Whose grants count.
    pub trust: Arc<Trust>,
    /// What predicates mean.
    pub vocabulary: Vocabulary,
    /// What it calls people and values.
    pub names: Names,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The source of operation ids.
    pub ids: Arc<dyn Ids>,
    /// Its own SPIFFE id: the audience of its grants and the actor of its receipts.
    pub own: SpiffeId,
    /// Where its instruments come from.
    pub meter: Meter,
    /// Tells tasks when to end.
    pub shutdown: Shutdown,
    /// Where tasks run.
    pub tasks: Tasks,
}

/// Puts the proxy together and starts its tasks.
pub fn app(deps: Deps) -> Result<App, InvalidCallerTable> {
    let mut table = CallerTable::new(deps.own.trust_domain())?;
    for (method, callers) in CALLERS {
        table = table.allow(method, callers)?;
    }
    let settlement = settlement::run(
        Arc::clone(&deps.receipts),
        Arc::clone(&deps.clock),
        deps.shutdown.clone(),
    );
    deps.tasks.spawn("settlement", settlement);
    let watch = Arc::clone(&deps.trust).watch(config::TRUST_INTERVAL, deps.shutdown.token());
    deps.tasks.spawn("trust", watch);
    let proxy = Arc::new(SemanticProxy::new(deps));
    let service = SemanticProxyServiceServer::new(ProxyRpc::new(proxy));
    Ok(App::new(Routes::new(service), Callers::Table(table)))
}
