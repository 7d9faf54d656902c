//! The authority and the certificates of a test deployment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://example.org/{path}")
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

    /// Writes `pki/` of the process with this SPIFFE path into a home folder.
    pub(crate) fn write(&self, home: &Path, path: &str) -> TlsFiles {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        let uri = SanType::URI(id(path).as_str().try_into().unwrap());
        params.subject_alt_names.push(uri);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2090, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pki = home.join("pki");
        fs::create_dir_all(&pki).unwrap();
        let files = TlsFiles {
            chain: pki.join("cl-receipt-store.pem"),
            key: pki.join("cl-receipt-store.key"),
            trust: pki.join("ca.pem"),
        };
        fs::write(&files.chain, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.issuer.pem()).unwrap();
        files
    }

    pub(crate) fn credentials(&self, path: &str) -> Arc<Credentials> {
        let home = tempfile::tempdir().unwrap();
        let files = self.write(home.path(), path);
        Credentials::load(files, ServerTls::INTERNAL, Arc::new(SystemClock)).unwrap()
    }
}
