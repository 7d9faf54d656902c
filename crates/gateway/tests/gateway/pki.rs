//! An authority and the certificates below it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType,
    SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) const TRUST_DOMAIN: &str = "example.org";

static SERIALS: AtomicU64 = AtomicU64::new(1);

pub(crate) fn id(path: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/{path}")
}

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn issue(&self, spiffe_id: &str) -> (Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let uri = SanType::URI(spiffe_id.try_into().unwrap());
        params.subject_alt_names.push(uri);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2080, 1, 1);
        let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// The files of a process, under its home folder's `pki`.
    pub(crate) fn write(&self, path: &str, folder: &Path, name: &str) -> TlsFiles {
        let (certificate, key) = self.issue(&id(path));
        let files = TlsFiles {
            chain: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
            trust: folder.join("ca.pem"),
        };
        fs::write(&files.chain, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&files.trust, self.0.pem()).unwrap();
        files
    }

    pub(crate) fn credentials(&self, path: &str, server_tls: ServerTls) -> Arc<Credentials> {
        let folder = tempfile::tempdir().unwrap();
        let files = self.write(path, folder.path(), "own");
        Credentials::load(files, server_tls, Arc::new(SystemClock)).unwrap()
    }

    /// A client's certificate and key, for a TLS stack that is not the gateway's own.
    pub(crate) fn client(
        &self,
        spiffe_id: &str,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let (certificate, key) = self.issue(spiffe_id);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }
}
