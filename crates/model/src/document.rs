//! Signed documents that travel as bytes: canonical JSON beside a detached Ed25519 signature.
//!
//! The signature covers `context-layer/<document>/v1`, a NUL byte and the document's bytes, so that
//! a signature of one kind of document is never one of another.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::canonical;
use crate::digest::Digest;
use crate::json::read::{FromJson, ToJson};
use crate::json::{self, Limits};
use crate::key::{PublicKey, Signature, SigningKey};
use crate::opaque::opaque_debug;
use crate::refusal::{Code, Refusal};
use crate::scalar::KeyId;

/// The largest signed document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// Reads the canonical JSON of an unsigned document, such as a request, of at most
/// [`MAX_DOCUMENT_BYTES`].
///
/// # Errors
///
/// [`InvalidBytes`], for bytes that are too many, no strict JSON, or not canonical.
pub fn read_canonical(bytes: &[u8]) -> Result<Value, InvalidBytes> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(InvalidBytes::TooLarge);
    }
    let value = json::parse(bytes, Limits::network(MAX_DOCUMENT_BYTES))?;
    if canonical::to_text(&value).as_bytes() != bytes {
        return Err(InvalidBytes::NotCanonical);
    }
    Ok(value)
}

/// Why bytes are no document of their kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidBytes {
    /// More bytes than a document may have.
    TooLarge,
    /// JSON, but not its canonical form.
    NotCanonical,
    /// It violates a rule.
    Refused(Refusal),
}

impl fmt::Display for InvalidBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => formatter.write_str("the document is too large"),
            Self::NotCanonical => formatter.write_str("the document is not canonical JSON"),
            Self::Refused(refusal) => refusal.fmt(formatter),
        }
    }
}

impl std::error::Error for InvalidBytes {}

impl From<Refusal> for InvalidBytes {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A kind of signed document.
pub trait Document: FromJson + ToJson {
    /// Its name in the signed message.
    const NAME: &'static str;

    /// The key that signs it, which the document names itself.
    fn kid(&self) -> &KeyId;
}

/// A document's canonical bytes and their signature.
#[derive(Clone, PartialEq, Eq)]
pub struct Signed {
    /// The document's bytes.
    pub document: Vec<u8>,
    /// The signature.
    pub signature: Signature,
}

opaque_debug!(Signed);

/// Signs a document.
///
/// # Errors
///
/// [`Code::UntrustedDocumentKey`] if the document names another key.
pub fn sign<D: Document>(document: &D, key: &SigningKey) -> Result<Signed, Refusal> {
    if document.kid() != key.kid() {
        return Err(Code::UntrustedDocumentKey.into());
    }
    let document = canonical::to_text(&document.to_json()).into_bytes();
    Ok(Signed {
        signature: key.sign(&message::<D>(&document)),
        document,
    })
}

/// The keys that may sign one kind of document.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(HashMap<KeyId, PublicKey>);

impl FromIterator<PublicKey> for TrustedKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self(
            keys.into_iter()
                .map(|key| (key.kid().clone(), key))
                .collect(),
        )
    }
}

impl TrustedKeys {
    /// The key with this id.
    pub fn find(&self, kid: &KeyId) -> Option<&PublicKey> {
        self.0.get(kid)
    }
}

/// A document whose signature a trusted key made. Only [`Verified::open`] makes one.
#[derive(Clone, Debug)]
pub struct Verified<D> {
    document: D,
    digest: Digest,
}

impl<D: Document> Verified<D> {
    /// Verifies a document's bytes and signature.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidDocument`] unless the bytes are canonical JSON of this kind of document,
    /// [`Code::UntrustedDocumentKey`], [`Code::DocumentSignatureInvalid`].
    pub fn open(signed: &Signed, keys: &TrustedKeys) -> Result<Self, Refusal> {
        let value = json::parse(&signed.document, Limits::network(MAX_DOCUMENT_BYTES))
            .map_err(|_| Code::InvalidDocument)?;
        if canonical::to_text(&value).as_bytes() != signed.document {
            return Err(Code::InvalidDocument.into());
        }
        let document =
            D::from_json(&value).map_err(|mismatch| mismatch.refuse(Code::InvalidDocument))?;
        let key = keys
            .0
            .get(document.kid())
            .ok_or(Code::UntrustedDocumentKey)?;
        if !key.verifies(&message::<D>(&signed.document), &signed.signature) {
            return Err(Code::DocumentSignatureInvalid.into());
        }
        Ok(Self {
            document,
            digest: Digest::of_bytes(&signed.document),
        })
    }

    /// The document.
    pub const fn get(&self) -> &D {
        &self.document
    }

    /// The digest of its bytes.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

fn message<D: Document>(document: &[u8]) -> Vec<u8> {
    let mut message = format!("context-layer/{}/v1\0", D::NAME).into_bytes();
    message.extend_from_slice(document);
    message
}
