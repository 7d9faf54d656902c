//! `clientDataJSON`: what the browser says about the page.

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use super::{InvalidPasskey, RelyingParty};
use crate::json::{self, Limits};
use crate::opaque::opaque_debug;

/// The longest `clientDataJSON`.
pub const MAX_CLIENT_DATA_BYTES: usize = 4096;

/// What an authenticator was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceremony {
    /// To make a credential.
    Create,
    /// To sign with one.
    Get,
}

impl Ceremony {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "webauthn.create",
            Self::Get => "webauthn.get",
        }
    }
}

/// What `clientDataJSON` says. Members that are not known are tolerated: browsers may add some.
pub struct ClientData {
    kind: String,
    challenge: Vec<u8>,
    origin: String,
    is_cross_origin: bool,
}

opaque_debug!(ClientData);

impl ClientData {
    /// Reads strict JSON of at most [`MAX_CLIENT_DATA_BYTES`].
    ///
    /// # Errors
    ///
    /// [`InvalidPasskey::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPasskey> {
        let value = json::parse(bytes, Limits::network(MAX_CLIENT_DATA_BYTES))
            .map_err(|_| InvalidPasskey::Malformed)?;
        Self::read(&value).ok_or(InvalidPasskey::Malformed)
    }

    fn read(value: &Value) -> Option<Self> {
        let members = value.as_object()?;
        let text = |name: &str| members.get(name)?.as_str();
        let is_cross_origin = match members.get("crossOrigin") {
            None => false,
            Some(value) => value.as_bool()?,
        };
        Some(Self {
            kind: text("type")?.to_owned(),
            challenge: BASE64URL_NOPAD.decode(text("challenge")?.as_bytes()).ok()?,
            origin: text("origin")?.to_owned(),
            is_cross_origin,
        })
    }

    /// Checks that the page was one of `relying_party`, and that the browser answers `challenge`.
    ///
    /// # Errors
    ///
    /// [`InvalidPasskey::Type`], [`InvalidPasskey::Challenge`], [`InvalidPasskey::Origin`],
    /// [`InvalidPasskey::CrossOrigin`].
    pub fn check(
        &self,
        ceremony: Ceremony,
        challenge: &[u8],
        relying_party: &RelyingParty,
    ) -> Result<(), InvalidPasskey> {
        if self.kind != ceremony.as_str() {
            return Err(InvalidPasskey::Type);
        }
        if self.challenge != challenge {
            return Err(InvalidPasskey::Challenge);
        }
        if !relying_party.allows(&self.origin) {
            return Err(InvalidPasskey::Origin);
        }
        if self.is_cross_origin {
            return Err(InvalidPasskey::CrossOrigin);
        }
        Ok(())
    }
}
