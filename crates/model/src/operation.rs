//! Names that callers give: tenants and operation ids.

use std::fmt;

use crate::digest::Digest;
use crate::time::UnixTime;

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

    /// When the id was made, as it says itself.
    pub fn made_at(&self) -> UnixTime {
        let digits = self.uuid().filter(char::is_ascii_hexdigit).take(12);
        let milliseconds = digits.fold(0, |sum, digit| {
            sum * 16 + i64::from(digit.to_digit(16).unwrap_or_default())
        });
        UnixTime::from_milliseconds(milliseconds)
    }

    /// How long what the id was used for is remembered, if it is used at `now`. A repeat after that is
    /// known by [`OperationId::is_forgotten`].
    pub fn kept_until(&self, now: UnixTime, retention_seconds: u64) -> UnixTime {
        self.made_at().max(now).plus_seconds(retention_seconds)
    }

    /// Whether the id is so old that what it was used for may be forgotten.
    pub fn is_forgotten(&self, now: UnixTime, retention_seconds: u64) -> bool {
        self.made_at().plus_seconds(retention_seconds) <= now
    }

    /// The id of the one operation that follows from this one for `reason`: always the same.
    #[must_use]
    pub fn following(&self, reason: &str) -> Self {
        let time_and_version: String = self.uuid().take(15).collect();
        let digest = Digest::of_bytes(format!("{reason}\0{self}").as_bytes()).to_hex();
        let mut digits = digest.chars();
        let mut next = |count| digits.by_ref().take(count).collect::<String>();
        let (first, second, third) = (next(3), next(3), next(12));
        Self(format!(
            "{PREFIX}{time_and_version}{first}-8{second}-{third}"
        ))
    }

    fn uuid(&self) -> std::str::Chars<'_> {
        self.0.strip_prefix(PREFIX).unwrap_or_default().chars()
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

    #[test]
    fn an_id_tells_when_it_was_made_and_what_follows_from_it() {
        let id = OperationId::parse("urn:cl:operation:01234567-89ab-7cde-8f01-23456789abcd");
        let id = id.unwrap();
        assert_eq!(id.made_at().milliseconds(), 0x0123_4567_89ab);
        let next = id.following("withheld");
        assert_eq!(OperationId::parse(next.as_str()), Some(next.clone()));
        assert_eq!(next, id.following("withheld"));
        assert_eq!(next.made_at(), id.made_at());
        assert_ne!(next, id.following("other"));
        assert_ne!(next, id);
        let made = id.made_at();
        let later = UnixTime::from_milliseconds(made.milliseconds() + 500);
        assert_eq!(id.kept_until(later, 9), later.plus_seconds(9));
        let earlier = UnixTime::from_milliseconds(0);
        assert_eq!(id.kept_until(earlier, 9), made.plus_seconds(9));
        assert!(!id.is_forgotten(later, 9));
        assert!(id.is_forgotten(made.plus_seconds(9), 9));
    }
}
