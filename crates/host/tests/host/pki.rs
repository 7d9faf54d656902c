//! Authorities and certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::{Clock, SystemClock};
use cl_host::tls::{Credentials, ServerTls, TlsError, TlsFiles};
use cl_pki::{Leaf, Validity};
use tempfile::TempDir;

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0x1000);

/// The start of 2000, and of 2040.
const VALIDITY: Validity = Validity {
    not_before_unix_s: 946_684_800,
    not_after_unix_s: 2_208_988_800,
};

/// The start of 2020.
pub(crate) const IN_THE_PAST_UNIX_S: i64 = 1_577_836_800;

pub(crate) struct Authority(cl_pki::Authority);

pub(crate) struct Issued {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) serial: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self(cl_pki::Authority::new(name, VALIDITY).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem().to_owned()
    }

    pub(crate) fn issue(&self, path: &str) -> Issued {
        self.issue_for(&[&id(path)], VALIDITY.not_after_unix_s)
    }

    /// A certificate with any URI names.
    pub(crate) fn issue_for(&self, uris: &[&str], not_after_unix_s: i64) -> Issued {
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let issued = self.0.issue(&Leaf {
            uris,
            names: &["localhost", "127.0.0.1"],
            validity: Validity {
                not_after_unix_s,
                ..VALIDITY
            },
            serial: serial.into(),
        });
        let issued = issued.unwrap();
        Issued {
            chain: issued.chain_pem,
            key: issued.key_pem.to_string(),
            serial: format!("{serial:04x}"),
        }
    }
}

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://example.org/{path}")
}

/// The three files of one process.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    pub(crate) fn new(issued: &Issued, trust: &str) -> Self {
        let folder = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        folder.write_trust(trust);
        folder.write(issued);
        folder
    }

    pub(crate) fn write(&self, issued: &Issued) {
        let files = self.files();
        fs::write(&files.chain, &issued.chain).unwrap();
        fs::write(&files.key, &issued.key).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn write_trust(&self, trust: &str) {
        fs::write(self.files().trust, trust).unwrap();
    }

    pub(crate) fn files(&self) -> TlsFiles {
        let pki = self.dir.path().join("pki");
        fs::create_dir_all(&pki).unwrap();
        TlsFiles {
            chain: pki.join("health-only.pem"),
            key: pki.join("health-only.key"),
            trust: pki.join("ca.pem"),
        }
    }

    pub(crate) fn home(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn load(&self) -> Result<Arc<Credentials>, TlsError> {
        self.load_at(Arc::new(SystemClock))
    }

    pub(crate) fn load_at(&self, clock: Arc<dyn Clock>) -> Result<Arc<Credentials>, TlsError> {
        Credentials::load(self.files(), ServerTls::INTERNAL, clock)
    }

    pub(crate) fn load_edge(&self) -> Arc<Credentials> {
        Credentials::load(self.files(), ServerTls::EDGE, Arc::new(SystemClock)).unwrap()
    }
}

/// Fresh credentials of one process, with its files gone.
pub(crate) fn credentials(authority: &Authority, path: &str) -> Arc<Credentials> {
    Folder::new(&authority.issue(path), &authority.pem())
        .load()
        .unwrap()
}
