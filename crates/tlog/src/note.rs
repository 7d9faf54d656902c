//! Signed notes (c2sp.org/signed-note).

use std::collections::BTreeSet;
use std::fmt;

use data_encoding::BASE64;

use crate::error::{Error, Form};
use crate::key::{KeyId, KeyName, Signer, Verifier};
use crate::text;

/// Bytes of the longest note.
pub const MAX_NOTE_BYTES: usize = 1 << 20;

/// Signatures on one note.
pub const MAX_SIGNATURES: usize = 100;

/// A signature line: who signed, and the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    name: KeyName,
    id: KeyId,
    bytes: Vec<u8>,
}

impl Signature {
    /// A signature of at least one byte.
    pub fn new(name: KeyName, id: KeyId, bytes: Vec<u8>) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self { name, id, bytes })
    }

    /// Parses a line, without its newline.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let parse = || {
            let (name, encoded) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            let decoded = text::base64(encoded)?;
            let (id, bytes) = decoded.split_first_chunk::<{ KeyId::BYTES }>()?;
            Self::new(KeyName::new(name)?, KeyId::from(*id), bytes.to_vec())
        };
        parse().ok_or(Error::Malformed(Form::Note))
    }

    /// The name of the key.
    pub const fn name(&self) -> &KeyName {
        &self.name
    }

    /// The id of the key.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The bytes behind the key id.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it claims to be by this key.
    pub fn names(&self, key: &dyn Verifier) -> bool {
        self.id == key.id() && self.name == *key.name()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.id.as_bytes().as_slice(), &self.bytes].concat();
        write!(
            formatter,
            "\u{2014} {} {}",
            self.name,
            BASE64.encode(&bytes)
        )
    }
}

/// A text with signatures, of which nothing is verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<Signature>,
}

impl Note {
    /// Signs a text that ends in a newline and has no other control characters.
    pub fn sign(text: String, signers: &[&dyn Signer]) -> Result<Self, Error> {
        let sign = |signer: &&dyn Signer| {
            let bytes = signer.sign(&text)?;
            let signature = Signature::new(signer.name().clone(), signer.id(), bytes);
            signature.ok_or(Error::SignerFailed)
        };
        let signatures = signers.iter().map(sign).collect::<Result<_, _>>()?;
        Self { text, signatures }.checked()
    }

    /// Parses a note of at most [`MAX_NOTE_BYTES`] with 1..=[`MAX_SIGNATURES`] signatures.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = Error::Malformed(Form::Note);
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(malformed);
        }
        let whole = str::from_utf8(bytes).map_err(|_| malformed)?;
        if whole.chars().any(|char| char < ' ' && char != '\n') {
            return Err(malformed);
        }
        let (text, mut lines) = whole.rsplit_once("\n\n").ok_or(malformed)?;
        let mut signatures = Vec::new();
        while !lines.is_empty() && signatures.len() <= MAX_SIGNATURES {
            let line = text::take_line(&mut lines).ok_or(malformed)?;
            signatures.push(Signature::parse(line)?);
        }
        if !(1..=MAX_SIGNATURES).contains(&signatures.len()) {
            return Err(malformed);
        }
        let text = format!("{text}\n");
        Ok(Self { text, signatures })
    }

    /// The text that is signed, with its last newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every signature, in the order of the lines.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Adds a signature, in place of an earlier one by the same key.
    pub fn add(&mut self, signature: Signature) -> Result<(), Error> {
        let mut note = self.clone();
        let others = |other: &Signature| (&other.name, other.id) != (&signature.name, signature.id);
        note.signatures.retain(others);
        note.signatures.push(signature);
        *self = note.checked()?;
        Ok(())
    }

    /// The signatures by these keys, all of them good and by different keys. Signatures by other
    /// keys are ignored. Without any by these, the note is refused.
    pub fn verify(&self, keys: &[&dyn Verifier]) -> Result<Vec<&Signature>, Error> {
        let good = self.good(keys)?;
        if good.is_empty() {
            return Err(Error::Unsigned);
        }
        Ok(good)
    }

    /// The note, if it is what its text parses to.
    fn checked(self) -> Result<Self, Error> {
        let parsed = Self::parse(self.to_string().as_bytes())?;
        let same = (parsed == self).then_some(parsed);
        same.ok_or(Error::Malformed(Form::Note))
    }

    /// The signatures by these keys, which may be none.
    pub(crate) fn good(&self, keys: &[&dyn Verifier]) -> Result<Vec<&Signature>, Error> {
        let mut seen = BTreeSet::new();
        let mut good = Vec::new();
        for signature in &self.signatures {
            let mut named = keys.iter().filter(|key| signature.names(**key)).peekable();
            if named.peek().is_none() {
                continue;
            }
            if !seen.insert((&signature.name, signature.id)) {
                return Err(Error::DuplicateSignature);
            }
            if !named.any(|key| key.verifies(&self.text, &signature.bytes)) {
                return Err(Error::BadSignature);
            }
            good.push(signature);
        }
        Ok(good)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.text)?;
        self.signatures
            .iter()
            .try_for_each(|signature| writeln!(formatter, "{signature}"))
    }
}
