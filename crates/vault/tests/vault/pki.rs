//! An authority and certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    SerialNumber, date_time_ymd,
};

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0x1000);

pub(crate) const TRUST_DOMAIN: &str = "example.org";

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test");
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
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
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        let uri = SanType::URI(id(path).try_into().unwrap());
        params.subject_alt_names.push(uri);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2090, 1, 1);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(&files.chain, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.issuer.pem()).unwrap();
    }
}

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}
