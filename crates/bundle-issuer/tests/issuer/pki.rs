//! An authority and certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_pki::{Leaf, Validity};

pub(crate) const TRUST_DOMAIN: &str = "example.org";

/// From 2000 to 2090.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 3_786_912_000,
};

pub(crate) struct Authority(cl_pki::Authority);

impl Authority {
    pub(crate) fn new() -> Self {
        Self(cl_pki::Authority::new("test", VALIDITY).unwrap())
    }

    /// Fresh credentials of one process.
    pub(crate) fn credentials(&self, path: &str) -> Arc<Credentials> {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            chain: folder.path().join("own.pem"),
            key: folder.path().join("own.key"),
            trust: folder.path().join("ca.pem"),
        };
        self.write(path, &files);
        Credentials::load(files, ServerTls::INTERNAL, Arc::new(SystemClock)).unwrap()
    }

    /// Writes a fresh certificate, its key and the authority.
    pub(crate) fn write(&self, path: &str, files: &TlsFiles) {
        let issued = self.0.issue(&Leaf {
            uris: &[&id(path)],
            names: &["localhost", "127.0.0.1"],
            validity: VALIDITY,
            serial: 1,
        });
        let issued = issued.unwrap();
        fs::write(&files.chain, issued.chain_pem).unwrap();
        fs::write(&files.key, &*issued.key_pem).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.0.pem()).unwrap();
    }
}

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}
