//! Names that callers give: tenants and operation ids.

use std::fmt;

/// A tenant: 1 to 63 characters of `a-z`, `0-9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TenantName(String);

impl TenantName {
    /// Reads a tenant's name.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        ((1..=63).contains(&text.len()) && text.bytes().all(is_plain))
            .then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const PREFIX: &str = "urn:cl:operation:";

/// The id of an operation in receipts: `urn:cl:operation:` and a UUIDv7.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(String);

impl OperationId {
    /// Reads an operation id.
    pub fn parse(text: &str) -> Option<Self> {
        let uuid = text.strip_prefix(PREFIX)?;
        is_uuid_v7(uuid).then(|| Self(text.to_owned()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_uuid_v7(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'7',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_plain_tenants() {
        let longest = "a".repeat(63);
        for good in ["a", "acme-2", &longest] {
            assert!(TenantName::parse(good).is_some(), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in ["", "A", "a_b", "a b", "a\n", "é", &too_long] {
            assert!(TenantName::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn reads_only_uuids_of_version_7() {
        let id = |uuid: &str| OperationId::parse(&format!("urn:cl:operation:{uuid}"));
        assert!(id("01234567-89ab-7cde-8f01-23456789abcd").is_some());
        for bad in [
            "",
            "01234567-89ab-4cde-8f01-23456789abcd",
            "01234567-89ab-7cde-cf01-23456789abcd",
            "01234567-89AB-7cde-8f01-23456789abcd",
            "0123456789ab7cde8f0123456789abcd",
            "01234567-89ab-7cde-8f01-23456789abcd0",
        ] {
            assert!(id(bad).is_none(), "{bad}");
        }
        assert!(OperationId::parse("01234567-89ab-7cde-8f01-23456789abcd").is_none());
    }
}
