//! The receipt store: durable evidence of sensitive operations in verifiable logs (spec 7.8, 11.8,
//! 11.9, 13.5).
//!
//! # Role
//!
//! Services announce sensitive operations ([`Begin`]) and record how they ended ([`Complete`],
//! [`Append`]); a call that has succeeded is durable. One [`committer`] decides groups of calls in
//! order and writes each group with one sync. Each tenant has one log: a Merkle tree (RFC 9162) whose
//! entries are salted commitments to receipts ([`cl_model::leaf`]), with a signed checkpoint over
//! every entry, pinned before its call is answered, and the proof in the answer. An operation whose
//! writer is silent past its deadline is recorded as indeterminate by the store itself. Readers get
//! single receipts with proofs, searches, a check of a whole log, and its tiles over HTTP ([`http`]),
//! each as far as its role reaches. When the retention of a receipt has ended and no hold covers it,
//! its body and salt are erased, and a tombstone stays; the tree is as it was.
//!
//! [`Begin`]: cl_wire::receipt::v1::receipt_service_server::ReceiptService::begin
//! [`Complete`]: cl_wire::receipt::v1::receipt_service_server::ReceiptService::complete
//! [`Append`]: cl_wire::receipt::v1::receipt_service_server::ReceiptService::append
//!
//! # Holds
//!
//! The logs of all tenants with receipts and salts, the intents, the key that signs checkpoints, the
//! key-encryption key of its own data, and apart from these data the newest checkpoint of each log:
//! its [`pin`]. Receipts carry digests and references, never content; who did what when is private all
//! the same (spec 11.8), so values are sealed, and actors, bundles, tags, operations and references are
//! hashed where they are parts of keys. Logs and metrics have none of them. Tiles show how many
//! receipts a tenant has and when they came, nothing else; so do pins.
//!
//! # Trusts
//!
//! Writers, for what their rows of the table allow: a writer that lies records a false receipt of
//! an operation that it may write, under its own name; it cannot write for another actor, change an
//! entry, or consume a bundle twice. The bundle issuer, to have authenticated the recipient whose
//! receipt it passes on; such receipts are marked. Readers, as far as their roles go. Operators, to
//! erase receipts of a subject and to end holds: each act is an entry of the log itself. The
//! clock: its jumps shift deadlines and times of recording, never order, and one that does not last
//! erases nothing. The pin folder, to keep what was written to it; what it says counts only under the
//! log's signature.
//!
//! # A compromise yields
//!
//! The running process, or its data and its keys: all receipts, and the power to withhold or invent
//! later ones. Entries under a checkpoint or a proof that was seen outside before cannot be changed or
//! dropped unnoticed: no later checkpoint would be consistent with it. Receipts can be replaced by
//! tombstones; that these are there is seen by everybody who verifies the log, and what was due by the
//! receipts of erasures.
//!
//! The data alone, put back to an earlier state or copied, yield nothing: the store does not start on
//! a log that ends before its pin or does not lead from it, nor goes on with one. Data and pins that are
//! put back together start; then only checkpoints that somebody else kept tell. Open intents are in no
//! log: data with the same entries and other intents start.

#![warn(missing_docs)]

pub mod check;
pub mod committer;
pub mod config;
pub mod core;
pub mod cosigning;
pub mod error;
pub mod grpc;
pub mod http;
pub mod keyfiles;
pub mod page_token;
pub mod pin;
pub mod proven;
pub mod reader;
pub mod readers;
mod retention;
pub mod search;
pub mod store;
pub mod witness;

use std::sync::Arc;
use std::time::Duration;

use cl_host::callers::{CallerTable, InvalidCallerTable};
use cl_host::clock::{Clock, SettledClock};
use cl_host::ids::Ids;
use cl_host::life::{Shutdown, Tasks};
use cl_host::{App, Callers};
use cl_kv::{Engine, Sealed};
use cl_model::time::UnixTime;
use cl_wire::receipt::v1::receipt_admin_service_server::ReceiptAdminServiceServer;
use cl_wire::receipt::v1::receipt_service_server::ReceiptServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::check::Inconsistent;
use crate::committer::{Committer, Metrics, Writer};
use crate::core::command::Rules;
use crate::core::kept::Kept;
use crate::core::retention::Retention;
use crate::core::trees::LogKey;
use crate::cosigning::Cosigning;
use crate::error::Error;
use crate::grpc::Service;
use crate::page_token::PageTokens;
use crate::pin::Pin;
use crate::proven::Proven;
use crate::reader::Reader;
use crate::readers::ReadersFile;
use crate::retention::Sweep;
use crate::search::Searches;
use crate::store::{KvStore, Slot, Store, number};

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-receipt-store";

/// The largest request: a receipt of 65,536 bytes and its routing.
const MAX_REQUEST_BYTES: usize = 128 * 1024;

/// Who may be a reader; who is one, and of what, the table of readers says.
const READERS: &[&str] = &[
    "auditor/*",
    "client/*/*",
    "edge/*",
    "exchange/*",
    "operator/*",
    "owner/*",
    "vault/*",
];

/// Who may place and end holds, and have receipts erased.
const OPERATORS: &[&str] = &["operator/*"];

