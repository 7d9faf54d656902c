//! The policy engine: who may know what, for which purpose, and the proof of it.
//!
//! # Role
//!
//! It keeps each tenant's policy snapshots, decides context requests by the active one, deny by
//! default, and signs grants: the only capability of the system (spec 9). It owns the state of each
//! request. A submission is answered only when request, decision and grant are stored in one batch
//! and the decision's receipt is durable in the receipt store; after a failure in between, the
//! outbox settles it, also across a crash. Whoever asks for the decision meanwhile is told to wait.
//! After a decision that allows something it asks the bundle issuer for the bundle, at once and then
//! again until the decision ends. Decisions with their inputs are kept for replay until a time after
//! their end, and then forgotten; their receipts stay.
//!
//! Where the policy asks for a person, the request waits for one who may approve for its subject. The
//! engine writes the answer down as a document, has the person's passkey sign it, decides again with
//! it, and stores both in one step (spec 9.3).
//!
//! # Holds
//!
//! The passkeys of approvers with their counters, open challenges, and sessions by the digests of
//! their tokens. The decision key, the alias key, the subject-tag key (which the vault holds too), and the
//! sealing key of its own store: requests, the facts they came with, decisions, grants, snapshots,
//! and receipts that are not written yet. No source, claim or value of any person.
//!
//! # Trusts
//!
//! The gateway, for whom it authenticated: one that lies can act as any principal, but only within
//! that principal's policy, and each decision leaves a receipt. Operators, to put and activate
//! snapshots: they decide the policy, and cannot do so without a receipt. The receipt store, to
//! keep what it acknowledged. The console, to show people what they sign: one that lies can get an
//! item approved that waits anyway, and only by a gesture of that person at that moment; it reads the
//! queues of those who are signed in. The bundle issuer, to say whether a bundle exists: one that lies hides
//! a bundle, or names one that is not there. Requests and snapshots themselves are hostile input: bounded, strict,
//! and never repeated in an error or a log.
//!
//! # A compromise yields
//!
//! The authority itself: whoever controls this process can sign any grant, and so have the vault
//! resolve any claim for any recipient, with or without receipts of the decision. The receipts of
//! the later steps are not its to suppress.

#![deny(missing_docs)]

mod ages;
mod compiled;
pub mod config;
pub mod core;
pub mod error;
mod grpc;
pub mod issuer;
mod issuing;
pub mod keyfiles;
mod outbox;
pub mod people;
pub mod receipts;
mod revoking;
mod service;
mod shadowing;
pub mod signers;
pub mod store;
mod sweep;
mod turns;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use cl_host::callers::{CallerTable, InvalidCallerTable};
use cl_host::clock::Clock;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_host::life::{Shutdown, Tasks};
use cl_host::{App, Callers};
use cl_model::time::UnixTime;
use cl_wire::policy::v1::approval_service_server::ApprovalServiceServer;
use cl_wire::policy::v1::approver_admin_service_server::ApproverAdminServiceServer;
use cl_wire::policy::v1::policy_admin_service_server::PolicyAdminServiceServer;
use cl_wire::policy::v1::policy_service_server::PolicyServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::ages::Ages;
use crate::core::grant::Audiences;
use crate::core::keys::Keys;
use crate::grpc::{AdminRpc, ApprovalRpc, ApproverAdminRpc, PolicyRpc};
use crate::issuer::Issuer;
use crate::issuing::Issuing;
use crate::outbox::Outbox;
use crate::people::PeopleSettings;
use crate::receipts::Receipts;
use crate::revoking::Revoking;
use crate::service::PolicyEngine;
use crate::shadowing::Shadowing;
use crate::signers::{Signers, UnsignedStart};
use crate::store::Store;
use crate::sweep::Sweep;
use crate::watching::Changes;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-policy-engine";

const GATEWAY: &[&str] = &["edge/cl-gateway"];
const OPERATORS: &[&str] = &["operator/*"];

const CONSOLE: &[&str] = &["edge/cl-console"];

/// Who may call which rpc, by service.
const CALLERS: [(&str, &[&str], &[&str]); 4] = [
    (
        "contextlayer.policy.v1.PolicyService",
        GATEWAY,
        &["SubmitRequest", "GetRequest", "WatchRequest"],
    ),
    (
        "contextlayer.policy.v1.PolicyAdminService",
        OPERATORS,
        &[
            "PutSnapshot",
            "GetSnapshot",
            "ListSnapshots",
            "ActivateSnapshot",
            "ReplayDecision",
            "ListRecordedDecisions",
            "ExplainDecision",
            "SimulateSnapshot",
            "SetShadow",
            "ClearShadow",
            "GetShadow",
            "SetAnomalyState",
            "ClearAnomalyState",
            "ListAnomalyStates",
            "SetDelegation",
            "RevokeDelegation",
            "ListDelegations",
        ],
    ),
    (
        "contextlayer.policy.v1.ApproverAdminService",
        OPERATORS,
        &[
            "OpenEnrolment",
            "ListCredentials",
            "ConfirmCredential",
            "RevokeCredential",
            "GetApproval",
        ],
    ),
    (
        "contextlayer.policy.v1.ApprovalService",
        CONSOLE,
        &[
            "BeginSignIn",
            "FinishSignIn",
            "EndSession",
            "BeginEnrolment",
            "FinishEnrolment",
            "ListPendingApprovals",
            "GetPendingApproval",
            "BeginAnswer",
            "FinishAnswer",
            "ListDecisions",
            "GetDecision",
            "ExplainDecision",
            "RevokeGrant",
            "ListSubjects",
        ],
    ),
];

