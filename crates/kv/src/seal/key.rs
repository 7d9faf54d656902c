//! Keys of a sealed store, and the bytes they become.
//!
//! ```text
//! 0x01, tenant, kind, parts..
//! tenant, kind = text          text = bytes with 0x00 as 0x00 0xff, then 0x00 0x01
//! part = 0x01, u64 big-endian | 0x02, text | 0x03, 32 bytes of HMAC-SHA256
//! ```
//!
//! The encoding is injective, every whole number of parts is a prefix, and public parts of one type
//! keep their order. Private parts have none.

use std::fmt;

use ring::hmac;
use zeroize::Zeroizing;

use crate::error::{Damage, Error, InvalidName};

/// First byte of the keys of everything a store holds for its callers.
pub(super) const SPACE: u8 = 0x01;

const NUMBER: u8 = 0x01;
const PUBLIC: u8 = 0x02;
const PRIVATE: u8 = 0x03;
const DERIVED_BYTES: usize = 32;
const DERIVE_LABEL: &[u8] = b"cl-kv/part/1\0";

/// Whom stored data belongs to: the first part of every key, in the clear.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Box<str>);

impl Tenant {
    /// Reads a tenant's name: 1 to 128 bytes, no control character.
    pub fn parse(name: &str) -> Result<Self, InvalidName> {
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err(InvalidName);
        }
        Ok(Self(name.into()))
    }

    /// The process itself, for what belongs to no tenant. No name parses to it.
    pub fn process() -> Self {
        Self("".into())
    }

    /// The name; empty for the process itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of this tenant and kind that has no parts yet.
    pub fn key(&self, kind: Kind) -> Key {
        Key {
            tenant: self.clone(),
            kind,
            parts: Vec::new(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![SPACE];
        push_text(&mut bytes, self.0.as_bytes());
        bytes
    }
}

/// What sort of thing a key names, such as `claim`: the second part of every key, in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(&'static str);

impl Kind {
    /// The kind with this name.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

/// A key: tenant, kind, and parts in order. As a prefix it means every key that continues it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    tenant: Tenant,
    kind: Kind,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Number(u64),
    Public(Vec<u8>),
    Private(Zeroizing<Vec<u8>>),
}

impl Key {
    /// Adds a number, ordered and in the clear.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.parts.push(Part::Number(number));
        self
    }

    /// Adds bytes, ordered and in the clear.
    #[must_use]
    pub fn public(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.parts.push(Part::Public(bytes.as_ref().to_vec()));
        self
    }

    /// Adds bytes that reach the engine only as a keyed hash over them and everything before them.
    #[must_use]
    pub fn private(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.parts
            .push(Part::Private(Zeroizing::new(bytes.as_ref().to_vec())));
        self
    }

    pub(super) fn encode(&self, lookup: &hmac::Key) -> Vec<u8> {
        let mut bytes = self.tenant.encode();
        push_text(&mut bytes, self.kind.0.as_bytes());
        for part in &self.parts {
            match part {
                Part::Number(number) => {
                    bytes.push(NUMBER);
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                Part::Public(text) => {
                    bytes.push(PUBLIC);
                    push_text(&mut bytes, text);
                }
                Part::Private(secret) => {
                    let derived = derive(lookup, &bytes, secret);
                    bytes.push(PRIVATE);
                    bytes.extend_from_slice(derived.as_ref());
                }
            }
        }
        bytes
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        list.entry(&self.tenant.as_str())
            .entry(&self.kind.as_str())
            .entries(&self.parts)
            .finish()
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Public(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Self::Private(_) => f.write_str("private"),
        }
    }
}

/// The hash depends on the key so far, so that equal private parts show only where keys share
/// everything before them.
fn derive(lookup: &hmac::Key, before: &[u8], secret: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(lookup);
    context.update(DERIVE_LABEL);
    // The two variable parts stay apart, because `before` decodes by itself and ends where it ends.
    context.update(&(before.len() as u64).to_be_bytes());
    context.update(before);
    context.update(secret);
    context.sign()
}

fn push_text(bytes: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(0xff);
        }
    }
    bytes.extend_from_slice(&[0, 1]);
}