/// What the service is put together from.
pub struct Deps {
    /// Where the log is.
    pub store: Arc<dyn Store>,
    /// Where the newest checkpoints are kept apart from it.
    pub pin: Arc<dyn Pin>,
    /// Whether a log whose pin is lost is pinned as it is.
    pub adopts_lost_pins: bool,
    /// Who cosigns checkpoints.
    pub cosigning: Cosigning,
    /// The key that signs checkpoints.
    pub log_key: LogKey,
    /// Whose store this is, and who may write to it.
    pub rules: Rules,
    /// Who may read what.
    pub readers: Arc<ReadersFile>,
    /// How long receipts are kept.
    pub retention: Arc<Retention>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub ids: Arc<dyn Ids>,
    /// Where instruments come from.
    pub meter: Meter,
    /// Tells the committer when to end.
    pub shutdown: Shutdown,
    /// Where the committer lives.
    pub tasks: Tasks,
    /// How often overdue intents are looked for when nobody calls.
    pub sweep_interval: Duration,
    /// How often receipts are looked for whose retention has ended.
    pub retention_interval: Duration,
    /// How far the clock may step ahead at once and be believed; a larger jump must last that long
    /// before it erases anything.
    pub max_clock_step: Duration,
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// What is stored does not hold together.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
    /// The store does not open.
    #[error(transparent)]
    Store(#[from] Error),
    /// The writers table names somebody who cannot be a caller.
    #[error("callers: {0}")]
    Callers(#[from] InvalidCallerTable),
    /// The writers table names somebody of another trust domain.
    #[error("a writer is of another trust domain")]
    ForeignWriter,
    /// The own id is too long for the actor of a receipt.
    #[error("the own SPIFFE id has more than 512 characters")]
    OwnId,
}

/// The store on a sealed engine.
pub fn open_store<E>(sealed: Sealed<E>, ids: &Arc<dyn Ids>) -> Result<Arc<dyn Store>, Error>
where
    E: Engine + 'static,
{
    Ok(Arc::new(KvStore::open(sealed, ids)?))
}

/// Checks what is stored, starts the committer, and gives what is to be served.
pub fn assemble(deps: Deps) -> Result<App, BuildError> {
    let callers = callers(&deps.rules)?;
    let service = start(deps)?;
    let tiles = http::routes(service.reader.clone(), Arc::clone(&service.readers));
    let admin = ReceiptAdminServiceServer::new(service.clone());
    let service = ReceiptServiceServer::new(service).max_decoding_message_size(MAX_REQUEST_BYTES);
    let routes = Routes::new(service).add_service(admin);
    let routes = routes.into_axum_router().merge(tiles);
    Ok(App::new(Routes::from(routes), Callers::Table(callers)))
}

/// Checks what is stored, and starts the committer.
pub fn start(deps: Deps) -> Result<Service, BuildError> {
    let kept = Arc::new(Kept::new(deps.log_key, deps.pin, deps.cosigning));
    let reader = Reader::new(Arc::clone(&deps.store), Arc::clone(&kept));
    reader.check_tails()?;
    reader.check_pins(deps.adopts_lost_pins)?;
    let token_key = deps.store.get(&Slot::TokenKey)?;
    let token_key = token_key.ok_or(Error::Corrupt("the key of page tokens is missing"))?;
    let settled = number(deps.store.get(&Slot::Settled)?.as_ref())?;
    let settled = settled.and_then(|settled| i64::try_from(settled).ok());
    let settled = settled.map(UnixTime::from_milliseconds);
    let time = SettledClock::new(Arc::clone(&deps.clock), settled, deps.max_clock_step);
    let rules = Arc::new(deps.rules);
    let store = Arc::clone(&deps.store);
    let writer = Writer {
        store: deps.store,
        kept,
        rules: Arc::clone(&rules),
        clock: deps.clock,
        ids: Arc::clone(&deps.ids),
        proven: Proven::default(),
        metrics: Metrics::new(&deps.meter),
    };
    let (committer, commits) = Committer::new(writer, deps.sweep_interval);
    let tokens = PageTokens::new(&token_key, deps.ids)?;
    let sweep = Sweep {
        store,
        commits: commits.clone(),
        time,
        retention: Arc::clone(&deps.retention),
        interval: deps.retention_interval,
    };
    let watch = Arc::clone(&deps.readers).watch(deps.shutdown.clone());
    deps.tasks.spawn("readers", watch);
    let sweep = sweep.run(deps.shutdown.clone());
    deps.tasks.spawn("retention", sweep);
    deps.tasks.spawn("committer", committer.run(deps.shutdown));
    Ok(Service {
        commits,
        reader,
        rules,
        readers: deps.readers,
        retention: deps.retention,
        searches: Searches::default(),
        tokens,
    })
}

/// Who may call what: writers are the rows of their table, readers have to pass their own table too,
/// and the rest is fixed.
fn callers(rules: &Rules) -> Result<CallerTable, BuildError> {
    let trust_domain = rules.own_id.trust_domain();
    if rules.own_id.as_str().len() > 512 {
        return Err(BuildError::OwnId);
    }
    if rules
        .writers
        .ids()
        .any(|id| id.trust_domain() != trust_domain)
    {
        return Err(BuildError::ForeignWriter);
    }
    let paths: Vec<String> = rules
        .writers
        .ids()
        .map(|id| id.segments().collect::<Vec<_>>().join("/"))
        .collect();
    let writers: Vec<&str> = paths.iter().map(String::as_str).collect();
    let rows = [
        ("Preflight", writers.as_slice()),
        ("Append", &writers),
        ("Begin", &writers),
        ("Complete", &writers),
        ("ListOpen", &writers),
        ("GetReceipt", READERS),
        ("ListReceipts", READERS),
        ("VerifyLog", READERS),
    ];
    let admin = ["PlaceHold", "ReleaseHold", "ListHolds", "EraseReceipts"];
    let mut table = CallerTable::new(trust_domain)?;
    for (method, callers) in rows {
        let path = format!("/contextlayer.receipt.v1.ReceiptService/{method}");
        table = table.allow(&path, callers)?;
    }
    for method in admin {
        let path = format!("/contextlayer.receipt.v1.ReceiptAdminService/{method}");
        table = table.allow(&path, OPERATORS)?;
    }
    Ok(table.allow_under(http::PREFIX, READERS)?)
}
