//! Passkeys: what a WebAuthn authenticator signed, verified by `ring` alone (spec 9.3).
//!
//! The challenge of an approval is the digest of the approval itself, so that one gesture of a person
//! signs one document. Everything here is pure: challenge, relying party, stored key and stored
//! counter come in as arguments, and nothing that is refused is repeated.

mod assertion;
mod attestation;
mod authenticator_data;
mod client_data;
mod cose;

use std::fmt;

use crate::digest::Digest;

pub use self::assertion::{Assertion, Expected, VerifiedAssertion, next_counter};
pub use self::attestation::{MAX_ATTESTATION_BYTES, NewCredential, enrol};
pub use self::authenticator_data::{AuthenticatorData, MAX_AUTHENTICATOR_DATA_BYTES};
pub use self::client_data::{Ceremony, ClientData, MAX_CLIENT_DATA_BYTES};
pub use self::cose::{ALGORITHMS, CoseKey};

/// The longest id of a credential, in bytes.
pub const MAX_CREDENTIAL_ID_BYTES: usize = 1023;

/// Who asks authenticators to sign: a relying party id, and the origins that may act for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origins: Vec<String>,
}

impl RelyingParty {
    /// A relying party whose `origins` are compared as text; `None` unless each of them is an
    /// origin under the id, as browsers write it: `https://`, a lower-case host that is the id or
    /// ends with `.` and the id, and a port only if it is not the default one. `localhost` may be
    /// plain `http`.
    pub fn new(id: &str, origins: Vec<String>) -> Option<Self> {
        let is_host = !id.is_empty()
            && id.len() <= 253
            && id
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
            && !id.starts_with('.')
            && !id.ends_with('.');
        let are_ours = origins.iter().all(|origin| is_origin_of(origin, id));
        (is_host && are_ours && !origins.is_empty()).then(|| Self {
            id: id.to_owned(),
            origins,
        })
    }

    /// The relying party id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The allowed origins.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    fn hash(&self) -> Digest {
        Digest::of_bytes(self.id.as_bytes())
    }

    fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed == origin)
    }
}

fn is_origin_of(origin: &str, id: &str) -> bool {
    let (rest, default_port) = match origin.split_once("://") {
        Some(("https", rest)) => (rest, "443"),
        Some(("http", rest)) if id == "localhost" => (rest, "80"),
        Some(_) | None => return false,
    };
    let (host, port) = rest
        .split_once(':')
        .map_or((rest, None), |(host, port)| (host, Some(port)));
    let is_port = port.is_none_or(|port| {
        port != default_port
            && !port.starts_with('0')
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    });
    let is_under = host
        .strip_suffix(id)
        .is_some_and(|labels| labels.is_empty() || labels.ends_with('.'));
    let is_plain = host
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
    is_port && is_under && is_plain && !host.starts_with('.')
}

/// Why something that claims to come from an authenticator does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPasskey {
    /// It departs from its form.
    Malformed,
    /// It belongs to another ceremony.
    Type,
    /// It answers another challenge.
    Challenge,
    /// It was made on a page of an origin that is not allowed.
    Origin,
    /// It was made in a frame of another origin.
    CrossOrigin,
    /// It was made for another relying party.
    RpId,
    /// Nobody was there.
    UserAbsent,
    /// Nobody was recognised.
    UserUnverified,
    /// Its backup flags contradict each other, or what the credential was enrolled with.
    BackupState,
    /// The signature is not the credential's.
    Signature,
    /// The key is of a kind that is not supported.
    UnsupportedKey,
}

impl InvalidPasskey {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "ASSERTION_MALFORMED",
            Self::Type => "ASSERTION_TYPE",
            Self::Challenge => "ASSERTION_CHALLENGE",
            Self::Origin => "ASSERTION_ORIGIN",
            Self::CrossOrigin => "ASSERTION_CROSS_ORIGIN",
            Self::RpId => "ASSERTION_RP_ID",
            Self::UserAbsent => "ASSERTION_USER_ABSENT",
            Self::UserUnverified => "ASSERTION_USER_UNVERIFIED",
            Self::BackupState => "ASSERTION_BACKUP_STATE",
            Self::Signature => "ASSERTION_SIGNATURE",
            Self::UnsupportedKey => "CREDENTIAL_KEY_UNSUPPORTED",
        }
    }
}

impl fmt::Display for InvalidPasskey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl std::error::Error for InvalidPasskey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        let of = |id: &str, origin: &str| RelyingParty::new(id, vec![origin.to_owned()]).is_some();
        for (id, origin) in [
            ("notes.example", "https://notes.example"),
            ("notes.example", "https://console.notes.example"),
            ("notes.example", "https://console.notes.example:8443"),
            ("localhost", "http://localhost:8080"),
            ("localhost", "https://localhost:8443"),
        ] {
            assert!(of(id, origin), "{id} {origin}");
        }
        for (id, origin) in [
            ("notes.example", "https://evilnotes.example"),
            ("notes.example", "http://console.notes.example"),
            ("notes.example", "https://console.notes.example/"),
            ("notes.example", "https://console.notes.example:443"),
            ("notes.example", "https://console.notes.example:08"),
            ("notes.example", "https://console.notes.example:+8443"),
            ("notes.example", "https://console.notes.example:"),
            ("notes.example", "https://Console.notes.example"),
            ("notes.example", "https://.notes.example"),
            ("notes.example", "https://x@notes.example"),
            ("notes.example", "null"),
            ("localhost", "http://localhost:80"),
            ("", "https://"),
            (".example", "https://a.example"),
        ] {
            assert!(!of(id, origin), "{id} {origin}");
        }
        assert_eq!(RelyingParty::new("notes.example", Vec::new()), None);
    }
}
