//! The gateway's own settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::files::{MAX_SECRET_BYTES, load_secret};
use cl_host::{BoxError, Host};
use cl_kv::{Engine as KvEngine, KeyEncryptionKey, Metered, RocksEngine, Sealed};
use cl_model::part::Issuer;
use http::Uri;
use ring::rand::SystemRandom;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use zeroize::Zeroizing;

use crate::auth::TokenPolicy;
use crate::bundles::Bundles;
use crate::engine::Engine;
use crate::in_flight::CallLimits;
use crate::keyfile::KeySetFile;
use crate::proposals::Proposals;
use crate::receipts::Receipts;
use crate::store::KvStore;
use crate::{Deps, PROCESS};

/// Time between two looks at the key set.
const KEY_SET_INTERVAL: Duration = Duration::from_secs(10);

/// Time between two sweeps of ended idempotency records.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// From the head of a call to the end of its body, which has 1 MiB at most.
const MAX_BODY_TIME: Duration = Duration::from_secs(10);

const KEK_BYTES: usize = 32;

/// Settings beside those of every process; each is a flag and an environment variable.
#[derive(Clone, Debug, clap::Args)]
pub struct Config {
    /// Address of the policy engine, `host:port`.
    #[arg(long, env = "CL_POLICY_ENGINE_ADDR")]
    pub policy_engine_addr: String,

    /// Address of the bundle issuer, `host:port`; without it no bundle can be redeemed.
    #[arg(long, env = "CL_BUNDLE_ISSUER_ADDR")]
    pub bundle_issuer_addr: Option<String>,

    /// Address of the receipt store, `host:port`; without it no receipt can be read.
    #[arg(long, env = "CL_RECEIPT_STORE_ADDR")]
    pub receipt_store_addr: Option<String>,

    /// Address of the vault, `host:port`; without it nothing can be proposed.
    #[arg(long, env = "CL_VAULT_ADDR")]
    pub vault_addr: Option<String>,

    /// Issuer of access tokens, exactly as in `iss`; without it only client certificates count.
    #[arg(long, env = "CL_TOKEN_ISSUER", requires = "token_audience")]
    pub token_issuer: Option<String>,

    /// Audience that tokens must name, exactly as in `aud`.
    #[arg(long, env = "CL_TOKEN_AUDIENCE", requires = "token_issuer")]
    pub token_audience: Option<String>,

    /// Public keys of the token issuer, a JWK set [default: jwks.json in the home folder].
    #[arg(long, env = "CL_JWKS_FILE")]
    pub jwks_file: Option<PathBuf>,

    /// Key-encryption key of the store, 32 bytes [default: keys/cl-gateway.kek in the home folder].
    #[arg(long, env = "CL_KEK_FILE")]
    pub kek_file: Option<PathBuf>,

    /// Data folder [default: data/cl-gateway in the home folder].
    #[arg(long, env = "CL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where callers reach the gateway, `https://..`, for the capability document.
    #[arg(long, env = "CL_PUBLIC_URL")]
    pub public_url: Option<String>,

    /// How error objects name the gateway.
    #[arg(long, env = "CL_ISSUER_ID", default_value = "urn:cl:gateway:local")]
    pub issuer_id: String,

    /// Calls at a time; one more is refused before its body is read.
    #[arg(long, env = "CL_MAX_IN_FLIGHT", default_value_t = 256)]
    pub max_in_flight: usize,

    /// Calls at a time of one tenant, so that none takes the place of all.
    #[arg(long, env = "CL_MAX_IN_FLIGHT_PER_TENANT", default_value_t = 192)]
    pub max_in_flight_per_tenant: usize,

    /// Calls at a time of one caller, so that none takes the place of all.
    #[arg(long, env = "CL_MAX_IN_FLIGHT_PER_CALLER", default_value_t = 64)]
    pub max_in_flight_per_caller: usize,
}

