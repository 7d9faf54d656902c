//! The console's own settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::trust::Trust;
use cl_host::{BoxError, Host};

use crate::engine::Engine;
use crate::origin::Origin;
use crate::receipts::{Log, Receipts};
use crate::{Deps, Limits};

/// From the head of a call to the end of its form, which has 64 KiB at most.
const MAX_BODY_TIME: Duration = Duration::from_secs(10);

/// Time between two looks at the trusted keys.
const TRUST_INTERVAL: Duration = Duration::from_secs(10);

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the policy engine, `host:port`.
    #[arg(long, env = "CL_POLICY_ENGINE_ADDR")]
    pub policy_engine_addr: String,

    /// Address of the receipt store, `host:port`; without it no receipts are shown.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: Option<String>,

    /// Where browsers find the console, as they write it: `https://console.example`. The policy
    /// engine has to allow the same origin, and its relying party id is this host or above it.
    #[arg(long, env = "CL_ORIGIN")]
    pub origin: String,

    /// Trusted keys, by which receipts are proved [default: trust.json in the home folder].
    #[arg(long, env = "CL_TRUST_FILE")]
    pub trust_file: Option<PathBuf>,

    /// Calls at a time; one more is refused before its form is read.
    #[arg(long, env = "CL_MAX_IN_FLIGHT", default_value_t = 256)]
    pub max_in_flight: usize,

    /// Tries of one peer to sign in or enrol, in a minute; behind a proxy all people are one peer.
    #[arg(long, env = "CL_TRIES_PER_MINUTE", default_value_t = 60)]
    pub tries_per_minute: u32,
}

impl Config {
    /// Checks settings and files before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let origin = Origin::parse(&self.origin)
            .ok_or("--origin: https://, a lower-case host, and a port unless it is 443")?;
        if self.max_in_flight == 0 || self.tries_per_minute == 0 {
            return Err("--max-in-flight, --tries-per-minute: 1 or more".into());
        }
        let engine = host.peer(self.policy_engine_addr, "exchange/cl-policy-engine")?;
        let receipts = match self.receipt_store_addr {
            None => None,
            Some(address) => {
                let path = self
                    .trust_file
                    .unwrap_or_else(|| host.args.home.join("trust.json"));
                let trust = Trust::load(path)?;
                let watching = Arc::clone(&trust).watch(TRUST_INTERVAL, host.shutdown.token());
                host.tasks.spawn("trusted keys", watching);
                let own = host.credentials.own().id;
                let log = Log::new(trust, own.trust_domain().to_owned());
                let store = host.peer(address, "exchange/cl-receipt-store")?;
                Some(Receipts::new(store, log))
            }
        };
        Ok(Deps {
            origin,
            engine: Engine::new(engine),
            receipts,
            limits: Limits {
                max_in_flight: self.max_in_flight,
                tries_per_minute: self.tries_per_minute,
                max_body_time: MAX_BODY_TIME,
            },
            form_key: Deps::form_key(&*host.ids)?,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            meter: host.meter.clone(),
        })
    }
}
