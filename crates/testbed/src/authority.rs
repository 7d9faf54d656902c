//! The authority of a deployment, and the certificates below it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_pki::{Issued, Leaf, Validity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::home::write_secret;

/// The trust domain of every deployment.
pub const TRUST_DOMAIN: &str = "example.org";

/// From 2000 to 2090.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 3_786_912_000,
};

static SERIALS: AtomicU64 = AtomicU64::new(1);

/// The SPIFFE id of a path such as `vault/cl-vault`.
pub fn spiffe_id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}

/// Issues the certificates of one deployment.
#[derive(Debug)]
pub struct Authority(cl_pki::Authority);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A fresh one.
    pub fn new() -> Self {
        Self(cl_pki::Authority::new("test", VALIDITY).unwrap())
    }

    fn issue(&self, spiffe_id: &str) -> Issued {
        let leaf = Leaf {
            uris: &[spiffe_id],
            names: &["localhost", "127.0.0.1"],
            validity: VALIDITY,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed).into(),
        };
        self.0.issue(&leaf).unwrap()
    }

    /// Writes a fresh certificate for a SPIFFE path, its key and the authority: `NAME.pem`,
    /// `NAME.key` and `ca.pem`.
    pub fn write(&self, path: &str, folder: &Path, name: &str) -> TlsFiles {
        let issued = self.issue(&spiffe_id(path));
        let files = TlsFiles {
            chain: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
            trust: folder.join("ca.pem"),
        };
        fs::write(&files.chain, &issued.chain_pem).unwrap();
        write_secret(&files.key, issued.key_pem.as_bytes());
        fs::write(&files.trust, self.0.pem()).unwrap();
        files
    }

    /// Fresh credentials of a process that only peers call.
    pub fn credentials(&self, path: &str) -> Arc<Credentials> {
        self.credentials_as(path, ServerTls::INTERNAL)
    }

    /// Fresh credentials of a process at the edge.
    pub fn edge_credentials(&self, path: &str) -> Arc<Credentials> {
        self.credentials_as(path, ServerTls::EDGE)
    }

    fn credentials_as(&self, path: &str, server_tls: ServerTls) -> Arc<Credentials> {
        let folder = tempfile::tempdir().unwrap();
        let files = self.write(path, folder.path(), "own");
        Credentials::load(files, server_tls, Arc::new(SystemClock)).unwrap()
    }

    /// A client's certificate and key, for a TLS stack that is not the project's own.
    pub fn client(&self, spiffe_id: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let issued = self.issue(spiffe_id);
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
        (der(&issued.chain_pem), key)
    }

    /// The authority's own certificate.
    pub fn root(&self) -> CertificateDer<'static> {
        der(self.0.pem())
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
