//! The vault: private sources, the claims read out of them, and who got which.
//!
//! # Role
//!
//! It takes source events from capture, keeps them and their payloads sealed for each subject,
//! extracts claims, and keeps contradicting ones side by side (spec 7.1, 7.2, 8.1). It resolves
//! claims for the semantic proxy under a grant that it verifies itself, takes memory proposals as
//! pending (8.4, 9.4), and shows its owner what it holds and erases it (11.7). `docs/vault.md`
//! tells the rules.
//!
//! # Holds
//!
//! Everything private: events, payloads, claims, proposals, and the maps from an exchange's alias
//! and handles to subject and sources. Two stores apart from each other: the subjects' data keys
//! under the key-encryption key, and the data, each subject's under its own key and all of it under
//! the data store's key. The alias key, and the subject-tag key, which the policy engine holds too.
//!
//! # Trusts
//!
//! The policy engine, for grants: whoever can sign one can have any claim resolved, and leaves a
//! receipt here. The semantic proxy, to be the one that its certificate names. Capture, for the
//! subject and the items that it hands in: one that lies can add events, and cannot assert claims
//! beyond what extraction reads, raise their trust, or read. The owner of a tenant, for that
//! tenant. Documents, texts and payloads are hostile input: bounded, strict, and never repeated in
//! an error or a log.
//!
//! # A compromise yields
//!
//! The authority itself: all that is held of all subjects, until they are erased. What was erased
//! before stays gone. Receipts of what left earlier are not its to change.

#![deny(missing_docs)]

pub mod config;
pub mod core;
pub mod error;
pub mod extraction;
mod grpc;
pub mod keyfiles;
pub mod notices;
mod outbox;
pub mod receipts;
mod service;
pub mod store;

use std::sync::Arc;

use cl_host::callers::{CallerTable, InvalidCallerTable};
use cl_host::clock::Clock;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_host::life::{Shutdown, Tasks};
use cl_host::trust::Trust;
use cl_host::{App, Callers};
use cl_model::vocabulary::Vocabulary;
use cl_wire::vault::v1::capture_service_server::CaptureServiceServer;
use cl_wire::vault::v1::memory_service_server::MemoryServiceServer;
use cl_wire::vault::v1::owner_service_server::OwnerServiceServer;
use cl_wire::vault::v1::vault_service_server::VaultServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::core::content::Extractor;
use crate::core::keys::Keys;
use crate::grpc::{CaptureRpc, MemoryRpc, OwnerRpc, VaultRpc};
use crate::notices::Notices;
use crate::outbox::Outbox;
use crate::receipts::Receipts;
use crate::service::Vault;
use crate::service::erase::Eraser;
use crate::store::Store;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-vault";

const PROXY: &[&str] = &["exchange/cl-semantic-proxy"];
const CAPTURE: &[&str] = &["vault/cl-capture"];
const OWNERS: &[&str] = &["owner/*"];
const GATEWAY: &[&str] = &["edge/cl-gateway"];

/// Who may call which rpc. That an owner's tenant is the one in the message is checked in each.
const CALLERS: [(&str, &[&str]); 9] = [
    ("/contextlayer.vault.v1.VaultService/ResolveClaims", PROXY),
    (
        "/contextlayer.vault.v1.CaptureService/CaptureEvents",
        CAPTURE,
    ),
    (
        "/contextlayer.vault.v1.CaptureService/StorePayload",
        CAPTURE,
    ),
    ("/contextlayer.vault.v1.OwnerService/ListEvents", OWNERS),
    ("/contextlayer.vault.v1.OwnerService/ListClaims", OWNERS),
    ("/contextlayer.vault.v1.OwnerService/ExplainClaim", OWNERS),
    ("/contextlayer.vault.v1.OwnerService/EraseSubject", OWNERS),
    ("/contextlayer.vault.v1.OwnerService/EraseEvent", OWNERS),
    (
        "/contextlayer.vault.v1.MemoryService/SubmitProposal",
        GATEWAY,
    ),
];

/// What the vault is made of.
pub struct Deps {
    /// Its own state.
    pub store: Arc<Store>,
    /// Where its receipts go.
    pub receipts: Arc<dyn Receipts>,
    /// Where its notices of deletions go.
    pub notices: Arc<dyn Notices>,
    /// The keys that it names things with.
    pub keys: Arc<Keys>,
    /// Whose grants count.
    pub trust: Arc<Trust>,
    /// What reads claims out of items.
    pub extractor: Arc<dyn Extractor>,
    /// The predicates that it knows.
    pub vocabulary: Vocabulary,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids and random bytes.
    pub ids: Arc<dyn Ids>,
    /// Its own SPIFFE id: the actor of its receipts, the audience of its grants.
    pub own: SpiffeId,
    /// Where its instruments come from.
    pub meter: Meter,
    /// Tells the outbox when to end.
    pub shutdown: Shutdown,
    /// Where the outbox runs.
    pub tasks: Tasks,
}

/// Puts the vault together and starts its outbox.
pub fn app(deps: Deps) -> Result<App, InvalidCallerTable> {
    let mut table = CallerTable::new(deps.own.trust_domain())?;
    for (method, callers) in CALLERS {
        table = table.allow(method, callers)?;
    }
    let outbox = Arc::new(Outbox::new(&deps));
    let eraser = Arc::new(Eraser::new(&deps));
    deps.tasks.spawn(
        "outbox",
        Arc::clone(&outbox).run(Arc::clone(&eraser), deps.shutdown.clone()),
    );
    let vault = Arc::new(Vault::new(deps, outbox, eraser));
    let routes = Routes::new(VaultServiceServer::new(VaultRpc::new(Arc::clone(&vault))))
        .add_service(CaptureServiceServer::new(CaptureRpc::new(Arc::clone(
            &vault,
        ))))
        .add_service(OwnerServiceServer::new(OwnerRpc::new(Arc::clone(&vault))))
        .add_service(MemoryServiceServer::new(MemoryRpc::new(vault)));
    Ok(App::new(routes, Callers::Table(table)))
}
