//! The deployment's authority, and the files and credentials below it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_pki::{Issued, Leaf, Validity};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

pub(crate) const TRUST_DOMAIN: &str = "example.org";

/// From 2001 to 2080.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 978_307_200,
    not_after_unix_s: 3_471_292_800,
};

static SERIALS: AtomicU64 = AtomicU64::new(1);

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}

pub(crate) struct Authority(cl_pki::Authority);

impl Authority {
    pub(crate) fn new() -> Self {
        Self(cl_pki::Authority::new("test", VALIDITY).unwrap())
    }

    fn issue(&self, spiffe_id: &str) -> Issued {
        let leaf = Leaf {
            uris: &[spiffe_id],
            names: &["localhost"],
            validity: VALIDITY,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed).into(),
        };
        self.0.issue(&leaf).unwrap()
    }

    /// The files of a process, under its home folder's `pki`.
    pub(crate) fn write(&self, path: &str, folder: &Path, name: &str) -> TlsFiles {
        let issued = self.issue(&id(path));
        let files = TlsFiles {
            chain: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
            trust: folder.join("ca.pem"),
        };
        fs::write(&files.chain, &issued.chain_pem).unwrap();
        fs::write(&files.key, issued.key_pem.as_bytes()).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.0.pem()).unwrap();
        files
    }

    pub(crate) fn credentials(&self, path: &str, server_tls: ServerTls) -> Arc<Credentials> {
        let folder = tempfile::tempdir().unwrap();
        let files = self.write(path, folder.path(), "own");
        Credentials::load(files, server_tls, Arc::new(SystemClock)).unwrap()
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        der(self.0.pem())
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