/// A key as a scan finds it: private parts show only their hash.
///
/// It stands for the same entry as the [`Key`] it was made from, in its own store only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    bytes: Vec<u8>,
    tenant: Tenant,
    kind: Box<str>,
    parts: Vec<FoundPart>,
}

/// A part of a [`Located`] key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundPart {
    /// A number.
    Number(u64),
    /// Public bytes.
    Public(Vec<u8>),
    /// The hash of private bytes.
    Private([u8; DERIVED_BYTES]),
}

impl Located {
    /// Whom the entry belongs to.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The name of the entry's kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[FoundPart] {
        &self.parts
    }

    pub(super) fn decode(bytes: Vec<u8>) -> Result<Self, Error> {
        let malformed = Error::Corrupt(Damage::MalformedKey);
        let Some((tenant, kind, parts)) = decode(&bytes) else {
            return Err(malformed);
        };
        Ok(Self {
            bytes,
            tenant,
            kind,
            parts,
        })
    }
}

fn decode(bytes: &[u8]) -> Option<(Tenant, Box<str>, Vec<FoundPart>)> {
    let mut rest = bytes.strip_prefix(&[SPACE])?;
    let tenant = Tenant(String::from_utf8(take_text(&mut rest)?).ok()?.into());
    let kind = String::from_utf8(take_text(&mut rest)?).ok()?.into();
    let mut parts = Vec::new();
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        parts.push(match *tag {
            NUMBER => FoundPart::Number(u64::from_be_bytes(take_array(&mut rest)?)),
            PUBLIC => FoundPart::Public(take_text(&mut rest)?),
            PRIVATE => FoundPart::Private(take_array(&mut rest)?),
            _ => return None,
        });
    }
    Some((tenant, kind, parts))
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*array)
}

fn take_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match take_array(rest)? {
            [0] => match take_array(rest)? {
                [0xff] => text.push(0),
                [1] => return Some(text),
                [_] => return None,
            },
            [byte] => text.push(byte),
        }
    }
}

/// Names one entry: by its [`Key`], or as a scan found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By its key.
    Key(Key),
    /// As found.
    Located(Located),
}

impl Target {
    pub(super) fn encode(&self, lookup: &hmac::Key) -> Vec<u8> {
        match self {
            Self::Key(key) => key.encode(lookup),
            Self::Located(located) => located.bytes.clone(),
        }
    }
}

impl From<Key> for Target {
    fn from(key: Key) -> Self {
        Self::Key(key)
    }
}

impl From<&Key> for Target {
    fn from(key: &Key) -> Self {
        Self::Key(key.clone())
    }
}

impl From<Located> for Target {
    fn from(located: Located) -> Self {
        Self::Located(located)
    }
}

impl From<&Located> for Target {
    fn from(located: &Located) -> Self {
        Self::Located(located.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIND: Kind = Kind::new("claim");

    fn lookup() -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &[7; 32])
    }

    fn encode(key: Key) -> Vec<u8> {
        key.encode(&lookup())
    }

    fn tenant() -> Tenant {
        Tenant::parse("acme").unwrap()
    }

    /// Recomputed by hand from the layout in the module's documentation.
    #[test]
    fn bytes_of_a_key_are_fixed() {
        let key = tenant().key(KIND).number(258).public(b"a\0b");
        let expected =
            b"\x01acme\x00\x01claim\x00\x01\x01\0\0\0\0\0\0\x01\x02\x02a\x00\xffb\x00\x01";
        assert_eq!(encode(key.clone()), expected);

        let mut input = b"cl-kv/part/1\0".to_vec();
        input.extend_from_slice(&(expected.len() as u64).to_be_bytes());
        input.extend_from_slice(expected);
        input.extend_from_slice(b"Ada");
        let hash = hmac::sign(&lookup(), &input);
        assert_eq!(
            encode(key.private("Ada")),
            [expected, &b"\x03"[..], hash.as_ref()].concat()
        );
    }

