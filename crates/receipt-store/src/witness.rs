//! One witness: the port, and its implementation over HTTP.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cl_tlog::{AddCheckpoint, MAX_ANSWER_BYTES};
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

/// Time for one answer, from the name lookup to the last byte.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// The port to a witness (c2sp.org/tlog-witness).
///
/// **Durable when?** A witness remembers what it cosigned before it answers.
///
/// **Consistent how?** It cosigns only what continues the last that it cosigned of the log.
///
/// **Who retries?** The caller; a repeat is cosigned again.
///
/// **What if absent?** [`WitnessAway`], within a bounded time.
pub trait Witness: Send + Sync {
    /// Hands a checkpoint to the witness: the HTTP status and body of its answer.
    fn add_checkpoint(&self, request: &AddCheckpoint) -> Result<(u16, Vec<u8>), WitnessAway>;
}

/// A witness does not answer; the cause is for the log.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a witness does not answer")]
pub struct WitnessAway(#[source] Arc<dyn StdError + Send + Sync>);

impl WitnessAway {
    /// With its cause.
    pub fn new(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(cause))
    }
}

/// The certificates that the witnesses' servers are trusted by cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("no certificate can be read")]
pub struct InvalidRoots;

/// The address of a witness cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// It is no URL of the schemes that are spoken.
    #[error("a witness needs an https URL, or http on this machine")]
    Scheme,
    /// Nothing says which servers are trusted.
    #[error("a witness with an https URL needs the certificates of its authority")]
    NoRoots,
}

/// Reaches witnesses over HTTP; clones share connections.
#[derive(Clone, Debug)]
pub struct HttpWitnesses {
    agent: Agent,
    has_roots: bool,
}

impl HttpWitnesses {
    /// Trusts servers by the certificates of these authorities, PEM; without any, only addresses of
    /// this machine can be reached. What a server answers is trusted by its signature alone.
    pub fn new(roots: Option<&[u8]>) -> Result<Self, InvalidRoots> {
        let mut certificates = Vec::new();
        for item in roots.into_iter().flat_map(parse_pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|_| InvalidRoots)? {
                certificates.push(certificate);
            }
        }
        if roots.is_some() && certificates.is_empty() {
            return Err(InvalidRoots);
        }
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&certificates))
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(CALL_LIMIT))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            has_roots: roots.is_some(),
        })
    }

    /// The witness that takes checkpoints under this URL.
    pub fn at(&self, url: &str) -> Result<HttpWitness, InvalidAddress> {
        let url = url.trim_end_matches('/');
        let parsed: Uri = url.parse().map_err(|_| InvalidAddress::Scheme)?;
        let host = parsed.host().ok_or(InvalidAddress::Scheme)?;
        match parsed.scheme_str() {
            Some("https") if self.has_roots => {}
            Some("https") => return Err(InvalidAddress::NoRoots),
            Some("http") if is_local(host) => {}
            Some(_) | None => return Err(InvalidAddress::Scheme),
        }
        Ok(HttpWitness {
            agent: self.agent.clone(),
            url: format!("{url}/add-checkpoint"),
        })
    }
}

fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse().is_ok_and(|it: IpAddr| it.is_loopback())
}

/// A witness behind an HTTP address.
#[derive(Debug)]
pub struct HttpWitness {
    agent: Agent,
    url: String,
}

impl Witness for HttpWitness {
    fn add_checkpoint(&self, request: &AddCheckpoint) -> Result<(u16, Vec<u8>), WitnessAway> {
        let answer = self.agent.post(&self.url).send(request.to_string());
        let mut answer = answer.map_err(WitnessAway::new)?;
        let status = answer.status().as_u16();
        let body = read(answer.body_mut()).map_err(WitnessAway::new)?;
        Ok((status, body))
    }
}

fn read(body: &mut Body) -> Result<Vec<u8>, ureq::Error> {
    let limit = u64::try_from(MAX_ANSWER_BYTES).unwrap_or(u64::MAX);
    body.with_config().limit(limit).read_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        let roots = root();
        let without = HttpWitnesses::new(None).unwrap();
        let with = HttpWitnesses::new(Some(roots.as_bytes())).unwrap();
        for url in ["http://127.0.0.1:8080", "http://[::1]:8080/prefix/"] {
            assert!(without.at(url).is_ok(), "{url}");
        }
        for url in [
            "http://witness.example",
            "http://127.0.0.1.witness.example",
            "http://localhost",
            "ftp://127.0.0.1",
            "witness.example",
            "",
        ] {
            assert!(matches!(with.at(url), Err(InvalidAddress::Scheme)), "{url}");
        }
        assert!(with.at("https://witness.example/w").is_ok());
        let refused = without.at("https://witness.example/w");
        assert!(matches!(refused, Err(InvalidAddress::NoRoots)));
        assert!(HttpWitnesses::new(Some(b"")).is_err());
    }

    fn root() -> String {
        let validity = cl_pki::Validity {
            not_before_unix_s: 1_900_000_000,
            not_after_unix_s: 2_000_000_000,
        };
        let authority = cl_pki::Authority::new("witnesses", validity).unwrap();
        authority.pem().to_owned()
    }
}