/// What the engine is made of.
pub struct Deps {
    /// Its own state.
    pub store: Arc<dyn Store>,
    /// Where its receipts go.
    pub receipts: Arc<dyn Receipts>,
    /// Who issues bundles, if anybody.
    pub issuer: Option<Arc<dyn Issuer>>,
    /// Its keys.
    pub keys: Keys,
    /// Who has to sign policy snapshots; without them, nobody has to.
    pub signers: Option<Signers>,
    /// Who may act on its grants.
    pub audiences: Audiences,
    /// How long a decision and its inputs are kept after the decision ended, and what an operation id
    /// was used for, in seconds.
    pub retention_seconds: u64,
    /// Time between two looks for what has been kept long enough, and at the ages of policies.
    pub sweep_interval: Duration,
    /// How far the clock may step ahead and be believed at once when something is forgotten.
    pub max_clock_step: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The source of operation ids.
    pub ids: Arc<dyn Ids>,
    /// For whom people's passkeys are, and how long a request waits for them.
    pub people: PeopleSettings,
    /// Its own SPIFFE id: the actor of its receipts.
    pub own: SpiffeId,
    /// Where its instruments come from.
    pub meter: Meter,
    /// Tells the outbox when to end.
    pub shutdown: Shutdown,
    /// Where the outbox runs.
    pub tasks: Tasks,
}

/// Why an engine cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum InvalidApp {
    /// Its table of callers is malformed.
    #[error(transparent)]
    Callers(#[from] InvalidCallerTable),
    /// Its policies are not signed as they have to be.
    #[error(transparent)]
    Unsigned(#[from] UnsignedStart),
}

/// Puts the engine together and starts its tasks.
///
/// # Errors
///
/// [`InvalidApp::Unsigned`] if snapshots have to be signed, and an active one is not.
pub fn app(deps: Deps) -> Result<App, InvalidApp> {
    let mut table = CallerTable::new(deps.own.trust_domain())?;
    for (service, callers, methods) in CALLERS {
        for method in methods {
            table = table.allow(&format!("/{service}/{method}"), callers)?;
        }
    }
    if let Some(signers) = &deps.signers {
        let now = UnixTime::from_milliseconds(deps.clock.now_unix_ms());
        signers.check_active(&*deps.store, now)?;
        signers.watch(&deps.shutdown, &deps.tasks);
    }
    let outbox = Arc::new(Outbox::new(&deps));
    deps.tasks
        .spawn("outbox", Arc::clone(&outbox).run(deps.shutdown.clone()));
    let sweep = Sweep {
        store: Arc::clone(&deps.store),
        clock: Arc::clone(&deps.clock),
        interval: deps.sweep_interval,
        max_clock_step: deps.max_clock_step,
    };
    deps.tasks.spawn("sweep", sweep.run(deps.shutdown.clone()));
    let changes = Arc::new(Changes::new());
    let issuing = deps.issuer.clone().map(|issuer| {
        let (outbox, changes) = (Arc::clone(&outbox), Arc::clone(&changes));
        Arc::new(Issuing::new(&deps, outbox, issuer, changes))
    });
    if let Some(issuing) = &issuing {
        let run = Arc::clone(issuing).run(deps.shutdown.clone());
        deps.tasks.spawn("issuing", run);
    }
    let revoking = deps.issuer.clone().map(|issuer| {
        let store = Arc::clone(&deps.store);
        Arc::new(Revoking { store, issuer })
    });
    if let Some(revoking) = &revoking {
        let run = Arc::clone(revoking).run(deps.shutdown.clone());
        deps.tasks.spawn("revoking", run);
    }
    let ages = Ages::new(Arc::clone(&deps.store), Arc::clone(&deps.clock));
    ages.observe(&deps.meter);
    let run = Arc::clone(&ages).run(deps.sweep_interval, deps.shutdown.clone());
    deps.tasks.spawn("ages", run);
    let detail = ages.detail();
    let (shutdown, tasks) = (deps.shutdown.clone(), deps.tasks.clone());
    let (shadowing, stored) = Shadowing::new(&deps.meter);
    let engine = PolicyEngine::new(deps, outbox, issuing, revoking, changes, shadowing, ages);
    let engine = Arc::new(engine);
    let run = shadowing::run(Arc::clone(&engine), stored, shutdown.clone());
    tasks.spawn("shadow", run);
    let policy = PolicyRpc::new(Arc::clone(&engine), shutdown);
    let approvers = ApproverAdminRpc::new(Arc::clone(&engine));
    let approvals = ApprovalRpc::new(Arc::clone(&engine));
    let routes = Routes::new(PolicyServiceServer::new(policy))
        .add_service(PolicyAdminServiceServer::new(AdminRpc::new(engine)))
        .add_service(ApproverAdminServiceServer::new(approvers))
        .add_service(ApprovalServiceServer::new(approvals));
    let mut app = App::new(routes, Callers::Table(table));
    app.detail = Some(detail);
    Ok(app)
}