    #[test]
    fn refuses_names_that_are_no_tenants() {
        for name in ["", "a\0b", "line\nbreak", &"x".repeat(129)] {
            assert_eq!(Tenant::parse(name), Err(InvalidName));
        }
        assert!(Tenant::parse(&"x".repeat(128)).is_ok());
    }

    #[test]
    fn refuses_bytes_that_are_no_key() {
        let good = encode(tenant().key(KIND).number(1).public("p").private("s"));
        assert!(Located::decode(good.clone()).is_ok());
        let mut bad = vec![
            Vec::new(),
            b"\x00acme\x00\x01claim\x00\x01".to_vec(),
            b"\x01acme".to_vec(),
            b"\x01acme\x00\x02claim\x00\x01".to_vec(),
            b"\x01acme\x00\x01claim\x00\x01\x04".to_vec(),
            b"\x01\xff\xfe\x00\x01claim\x00\x01".to_vec(),
        ];
        bad.push(good[..good.len() - 1].to_vec());
        for bytes in bad {
            let refused = Located::decode(bytes);
            assert!(matches!(refused, Err(Error::Corrupt(Damage::MalformedKey))));
        }
    }

    #[test]
    fn equal_private_parts_show_only_behind_equal_beginnings() {
        let tag = |key: Key| {
            encode(key.private("Ada"))
                .last_chunk::<DERIVED_BYTES>()
                .copied()
        };
        let plain = tag(tenant().key(KIND));
        assert_ne!(plain, tag(tenant().key(Kind::new("event"))));
        assert_ne!(plain, tag(Tenant::parse("beta").unwrap().key(KIND)));
        assert_ne!(plain, tag(tenant().key(KIND).number(1)));
        assert_eq!(plain, tag(tenant().key(KIND)));
    }

    #[test]
    fn debug_hides_private_parts() {
        let text = format!("{:?}", tenant().key(KIND).public("open").private("hidden"));
        assert_eq!(text, r#"["acme", "claim", "open", private]"#);
    }

    fn arbitrary_parts() -> impl Strategy<Value = Vec<Part>> {
        let part = prop_oneof![
            any::<u64>().prop_map(Part::Number),
            proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..6)
                .prop_map(Part::Public),
        ];
        proptest::collection::vec(part, 0..4)
    }

    fn with_parts(parts: &[Part]) -> Vec<u8> {
        encode(Key {
            tenant: tenant(),
            kind: KIND,
            parts: parts.to_vec(),
        })
    }

    proptest! {
        #[test]
        fn keys_decode_to_what_was_encoded(parts in arbitrary_parts(), secret: Vec<u8>) {
            let key = Key { tenant: tenant(), kind: KIND, parts: parts.clone() };
            let located = Located::decode(encode(key.private(secret))).unwrap();
            prop_assert_eq!(located.tenant(), &tenant());
            prop_assert_eq!(located.kind(), "claim");
            let (last, public) = located.parts().split_last().unwrap();
            prop_assert!(matches!(last, FoundPart::Private(_)));
            let public: Vec<_> = public.iter().map(|part| match part {
                FoundPart::Number(number) => Part::Number(*number),
                FoundPart::Public(text) => Part::Public(text.clone()),
                FoundPart::Private(_) => unreachable!(),
            }).collect();
            prop_assert!(public == parts);
        }

        #[test]
        fn prefixes_are_whole_parts(left in arbitrary_parts(), right in arbitrary_parts()) {
            let is_prefix = right.starts_with(&left);
            prop_assert_eq!(with_parts(&right).starts_with(&with_parts(&left)), is_prefix);
        }

        #[test]
        fn public_bytes_keep_their_order(left: Vec<u8>, right: Vec<u8>) {
            let encoded = |text: &[u8]| with_parts(&[Part::Public(text.to_vec())]);
            prop_assert_eq!(encoded(&left).cmp(&encoded(&right)), left.cmp(&right));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Ok(located) = Located::decode([&[SPACE], &bytes[..]].concat()) {
                prop_assert_eq!(&located.bytes[1..], &bytes[..]);
            }
        }
    }
}
