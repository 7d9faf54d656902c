//! A throw-away certificate authority, and SPIFFE certificates under it.
//!
//! # Role
//!
//! It makes what mutual TLS needs where no real authority is at hand: in a local home and in tests.
//! A deployment brings certificates of its own instead, from SPIRE or cert-manager. Nothing here
//! reads a file or a clock: validity and serial numbers come in, PEM text goes out. Only keys are
//! made here, from the operating system's randomness.
//!
//! # Holds
//!
//! The authority's private key, while an [`Authority`] lives.
//!
//! # Trusts
//!
//! The caller, for the names: any URI is put into a certificate as it is, so that tests can make
//! certificates that must be refused. Whoever holds the authority's key.
//!
//! # A compromise yields
//!
//! The identity of every process that trusts the authority.

#![deny(missing_docs)]

use std::fmt;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use time::OffsetDateTime;
use x509_parser::pem::parse_x509_pem;
use zeroize::Zeroizing;

/// When a certificate is valid, in whole seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first valid second.
    pub not_before_unix_s: i64,
    /// The last valid second.
    pub not_after_unix_s: i64,
}

/// A certificate authority with its private key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// What a leaf certificate says.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// Its URI names: one SPIFFE id, unless it is to be refused.
    pub uris: &'a [&'a str],
    /// Its DNS names and IP addresses.
    pub names: &'a [&'a str],
    /// When it is valid.
    pub validity: Validity,
    /// Its serial number, unique under its authority and not 0.
    pub serial: u128,
}

/// A leaf certificate and its private key.
pub struct Issued {
    /// The certificate, PEM.
    pub chain_pem: String,
    /// Its private key, PKCS#8, PEM.
    pub key_pem: Zeroizing<String>,
}

impl Authority {
    /// Makes a key, and a certificate for it that it signs itself.
    ///
    /// # Errors
    ///
    /// [`Error::Validity`] if it ends before it begins, or lies outside the calendar.
    pub fn new(name: &str, validity: Validity) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        validity.apply(&mut params)?;
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
        })
    }

    /// Takes up an authority that was made before, from [`Authority::pem`] and
    /// [`Authority::key_pem`].
    ///
    /// # Errors
    ///
    /// [`Error::NotAnAuthority`] if the certificate does not allow to issue; [`Error::OtherKey`] if
    /// the key is not the certificate's; [`Error::Certificate`] if either cannot be read.
    pub fn load(pem: &str, key_pem: &str) -> Result<Self, Error> {
        let key = KeyPair::from_pem(key_pem)?;
        let (_, block) =
            parse_x509_pem(pem.as_bytes()).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        let certificate = block
            .parse_x509()
            .map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        if !certificate.is_ca() {
            return Err(Error::NotAnAuthority);
        }
        let public_key = &certificate.public_key().subject_public_key.data;
        if public_key.as_ref() != key.public_key_raw() {
            return Err(Error::OtherKey);
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_pem(pem, key)?,
            pem: pem.to_owned(),
        })
    }

    /// The authority's certificate, PEM: what peers trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The authority's private key, PKCS#8, PEM.
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.issuer.key().serialize_pem())
    }

    /// Makes a key, and a certificate for it, usable as a server and as a client.
    ///
    /// # Errors
    ///
    /// [`Error::Validity`] as for [`Authority::new`]; [`Error::Certificate`] if a name is not
    /// ASCII; [`Error::Serial`] if the serial number is 0.
    pub fn issue(&self, leaf: &Leaf<'_>) -> Result<Issued, Error> {
        if leaf.serial == 0 {
            return Err(Error::Serial);
        }
        let names: Vec<String> = leaf.names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        for uri in leaf.uris {
            let uri = SanType::URI((*uri).try_into()?);
            params.subject_alt_names.push(uri);
        }
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.serial_number = Some(SerialNumber::from_slice(&leaf.serial.to_be_bytes()));
        params.use_authority_key_identifier_extension = true;
        leaf.validity.apply(&mut params)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            chain_pem: certificate.pem(),
            key_pem: Zeroizing::new(key.serialize_pem()),
        })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

impl Validity {
    fn apply(self, params: &mut CertificateParams) -> Result<(), Error> {
        if self.not_after_unix_s < self.not_before_unix_s {
            return Err(Error::Validity);
        }
        params.not_before = date(self.not_before_unix_s)?;
        params.not_after = date(self.not_after_unix_s)?;
        Ok(())
    }
}

fn date(unix_s: i64) -> Result<OffsetDateTime, Error> {
    let date = OffsetDateTime::from_unix_timestamp(unix_s).map_err(|_| Error::Validity)?;
    // The years that a certificate can state.
    if !(1950..=9999).contains(&date.year()) {
        return Err(Error::Validity);
    }
    Ok(date)
}

