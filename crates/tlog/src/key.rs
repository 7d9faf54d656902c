//! Names, ids and keys of signed notes (c2sp.org/signed-note).

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use crate::cosignature;
use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::text;

/// Bytes of an Ed25519 public key.
const PUBLIC_KEY_BYTES: usize = 32;

/// The name of a key: not empty, and without spaces, control characters and `+`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(String);

impl KeyName {
    /// Parses a name.
    pub fn new(name: &str) -> Option<Self> {
        let allowed = |char: char| !(char.is_whitespace() || char < ' ' || char == '+');
        let valid = !name.is_empty() && name.chars().all(allowed);
        valid.then(|| Self(name.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The short id of a key. With the name it says which key signed; it is no protection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; Self::BYTES]);

impl KeyId {
    /// Bytes of an id.
    pub const BYTES: usize = 4;

    /// The first bytes of the hash over name, algorithm and public key.
    pub fn of(name: &KeyName, algorithm: u8, public_key: &[u8]) -> Self {
        let parts = [name.0.as_bytes(), b"\n", &[algorithm], public_key];
        let hash = Hash::of_parts(&parts);
        let [a, b, c, d, ..] = *hash.as_bytes();
        Self([a, b, c, d])
    }

    /// The four bytes, big-endian.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl From<[u8; Self::BYTES]> for KeyId {
    fn from(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What signs the text of a note.
pub trait Signer {
    /// The name of the key.
    fn name(&self) -> &KeyName;

    /// The id of the key.
    fn id(&self) -> KeyId;

    /// The signature over the text, as it follows the key id in the signature line.
    fn sign(&self, text: &str) -> Result<Vec<u8>, Error>;
}

/// What verifies signatures on notes.
pub trait Verifier {
    /// The name of the key.
    fn name(&self) -> &KeyName;

    /// The id of the key.
    fn id(&self) -> KeyId;

    /// Whether this is the key's signature over the text.
    fn verifies(&self, text: &str, signature: &[u8]) -> bool;
}

/// A kind of signature that this crate verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519 over the text of the note (0x01).
    Ed25519,
    /// Ed25519 over the time and the text of a checkpoint, by a witness (0x04).
    Cosignature,
}

impl Algorithm {
    /// The byte that stands for it in verifier keys and key ids.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Cosignature => 0x04,
        }
    }

    fn parse(byte: u8) -> Option<Self> {
        let known = [Self::Ed25519, Self::Cosignature];
        known.into_iter().find(|known| known.byte() == byte)
    }
}

/// A public key with its name. Its text is `<name>+<id in hex>+<base64 of algorithm and key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    id: KeyId,
    algorithm: Algorithm,
    public_key: [u8; PUBLIC_KEY_BYTES],
}

impl VerifierKey {
    /// The key of these 32 bytes (RFC 8032).
    pub fn new(name: KeyName, algorithm: Algorithm, public_key: [u8; PUBLIC_KEY_BYTES]) -> Self {
        Self {
            id: KeyId::of(&name, algorithm.byte(), &public_key),
            name,
            algorithm,
            public_key,
        }
    }

    /// Parses the text form. The id must be that of the key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let malformed = Error::Malformed(Form::VerifierKey);
        let mut parts = text.splitn(3, '+');
        let mut part = || parts.next().ok_or(malformed);
        let name = KeyName::new(part()?).ok_or(malformed)?;
        let id = part()?;
        let key = text::base64(part()?).ok_or(malformed)?;
        let (algorithm, public_key) = key.split_first().ok_or(malformed)?;
        if KeyId::of(&name, *algorithm, public_key).to_string() != id {
            return Err(malformed);
        }
        let algorithm = Algorithm::parse(*algorithm).ok_or(Error::UnknownAlgorithm(*algorithm))?;
        let public_key = public_key.try_into().map_err(|_| malformed)?;
        Ok(Self::new(name, algorithm, public_key))
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The 32 bytes of the public key.
    pub const fn public_key(&self) -> &[u8; PUBLIC_KEY_BYTES] {
        &self.public_key
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[self.algorithm.byte()][..], &self.public_key].concat();
        write!(
            formatter,
            "{}+{}+{}",
            self.name,
            self.id,
            BASE64.encode(&key)
        )
    }
}

impl Verifier for VerifierKey {
    fn name(&self) -> &KeyName {
        &self.name
    }

    fn id(&self) -> KeyId {
        self.id
    }

    fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.public_key);
        match self.algorithm {
            Algorithm::Ed25519 => key.verify(text.as_bytes(), signature).is_ok(),
            Algorithm::Cosignature => {
                cosignature::split(signature).is_some_and(|(timestamp, signature)| {
                    let message = cosignature::message(timestamp, text);
                    key.verify(message.as_bytes(), signature).is_ok()
                })
            }
        }
    }
}

/// A private Ed25519 key that signs notes.
#[derive(Debug)]
pub struct Ed25519Signer {
    pair: Ed25519KeyPair,
    verifier: VerifierKey,
}

impl Ed25519Signer {
    /// The key of a 32-byte seed (RFC 8032).
    pub fn from_seed(name: KeyName, seed: &[u8]) -> Result<Self, Error> {
        let (pair, public_key) = pair_of(seed)?;
        let verifier = VerifierKey::new(name, Algorithm::Ed25519, public_key);
        Ok(Self { pair, verifier })
    }

    /// The public half.
    pub const fn verifier_key(&self) -> &VerifierKey {
        &self.verifier
    }
}

impl Signer for Ed25519Signer {
    fn name(&self) -> &KeyName {
        &self.verifier.name
    }

    fn id(&self) -> KeyId {
        self.verifier.id
    }

    fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
        Ok(self.pair.sign(text.as_bytes()).as_ref().to_vec())
    }
}

/// The key pair of a seed, and its public half.
pub(crate) fn pair_of(seed: &[u8]) -> Result<(Ed25519KeyPair, [u8; PUBLIC_KEY_BYTES]), Error> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::SignerFailed)?;
    let public_key = pair.public_key().as_ref().try_into();
    let public_key = public_key.map_err(|_| Error::SignerFailed)?;
    Ok((pair, public_key))
}
