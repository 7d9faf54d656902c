//! Public keys as authenticators write them (RFC 9052), and their signatures.

use minicbor::Decoder;
use minicbor::data::Type;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};

use super::InvalidPasskey;

const ES256: i32 = -7;
const EDDSA: i32 = -8;

/// The COSE algorithms that are offered, best first: ES256, EdDSA.
pub const ALGORITHMS: [i32; 2] = [ES256, EDDSA];

const KEY_TYPE_OKP: i64 = 1;
const KEY_TYPE_EC2: i64 = 2;
const CURVE_P256: i64 = 1;
const CURVE_ED25519: i64 = 6;
const COORDINATE_BYTES: usize = 32;

/// A public key: ES256 over P-256, or EdDSA over Ed25519.
#[derive(Clone, PartialEq, Eq)]
pub struct CoseKey {
    bytes: Vec<u8>,
    key: Key,
}

#[derive(Clone, PartialEq, Eq)]
enum Key {
    /// The uncompressed point.
    P256([u8; 1 + 2 * COORDINATE_BYTES]),
    Ed25519([u8; COORDINATE_BYTES]),
}

crate::opaque::opaque_debug!(CoseKey);

/// The members of a key, each at most once.
#[derive(Default)]
struct Members<'a> {
    key_type: Option<i64>,
    algorithm: Option<i64>,
    curve: Option<i64>,
    x: Option<&'a [u8]>,
    y: Option<&'a [u8]>,
}

impl CoseKey {
    /// Reads one key, with nothing behind it.
    ///
    /// # Errors
    ///
    /// [`InvalidPasskey::Malformed`], [`InvalidPasskey::UnsupportedKey`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPasskey> {
        let (key, length) = Self::parse_first(bytes)?;
        if length != bytes.len() {
            return Err(InvalidPasskey::Malformed);
        }
        Ok(key)
    }

    /// Reads the key that `bytes` begin with, and says how long it is.
    pub(super) fn parse_first(bytes: &[u8]) -> Result<(Self, usize), InvalidPasskey> {
        let mut decoder = Decoder::new(bytes);
        let members = members(&mut decoder).ok_or(InvalidPasskey::Malformed)?;
        let length = decoder.position();
        let kind = (members.key_type, members.algorithm, members.curve);
        let coordinate = |bytes: Option<&[u8]>| -> Result<[u8; COORDINATE_BYTES], InvalidPasskey> {
            let bytes = bytes.ok_or(InvalidPasskey::Malformed)?;
            bytes.try_into().map_err(|_| InvalidPasskey::Malformed)
        };
        let key = if kind == (Some(KEY_TYPE_EC2), Some(ES256.into()), Some(CURVE_P256)) {
            let mut point = [4; 1 + 2 * COORDINATE_BYTES];
            let (x, y) = (coordinate(members.x)?, coordinate(members.y)?);
            point[1..=COORDINATE_BYTES].copy_from_slice(&x);
            point[1 + COORDINATE_BYTES..].copy_from_slice(&y);
            Key::P256(point)
        } else if kind == (Some(KEY_TYPE_OKP), Some(EDDSA.into()), Some(CURVE_ED25519))
            && members.y.is_none()
        {
            Key::Ed25519(coordinate(members.x)?)
        } else {
            return Err(InvalidPasskey::UnsupportedKey);
        };
        let bytes = bytes.get(..length).ok_or(InvalidPasskey::Malformed)?;
        Ok((
            Self {
                bytes: bytes.to_vec(),
                key,
            },
            length,
        ))
    }

    /// The key as it was read.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether `signature` is this key's signature of `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.key {
            Key::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
                .verify(message, signature)
                .is_ok(),
            Key::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point)
                .verify(message, signature)
                .is_ok(),
        }
    }
}

fn members<'a>(decoder: &mut Decoder<'a>) -> Option<Members<'a>> {
    let mut members = Members::default();
    let count = decoder.map().ok()??;
    for _ in 0..count.min(8) {
        match decoder.i64().ok()? {
            1 => once(&mut members.key_type, decoder.i64().ok()?)?,
            3 => once(&mut members.algorithm, decoder.i64().ok()?)?,
            -1 => once(&mut members.curve, decoder.i64().ok()?)?,
            -2 => once(&mut members.x, decoder.bytes().ok()?)?,
            -3 if decoder.datatype().ok()? == Type::Bytes => {
                once(&mut members.y, decoder.bytes().ok()?)?;
            }
            _ => return None,
        }
    }
    (count <= 8).then_some(members)
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}
