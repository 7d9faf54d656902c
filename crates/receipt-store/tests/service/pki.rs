//! The authority and the certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_pki::{Leaf, Validity};

/// From 2000 to 2090.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 3_786_912_000,
};

pub(crate) struct Authority(cl_pki::Authority);

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://example.org/{path}")
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self(cl_pki::Authority::new("test", VALIDITY).unwrap())
    }

    /// Writes `pki/` of the process with this SPIFFE path into a home folder.
    pub(crate) fn write(&self, home: &Path, path: &str) -> TlsFiles {
        let issued = self.0.issue(&Leaf {
            uris: &[&id(path)],
            names: &["localhost", "127.0.0.1"],
            validity: VALIDITY,
            serial: 1,
        });
        let issued = issued.unwrap();
        let pki = home.join("pki");
        fs::create_dir_all(&pki).unwrap();
        let files = TlsFiles {
            chain: pki.join("cl-receipt-store.pem"),
            key: pki.join("cl-receipt-store.key"),
            trust: pki.join("ca.pem"),
        };
        fs::write(&files.chain, issued.chain_pem).unwrap();
        fs::write(&files.key, &*issued.key_pem).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.0.pem()).unwrap();
        files
    }

    pub(crate) fn credentials(&self, path: &str) -> Arc<Credentials> {
        let home = tempfile::tempdir().unwrap();
        let files = self.write(home.path(), path);
        Credentials::load(files, ServerTls::INTERNAL, Arc::new(SystemClock)).unwrap()
    }
}
