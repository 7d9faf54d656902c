//! What an application embeds to ask for context and to use it within its bounds.
//!
//! ```no_run
//! # async fn example() -> Result<(), cl_sdk::Error> {
//! use cl_sdk::{Client, ClientConfig, Credential, Handled};
//!
//! let config = ClientConfig {
//!     gateway: "https://gateway.example.org:7443".to_owned(),
//!     authorities_pem: std::fs::read("ca.pem").expect("a file"),
//!     credential: Credential::bearer("eyJ.."),
//!     recipient: "urn:model:drafting".to_owned(),
//!     trust: std::fs::read("trust.json").expect("a file"),
//! };
//! let client = Client::connect(config)?;
//! let delivery = client.redeem("urn:cl:bundle:..", "attempt-1").await?;
//! let bundle = client.open(&delivery).await?;
//! for fact in bundle.facts().await? {
//!     println!("{} ({:?})", fact.claim, fact.trust);
//! }
//! bundle
//!     .perform("email.create_draft", |input| async move {
//!         let _context = &input["context"];
//!         Handled::Json(serde_json::json!({"draft": "saved"}))
//!     })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! **Role.** The consumer's side of the exchange (spec 8.2 steps 8 and 9, 12, 13.2): redeems a
//! bundle once, checks everything that can be checked without trusting anyone but the keys of the
//! trust file, records the consumption before any fact is released, runs only what the bundle
//! grants with a receipt around each action, proposes memory updates, and lets go of everything at
//! expiry. [`Delivery::verify`] does the same checks offline, from a file.
//!
//! **Holds.** One opened bundle at a time for each [`OpenBundle`], in memory; the credential for the
//! gateway. No key of its own, nothing on disk.
//!
//! **Trusts.** The keys in the trust file, each for its purpose. The gateway only to carry bytes
//! and to answer whether a bundle was revoked: one that lies can withhold, and can hide a revocation;
//! it cannot widen, forge or read what is not delivered through it. Facts are data of unknown intent:
//! their marks say how far a source is believed, and no fact is an instruction.
//!
//! **A compromise yields** what its bundles disclose, to the application that embeds it: the context
//! of one purpose, until expiry, and the actions that were granted.

#![deny(missing_docs)]

mod bundle;
mod client;
mod clock;
mod error;
mod fact;

pub use cl_model::delivery::{Delivery, Trust, VerifiedDelivery};
pub use cl_model::trust::TrustFile;

pub use self::bundle::{Handled, OpenBundle, Proposal};
pub use self::client::{Client, ClientConfig, Credential, RequestState, RequestStatus};
pub use self::clock::{Clock, SystemClock};
pub use self::error::Error;
pub use self::fact::Fact;
