//! The gateway: the one door for requesters and recipients outside.
//!
//! # Role
//!
//! It serves the HTTP binding (spec 10) and `contextlayer.exchange.v1.ExchangeService` on one TLS
//! port. It authenticates callers by access token or client certificate, holds tokens to their
//! scopes, bounds and strictly reads what callers send, and passes the canonical bytes on with what
//! it established about the caller, never with the credential: requests to the policy engine,
//! redemptions and consumers' receipts to the bundle issuer, proposals to the vault. Of the receipt
//! store it only reads, and shows a receipt to its actor alone. It decides nothing else: whether a
//! caller may know something is the policy engine's verdict, and whose a bundle is the issuer's. It
//! makes repeats safe by remembering the first use of each idempotency key.
//!
//! # Holds
//!
//! The sealing key of its own store, and in it, for 24 hours, a digest of each idempotency key with
//! a digest of the request and the operation's id: no document, no answer, nobody's name. The
//! public keys of one token issuer. No signing key.
//!
//! # Trusts
//!
//! The token issuer, for who its subjects are: one that lies can act as any principal of any
//! tenant, within that principal's policy. The authorities of the deployment, for client
//! certificates. The policy engine, for decisions; the bundle issuer, for who may redeem what; the
//! vault, for what may be proposed; the receipt store, for what was recorded. Their answers are
//! checked for their form, and their refusals pass only under known codes; recipients verify the
//! signatures of what is delivered themselves. Callers are trusted with nothing: their input is
//! bounded, strict, and never repeated in an answer, a log or a metric.
//!
//! # A compromise yields
//!
//! The requests, decisions, bundles and proposals that pass through, and the credentials shown
//! meanwhile: whoever controls this process can tell the services behind it that anyone called, and
//! so act as any principal: ask, redeem what is live for it, report receipts as its own (recorded as
//! attested by the consumer only), propose, and read the receipts of all tenants. It cannot widen
//! what a principal's policy allows, approve in a person's name, forge a decision, a bundle or an
//! authority's receipt, commit a proposal, or read a vault.

#![deny(missing_docs)]

pub mod auth;
pub mod bundles;
mod capabilities;
pub mod config;
pub mod engine;
pub mod error;
mod grpc;
mod http;
pub mod idempotency;
pub mod in_flight;
pub mod keyfile;
mod metrics;
mod peer;
pub mod proposals;
pub mod receipts;
mod service;
pub mod store;
mod sweep;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_host::life::{Shutdown, Tasks};
use cl_host::status::PlainHttp;
use cl_host::{App, Callers};
use cl_model::part::Issuer;
use cl_wire::exchange::v1::exchange_service_server::ExchangeServiceServer;
use opentelemetry::metrics::Meter;
use tonic::service::Routes;

use crate::auth::{Authenticator, TokenPolicy, Watermark};
use crate::bundles::Bundles;
use crate::capabilities::Served;
use crate::engine::Engine;
pub use crate::error::Error;
use crate::grpc::ExchangeRpc;
use crate::http::{Answers, CAPABILITIES, Door, PROPOSALS, REQUESTS};
use crate::in_flight::{CallLimits, InFlight};
use crate::keyfile::KeySetFile;
use crate::metrics::Metrics;
use crate::proposals::Proposals;
use crate::receipts::Receipts;
use crate::service::Gateway;
use crate::store::Store;

/// The process's name, in telemetry and for its files.
pub const PROCESS: &str = "cl-gateway";

/// What is named in metrics; paths with an id in them are not.
const METHODS: [&str; 11] = [
    "/contextlayer.exchange.v1.ExchangeService/SubmitRequest",
    "/contextlayer.exchange.v1.ExchangeService/GetRequest",
    "/contextlayer.exchange.v1.ExchangeService/WatchRequest",
    "/contextlayer.exchange.v1.ExchangeService/RedeemBundle",
    "/contextlayer.exchange.v1.ExchangeService/CheckBundle",
    "/contextlayer.exchange.v1.ExchangeService/SubmitReceipt",
    "/contextlayer.exchange.v1.ExchangeService/GetReceipt",
    "/contextlayer.exchange.v1.ExchangeService/SubmitProposal",
    REQUESTS,
    PROPOSALS,
    CAPABILITIES,
];

