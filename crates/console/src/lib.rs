//! The console: web pages on which people approve, look back and revoke.
//!
//! # Role
//!
//! It shows people what waits for their answer (spec 9.3), relays their passkeys' assertions to the
//! policy engine, and shows decisions, active access and receipts. It decides nothing: who may
//! approve for whom, which challenge is open, whether an assertion counts and what an answer grants
//! are the engine's verdicts. What it shows of receipts it verifies itself, against the trusted keys
//! of the log.
//!
//! # Holds
//!
//! In memory: the engine's tokens of open sessions, by the digest of the browser's cookie, and what
//! each session was last shown; the key of the values that tie forms to a browser. No key that signs
//! anything, nothing on disk but its certificate.
//!
//! # Trusts
//!
//! The policy engine, for what is pending, decided and granted. The receipt store, for which receipts
//! there are; what it gives is checked against the log. `trust.json`, for the keys of that log.
//! Browsers are trusted with nothing but their own session.
//!
//! # A compromise yields
//!
//! What people see, and the sessions that are open meanwhile: whoever controls this process can read
//! the queue and decisions of people who are signed in, revoke what was granted, and show a person
//! something false while that person's passkey signs another item; and it can read all receipts of
//! the tenants that the store's table of readers gives it, since it reads like an auditor. While an
//! enrolment link is used, it can enrol a key of its own and show that key's fingerprint, so that an
//! operator who confirms it lets this process answer for that person until the key is revoked. But
//! for that it cannot answer without a gesture of that person at that moment, sign in without one,
//! enrol without an open link and an operator's confirmation, or change a receipt.

#![deny(missing_docs)]

mod assets;
mod bounds;
pub mod config;
mod csrf;
pub mod engine;
pub mod error;
mod forms;
mod headers;
mod http;
mod metrics;
pub mod origin;
mod pages;
pub mod receipts;
mod session;

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::ids::{Ids, NoRandomness};
use cl_host::status::PlainHttp;
use cl_host::{App, Callers};
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::bounds::Bounds;
pub use crate::bounds::Limits;
pub use crate::csrf::FormKey;
use crate::engine::Engine;
use crate::http::Console;
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::receipts::Receipts;
use crate::session::Sessions;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-console";

/// What the console is made of.
pub struct Deps {
    /// Where browsers find it.
    pub origin: Origin,
    /// Who knows people, and decides.
    pub engine: Engine,
    /// Who keeps receipts; none are shown without it.
    pub receipts: Option<Receipts>,
    /// Bounds on callers.
    pub limits: Limits,
    /// What ties forms to browsers.
    pub form_key: FormKey,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of operations, and cookies.
    pub ids: Arc<dyn Ids>,
    /// Where its instruments come from.
    pub meter: Meter,
}

impl Deps {
    /// A key for the values that tie forms to browsers, which lasts as long as the process.
    ///
    /// # Errors
    ///
    /// Without random bytes there is none.
    pub fn form_key(ids: &dyn Ids) -> Result<FormKey, NoRandomness> {
        FormKey::new(ids)
    }
}

/// Puts the console together.
pub fn app(deps: Deps) -> App {
    let metrics = Metrics::new(&deps.meter);
    let console = Arc::new(Console {
        origin: deps.origin,
        engine: deps.engine,
        receipts: deps.receipts,
        sessions: Sessions::default(),
        form_key: deps.form_key,
        bounds: Bounds::new(deps.limits),
        metrics,
        clock: deps.clock,
        ids: deps.ids,
    });
    let routes = Routes::from(http::routes(console));
    let methods = http::FIXED_PATHS.map(str::to_owned).to_vec();
    let mut app = App::new(routes, Callers::Edge { methods });
    app.plain_http = Some(PlainHttp::new(|status| {
        http::host_refusal(status).map(tonic::body::Body::new)
    }));
    app
}