impl Config {
    /// Checks settings, keys and stored state before anything is served.
    pub fn build(self, host: &Host) -> Result<Deps, BoxError> {
        let home = &host.args.home;
        let kek_file = self
            .kek_file
            .unwrap_or_else(|| home.join("keys/cl-gateway.kek"));
        let kek = load_kek(&kek_file, &host.args.tls_files(PROCESS).key)?;
        let tokens = match self.token_issuer.zip(self.token_audience) {
            None => None,
            Some((issuer, audience)) => {
                let path = self.jwks_file.unwrap_or_else(|| home.join("jwks.json"));
                let keys = Arc::new(KeySetFile::load(path)?);
                Some((TokenPolicy { issuer, audience }, keys))
            }
        };
        let public_url = self.public_url.map(|url| checked_url(&url)).transpose()?;

        let to = |address, path| channel(host, address, path);
        let to_issuer = |address| to(address, "exchange/cl-bundle-issuer");
        let to_receipts = |address| to(address, "exchange/cl-receipt-store");
        let to_vault = |address| to(address, "vault/cl-vault");
        let bundles = self.bundle_issuer_addr.map(to_issuer).transpose()?;
        let receipts = self.receipt_store_addr.map(to_receipts).transpose()?;
        let proposals = self.vault_addr.map(to_vault).transpose()?;
        let engine = Engine::new(to(self.policy_engine_addr, "exchange/cl-policy-engine")?);

        let data = self
            .data_dir
            .unwrap_or_else(|| home.join("data").join(PROCESS));
        std::fs::create_dir_all(&data)?;
        let kv: Arc<dyn KvEngine> = Arc::new(Metered::new(RocksEngine::open(&data)?, &host.meter));
        let sealed = Sealed::open(kv, kek, Arc::new(SystemRandom::new()))?;
        Ok(Deps {
            trust_domain: host.credentials.own().id.trust_domain().to_owned(),
            tokens,
            key_set_interval: KEY_SET_INTERVAL,
            engine,
            bundles: bundles.map(Bundles::new),
            receipts: receipts.map(Receipts::new),
            proposals: proposals.map(Proposals::new),
            store: Arc::new(KvStore::new(sealed)),
            sweep_interval: SWEEP_INTERVAL,
            clock: Arc::clone(&host.clock),
            ids: Arc::clone(&host.ids),
            issuer: Issuer::new(&self.issuer_id).ok_or("the issuer id has 3 to 512 characters")?,
            public_url,
            call_limits: CallLimits {
                max_in_flight: self.max_in_flight,
                max_in_flight_per_tenant: self.max_in_flight_per_tenant,
                max_in_flight_per_caller: self.max_in_flight_per_caller,
            },
            max_body_time: MAX_BODY_TIME,
            meter: host.meter.clone(),
            shutdown: host.shutdown.clone(),
            tasks: host.tasks.clone(),
        })
    }
}

/// A channel to the process with this SPIFFE path in the gateway's own trust domain.
fn channel(host: &Host, address: String, path: &str) -> Result<PeerChannel, BoxError> {
    let own = host.credentials.own();
    let id = format!("spiffe://{}/{path}", own.id.trust_domain()).parse()?;
    let credentials = Arc::clone(&host.credentials);
    let target = Target { address, id };
    Ok(PeerChannel::new(
        target,
        credentials,
        ClientLimits::default(),
    )?)
}

/// Loads the store's key, and refuses one that is the TLS key too.
fn load_kek(path: &Path, tls_key: &Path) -> Result<KeyEncryptionKey, BoxError> {
    let bytes = load_secret(path, MAX_SECRET_BYTES)?;
    let mut kek = Zeroizing::new([0; KEK_BYTES]);
    if bytes.len() != KEK_BYTES {
        return Err(format!("{}: a key-encryption key has 32 bytes", path.display()).into());
    }
    kek.copy_from_slice(&bytes);
    let tls = PrivateKeyDer::from_pem_slice(&load_secret(tls_key, MAX_SECRET_BYTES)?)?;
    let is_shared = tls
        .secret_der()
        .windows(KEK_BYTES)
        .any(|part| part == &kek[..]);
    if is_shared {
        let (one, other) = (path.display(), tls_key.display());
        return Err(format!("{one} and {other} hold the same key").into());
    }
    Ok(KeyEncryptionKey::new(kek))
}

/// `https://host[:port][/path]`, without a slash at the end.
fn checked_url(text: &str) -> Result<String, BoxError> {
    const REFUSAL: &str = "the public url is https://, a host, and at most a port and a path";

    let url: Uri = text.parse()?;
    let authority = url.authority().ok_or(REFUSAL)?;
    let is_plain = url.scheme_str() == Some("https")
        && url.query().is_none()
        && !authority.as_str().contains('@')
        && !authority.host().is_empty()
        && !text.contains('#');
    if !is_plain {
        return Err(REFUSAL.into());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_plain_https() {
        for good in [
            "https://gw.example.org",
            "https://gw.example.org:8443/base/",
        ] {
            assert_eq!(checked_url(good).unwrap(), good.trim_end_matches('/'));
        }
        for bad in [
            "",
            "gw.example.org",
            "/base",
            "http://gw.example.org",
            "https://user:secret@gw.example.org",
            "https://gw.example.org/?a=b",
            "https://gw.example.org/#a",
        ] {
            assert!(checked_url(bad).is_err(), "{bad}");
        }
    }
}
