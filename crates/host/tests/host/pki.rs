//! Authorities and certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::{Clock, SystemClock};
use cl_host::tls::{Credentials, ServerTls, TlsError, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0x1000);

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

pub(crate) struct Issued {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) serial: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn issue(&self, path: &str) -> Issued {
        self.issue_for(&[&id(path)], 2040)
    }

    /// A certificate with any URI names, valid until the start of a year.
    pub(crate) fn issue_for(&self, uris: &[&str], until_year: i32) -> Issued {
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        for uri in uris {
            let uri = SanType::URI((*uri).try_into().unwrap());
            params.subject_alt_names.push(uri);
        }
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until_year, 1, 1);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            chain: certificate.pem(),
            key: key.serialize_pem(),
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
