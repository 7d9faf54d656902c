//! Where a receipt belongs: tenant, operation and subject tag, parsed once.

use std::fmt;

use cl_model::digest::Digest;
use data_encoding::BASE64URL_NOPAD;

const OPERATION_PREFIX: &str = "urn:cl:operation:";
const MAX_TENANT_BYTES: usize = 63;
const TAG_BYTES: usize = 32;

/// A tenant's name: 1 to 63 characters of `a-z`, `0-9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(String);

impl Tenant {
    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_name = !text.is_empty() && text.len() <= MAX_TENANT_BYTES && text.bytes().all(plain);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of an operation, made by its writer: `urn:cl:operation:` and a UUIDv7, or for a
/// consumer's receipt the hex digits of that receipt's digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(String);

impl OperationId {
    /// Parses either form.
    pub fn parse(text: &str) -> Option<Self> {
        let tail = text.strip_prefix(OPERATION_PREFIX)?;
        (is_uuid_v7(tail) || is_digest(tail)).then(|| Self(text.to_owned()))
    }

    /// The id as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names the operation by the digest of its receipt.
    pub fn is_of_digest(&self, digest: Digest) -> bool {
        self.0.strip_prefix(OPERATION_PREFIX) == Some(&digest.to_hex())
    }

    /// Whether its tail is a UUIDv7.
    pub fn is_uuid(&self) -> bool {
        self.0
            .strip_prefix(OPERATION_PREFIX)
            .is_some_and(is_uuid_v7)
    }
}

fn is_digest(tail: &str) -> bool {
    Digest::parse(&format!("sha256:{tail}")).is_some()
}

fn is_uuid_v7(tail: &str) -> bool {
    tail.len() == 36
        && tail.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'7',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// The tag by which the receipts of one subject are found: 43 characters of base64url. Private.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectTag(String);

impl SubjectTag {
    /// Parses the canonical unpadded form of 32 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        (bytes.len() == TAG_BYTES).then(|| Self(text.to_owned()))
    }

    /// The tag's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SubjectTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectTag(..)")
    }
}

/// Where a receipt belongs, beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// The tenant that it belongs to.
    pub tenant: Tenant,
    /// The operation that it is about.
    pub operation_id: OperationId,
    /// The subject that the operation is about, if there is one.
    pub subject_tag: Option<SubjectTag>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_ids_have_two_forms() {
        let digest = Digest::of_bytes(b"x");
        let of_digest = format!("{OPERATION_PREFIX}{}", digest.to_hex());
        let uuid = format!("{OPERATION_PREFIX}0190a3c5-7b7e-7c3d-8e4f-0123456789ab");
        assert!(OperationId::parse(&uuid).is_some_and(|id| id.is_uuid()));
        assert!(OperationId::parse(&of_digest).is_some_and(|id| id.is_of_digest(digest)));
        for bad in [
            "0190a3c5-7b7e-7c3d-8e4f-0123456789ab".to_owned(),
            uuid.replace("-7c", "-4c"),
            uuid.replace("-8e", "-ce"),
            uuid.replace("ab", "AB"),
            of_digest.replace("urn", "URN"),
            of_digest[..of_digest.len() - 1].to_owned(),
            format!("{uuid}\n"),
        ] {
            assert_eq!(OperationId::parse(&bad), None, "{bad:?}");
        }
    }

    #[test]
    fn tenants_and_tags_have_one_form() {
        assert!(Tenant::parse(&"a".repeat(63)).is_some());
        for bad in ["", "A", "a_b", "a b", &"a".repeat(64)] {
            assert_eq!(Tenant::parse(bad), None, "{bad:?}");
        }
        let tag = BASE64URL_NOPAD.encode(&[7; 32]);
        let parsed = SubjectTag::parse(&tag).unwrap();
        assert!(!format!("{parsed:?}").contains(&tag));
        let padded = format!("{tag}=");
        // The last character carries two bits that must be zero.
        let stray = format!("{}d", &tag[..42]);
        for bad in ["", &tag[..42], &padded, &stray] {
            assert!(SubjectTag::parse(bad).is_none(), "{bad:?}");
        }
    }
}
