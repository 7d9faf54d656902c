//! Who is at the other end: SPIFFE ids read from certificates.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use ring::digest;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

const SCHEME: &str = "spiffe://";
const MAX_ID_BYTES: usize = 2048;
const MAX_TRUST_DOMAIN_BYTES: usize = 255;

/// A SPIFFE id: `spiffe://<trust-domain>/<zone>/<process>`, or one segment more as in
/// `spiffe://<trust-domain>/client/<tenant>/<name>`.
///
/// Strict: only the characters that the SPIFFE standard allows, no percent-encoding, no empty or
/// dot segments, no port, query or fragment, so that equal ids are equal bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpiffeId {
    text: Arc<str>,
    path_start: usize,
}

impl SpiffeId {
    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The trust domain.
    pub fn trust_domain(&self) -> &str {
        &self.text[SCHEME.len()..self.path_start]
    }

    /// The path segments; two or three.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.text[self.path_start + 1..].split('/')
    }

    /// The first path segment.
    pub fn zone(&self) -> &str {
        self.segments().next().unwrap_or_default()
    }
}

impl FromStr for SpiffeId {
    type Err = InvalidSpiffeId;

    fn from_str(text: &str) -> Result<Self, InvalidSpiffeId> {
        if text.len() > MAX_ID_BYTES {
            return Err(InvalidSpiffeId::TooLong);
        }
        let rest = text.strip_prefix(SCHEME).ok_or(InvalidSpiffeId::Scheme)?;
        let (trust_domain, path) = rest.split_once('/').ok_or(InvalidSpiffeId::Path)?;
        check_trust_domain(trust_domain)?;
        let segments = path.split('/').count();
        if !(2..=3).contains(&segments) || !path.split('/').all(is_segment) {
            return Err(InvalidSpiffeId::Path);
        }
        Ok(Self {
            text: text.into(),
            path_start: SCHEME.len() + trust_domain.len(),
        })
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpiffeId({})", self.text)
    }
}

/// Why text is no SPIFFE id of this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpiffeId {
    /// Longer than 2048 bytes.
    #[error("a SPIFFE id has at most 2048 bytes")]
    TooLong,
    /// Does not start with `spiffe://`.
    #[error("a SPIFFE id starts with spiffe://")]
    Scheme,
    /// Empty, too long, or with a character outside `a-z 0-9 . - _`.
    #[error("not a SPIFFE trust domain")]
    TrustDomain,
    /// Not two or three segments of `A-Z a-z 0-9 . - _`.
    #[error("a SPIFFE path has two or three plain segments")]
    Path,
}

pub(crate) fn check_trust_domain(text: &str) -> Result<(), InvalidSpiffeId> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    if text.is_empty() || text.len() > MAX_TRUST_DOMAIN_BYTES || !text.bytes().all(plain) {
        return Err(InvalidSpiffeId::TrustDomain);
    }
    Ok(())
}

pub(crate) fn is_segment(text: &str) -> bool {
    let plain =
        |byte: u8| matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(plain)
}

/// The authenticated other end of a connection; in the extensions of every request whose
/// connection showed a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerId {
    /// Its SPIFFE id.
    pub id: SpiffeId,
    /// Serial number of its certificate, in lower-case hex.
    pub serial: String,
    /// SHA-256 of its certificate, as `x5t#S256` has it.
    pub thumbprint: [u8; 32],
    /// First second at which the certificate is valid.
    pub not_before_unix_s: i64,
    /// Last second at which the certificate is valid.
    pub not_after_unix_s: i64,
}

impl PeerId {
    /// Reads a leaf certificate whose chain was already verified.
    pub fn from_certificate(certificate: &CertificateDer<'_>) -> Result<Self, InvalidPeer> {
        let (rest, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| InvalidPeer::Malformed)?;
        if !rest.is_empty() {
            return Err(InvalidPeer::Malformed);
        }
        if parsed.is_ca() {
            return Err(InvalidPeer::Authority);
        }
        let thumbprint = digest::digest(&digest::SHA256, certificate);
        Ok(Self {
            id: only_uri(&parsed)?.parse()?,
            serial: HEXLOWER.encode(parsed.raw_serial()),
            thumbprint: thumbprint
                .as_ref()
                .try_into()
                .map_err(|_| InvalidPeer::Malformed)?,
            not_before_unix_s: parsed.validity().not_before.timestamp(),
            not_after_unix_s: parsed.validity().not_after.timestamp(),
        })
    }
}

