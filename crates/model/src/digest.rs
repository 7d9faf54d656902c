//! SHA-256 digests as the protocol writes them: `sha256:` and 64 lowercase hex digits.

use std::fmt;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::canonical;
use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};

const PREFIX: &str = "sha256:";

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest before the first entry of a portable receipt log: all zeros.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of raw bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(hash)
    }

    /// The digest of a value's canonical bytes. There is no domain separation (spec 6.4).
    pub fn of_json(value: &Value) -> Self {
        Self::of_bytes(canonical::to_text(value).as_bytes())
    }

    /// Parses `sha256:` and 64 lowercase hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(PREFIX)?;
        let hash = HEXLOWER.decode(hex.as_bytes()).ok()?;
        Some(Self(hash.try_into().ok()?))
    }

    /// The 64 hex digits alone, as content-addressed ids use them.
    pub fn to_hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromJson for Digest {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::parse(string(value)?).ok_or_else(|| Expected::Digest.into())
    }
}

impl ToJson for Digest {
    fn to_json(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_digest_of_null() {
        assert_eq!(
            Digest::of_json(&Value::Null).to_string(),
            "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
        );
    }

    #[test]
    fn parses_only_its_own_form() {
        let text = Digest::of_bytes(b"x").to_string();
        assert_eq!(Digest::parse(&text), Some(Digest::of_bytes(b"x")));
        for bad in [
            text.to_uppercase(),
            text.replace("sha256:", ""),
            format!("{text}\n"),
            format!("{text}0"),
            text[..70].to_owned(),
            "sha256:EXAMPLE".to_owned(),
        ] {
            assert_eq!(Digest::parse(&bad), None, "{bad}");
        }
    }
}