/// A message holds a document of 1 MiB and a key; anything far larger is refused unread.
const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024;

/// Calls at a time on one connection. Clients presume 100 until they are told (RFC 9113, 6.5.2).
const MAX_STREAMS: u32 = 100;

/// What the gateway is made of.
pub struct Deps {
    /// Its own trust domain, whose client certificates count.
    pub trust_domain: String,
    /// Which tokens count, and the keys they are signed with; none count without it.
    pub tokens: Option<(TokenPolicy, Arc<KeySetFile>)>,
    /// Time between two looks at those keys.
    pub key_set_interval: Duration,
    /// Who decides.
    pub engine: Engine,
    /// Who hands out bundles, and takes receipts about them; neither is served without it.
    pub bundles: Option<Bundles>,
    /// Who keeps receipts; none can be read without it.
    pub receipts: Option<Receipts>,
    /// Who takes proposals; none can be made without it.
    pub proposals: Option<Proposals>,
    /// Its own state.
    pub store: Arc<dyn Store>,
    /// Time between two sweeps of that state.
    pub sweep_interval: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of operations and errors.
    pub ids: Arc<dyn Ids>,
    /// How error objects name the gateway.
    pub issuer: Issuer,
    /// Where callers reach it.
    pub public_url: Option<String>,
    /// Calls at a time.
    pub call_limits: CallLimits,
    /// From the head of a call to the end of its body.
    pub max_body_time: Duration,
    /// Where its instruments come from.
    pub meter: Meter,
    /// Tells its tasks when to end.
    pub shutdown: Shutdown,
    /// Where its tasks run.
    pub tasks: Tasks,
}

/// Puts the gateway together and starts its tasks.
pub fn app(deps: Deps) -> App {
    let (tokens, keys) = deps.tokens.unzip();
    if let Some(keys) = &keys {
        let watching = Arc::clone(keys).watch(deps.key_set_interval, deps.shutdown.token());
        deps.tasks.spawn("key set", watching);
    }
    let sweeping = sweep::run(
        Arc::clone(&deps.store),
        Arc::clone(&deps.clock),
        deps.sweep_interval,
        deps.shutdown.token(),
    );
    deps.tasks.spawn("sweep", sweeping);

    let answers = Answers {
        issuer: deps.issuer,
        clock: Arc::clone(&deps.clock),
        ids: Arc::clone(&deps.ids),
    };
    let served = Served {
        bundles: deps.bundles.is_some(),
        receipts: deps.receipts.is_some(),
        proposals: deps.proposals.is_some(),
    };
    let capabilities = capabilities::document(deps.public_url.as_deref(), tokens.as_ref(), served);
    let gateway = Arc::new(Gateway {
        authenticator: Authenticator {
            trust_domain: deps.trust_domain,
            tokens,
        },
        keys,
        watermark: Watermark::new(),
        engine: deps.engine,
        bundles: deps.bundles,
        receipts: deps.receipts,
        proposals: deps.proposals,
        store: deps.store,
        clock: deps.clock,
        ids: deps.ids,
    });
    let exchange = ExchangeServiceServer::new(ExchangeRpc::new(
        Arc::clone(&gateway),
        deps.shutdown.clone(),
    ))
    .max_decoding_message_size(MAX_MESSAGE_BYTES);
    let door = Door {
        gateway,
        answers: answers.clone(),
        metrics: Metrics::new(&deps.meter),
        capabilities,
        in_flight: Arc::new(InFlight::new(deps.call_limits)),
        max_body_time: deps.max_body_time,
    };
    let grpc = Routes::new(exchange).into_axum_router();
    let routes = Routes::from(http::routes(Arc::new(door), grpc));
    let methods = METHODS.map(str::to_owned).to_vec();
    let mut app = App::new(routes, Callers::Edge { methods });
    app.limits.max_streams = MAX_STREAMS;
    app.plain_http = Some(PlainHttp::new(move |status| {
        answers.host_refusal(status).map(tonic::body::Body::new)
    }));
    app
}