fn only_uri<'a>(certificate: &'a X509Certificate<'_>) -> Result<&'a str, InvalidPeer> {
    let names = certificate
        .subject_alternative_name()
        .map_err(|_| InvalidPeer::Malformed)?
        .ok_or(InvalidPeer::NotOneUri)?;
    let mut found = None;
    for name in &names.value.general_names {
        match name {
            GeneralName::URI(uri) if found.is_none() => found = Some(*uri),
            GeneralName::URI(_) => return Err(InvalidPeer::NotOneUri),
            GeneralName::Invalid(..) => return Err(InvalidPeer::Malformed),
            GeneralName::OtherName(..)
            | GeneralName::RFC822Name(_)
            | GeneralName::DNSName(_)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::IPAddress(_)
            | GeneralName::RegisteredID(_) => {}
        }
    }
    found.ok_or(InvalidPeer::NotOneUri)
}

/// Why a certificate names no peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPeer {
    /// Not a certificate in DER, or more than one.
    #[error("not a DER certificate")]
    Malformed,
    /// A certificate authority's own certificate.
    #[error("an authority's certificate is no peer's")]
    Authority,
    /// No URI name, or several.
    #[error("a certificate has exactly one URI name")]
    NotOneUri,
    /// The URI name is no SPIFFE id.
    #[error(transparent)]
    Id(#[from] InvalidSpiffeId),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_parts_of_an_id() {
        let id: SpiffeId = "spiffe://example.org/client/acme/agent-1".parse().unwrap();
        assert_eq!(id.trust_domain(), "example.org");
        assert_eq!(id.zone(), "client");
        assert_eq!(
            id.segments().collect::<Vec<_>>(),
            ["client", "acme", "agent-1"]
        );
        assert_eq!(id.to_string(), "spiffe://example.org/client/acme/agent-1");
    }

    #[test]
    fn refuses_everything_that_is_not_canonical() {
        for (text, expected) in [
            ("", InvalidSpiffeId::Scheme),
            ("https://example.org/a/b", InvalidSpiffeId::Scheme),
            ("SPIFFE://example.org/a/b", InvalidSpiffeId::Scheme),
            ("spiffe://example.org", InvalidSpiffeId::Path),
            ("spiffe://example.org/a", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/b/c/d", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/b/", InvalidSpiffeId::Path),
            ("spiffe://example.org//b", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/..", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/.", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/b?c", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/b#c", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/%62", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/*", InvalidSpiffeId::Path),
            ("spiffe://example.org/a/b\n", InvalidSpiffeId::Path),
            ("spiffe:///a/b", InvalidSpiffeId::TrustDomain),
            ("spiffe://Example.org/a/b", InvalidSpiffeId::TrustDomain),
            ("spiffe://example.org:443/a/b", InvalidSpiffeId::TrustDomain),
            (
                "spiffe://user@example.org/a/b",
                InvalidSpiffeId::TrustDomain,
            ),
        ] {
            assert_eq!(text.parse::<SpiffeId>(), Err(expected), "{text}");
        }
        let long = format!("spiffe://example.org/a/{}", "b".repeat(2048));
        assert_eq!(long.parse::<SpiffeId>(), Err(InvalidSpiffeId::TooLong));
    }

    proptest! {
        #[test]
        fn what_parses_prints_the_same(text in "spiffe://[a-z.]{1,9}/[a-zA-Z./_-]{1,20}") {
            if let Ok(id) = text.parse::<SpiffeId>() {
                prop_assert_eq!(id.to_string(), text);
                prop_assert!((2..=3).contains(&id.segments().count()));
            }
        }

        #[test]
        fn foreign_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            prop_assert!(PeerId::from_certificate(&CertificateDer::from(bytes)).is_err());
        }
    }
}