/// Why a certificate is not made. Never names a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The validity ends before it begins, or lies outside the calendar.
    #[error("the validity is empty or out of range")]
    Validity,
    /// The serial number is 0.
    #[error("a serial number is not 0")]
    Serial,
    /// The certificate does not allow to issue others.
    #[error("the certificate is not an authority's")]
    NotAnAuthority,
    /// The private key belongs to another certificate.
    #[error("the private key is not the certificate's")]
    OtherKey,
    /// A name or a file cannot be used.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use x509_parser::extensions::GeneralName;

    use super::*;

    const VALIDITY: Validity = Validity {
        not_before_unix_s: 1_000_000_000,
        not_after_unix_s: 2_000_000_000,
    };

    const LEAF: Leaf<'_> = Leaf {
        uris: &["spiffe://example.org/vault/cl-vault"],
        names: &["localhost", "127.0.0.1"],
        validity: VALIDITY,
        serial: 0x1234,
    };

    fn authority() -> Authority {
        Authority::new("test", VALIDITY).unwrap()
    }

    /// Whether a library that knows nothing of this one accepts the certificate at that time.
    fn is_accepted(authority: &Authority, issued: &Issued, name: &str, unix_s: u64) -> bool {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(der(authority.pem())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_s));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier
            .verify_server_cert(&der(&issued.chain_pem), &[], &name, &[], now)
            .is_ok()
    }

    #[test]
    fn a_leaf_verifies_for_its_names_within_its_validity() {
        let authority = authority();
        let issued = authority.issue(&LEAF).unwrap();
        assert!(is_accepted(&authority, &issued, "localhost", 1_500_000_000));
        assert!(is_accepted(&authority, &issued, "127.0.0.1", 1_500_000_000));
        assert!(!is_accepted(&authority, &issued, "other", 1_500_000_000));
        assert!(!is_accepted(&authority, &issued, "localhost", 999_999_999));
        assert!(!is_accepted(
            &authority,
            &issued,
            "localhost",
            2_000_000_001
        ));
        let stranger = Authority::new("test", VALIDITY).unwrap();
        assert!(!is_accepted(&stranger, &issued, "localhost", 1_500_000_000));
    }

    #[test]
    fn a_loaded_authority_issues_as_before() {
        let authority = authority();
        let loaded = Authority::load(authority.pem(), &authority.key_pem()).unwrap();
        let issued = loaded.issue(&LEAF).unwrap();
        assert!(is_accepted(&authority, &issued, "localhost", 1_500_000_000));
    }

    #[test]
    fn names_and_serial_numbers_are_what_was_asked_for() {
        let uris = ["spiffe://example.org/a/b", "https://example.org/"];
        let issued = authority().issue(&Leaf {
            uris: &uris,
            ..LEAF
        });
        let (_, block) = parse_x509_pem(issued.unwrap().chain_pem.as_bytes()).unwrap();
        let certificate = block.parse_x509().unwrap();
        assert_eq!(certificate.raw_serial(), [0x12, 0x34]);
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        let found = names.value.general_names.iter().filter_map(|name| {
            let GeneralName::URI(uri) = name else {
                return None;
            };
            Some(*uri)
        });
        assert_eq!(found.collect::<Vec<_>>(), uris);
    }

    #[test]
    fn refuses_what_is_no_authority() {
        let (authority, other) = (authority(), authority());
        let leaf = authority.issue(&LEAF).unwrap();
        let load = |pem: &str, key: &str| Authority::load(pem, key).unwrap_err();
        assert!(matches!(
            load(authority.pem(), &other.key_pem()),
            Error::OtherKey
        ));
        assert!(matches!(
            load(&leaf.chain_pem, &leaf.key_pem),
            Error::NotAnAuthority
        ));
        assert!(matches!(load("", &other.key_pem()), Error::Certificate(_)));
        assert!(matches!(load(other.pem(), ""), Error::Certificate(_)));
    }

    #[test]
    fn refuses_a_leaf_that_no_certificate_can_state() {
        let refused = |leaf: Leaf<'_>| authority().issue(&leaf).unwrap_err();
        let with_end = |not_after_unix_s| Leaf {
            validity: Validity {
                not_after_unix_s,
                ..VALIDITY
            },
            ..LEAF
        };
        for end in [999_999_999, i64::MAX, 300_000_000_000] {
            assert!(matches!(refused(with_end(end)), Error::Validity), "{end}");
        }
        let nameless = Leaf {
            uris: &["spiffe://ü"],
            ..LEAF
        };
        assert!(matches!(refused(nameless), Error::Certificate(_)));
        let zero = Leaf { serial: 0, ..LEAF };
        assert!(matches!(refused(zero), Error::Serial));
    }

    #[test]
    fn debug_shows_no_key() {
        let authority = authority();
        let issued = authority.issue(&LEAF).unwrap();
        for shown in [format!("{authority:?}"), format!("{issued:?}")] {
            assert!(shown.len() < 32, "{shown}");
        }
    }
}
