//! An operator's signature over a policy snapshot: detached, beside the snapshot's bytes.

use crate::document::TrustedKeys;
use crate::key::{Signature, SigningKey};
use crate::refusal::{Code, Refusal};
use crate::scalar::KeyId;

/// What is signed before the snapshot's bytes, so that the signature is one of nothing else.
const DOMAIN: &[u8] = b"context-layer/policy-snapshot/v1\0";

/// A signature over the bytes of a policy snapshot, and the key that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSignature {
    /// The key's id.
    pub kid: KeyId,
    /// The signature.
    pub signature: Signature,
}

impl SnapshotSignature {
    /// Signs the bytes of a snapshot.
    pub fn make(snapshot: &[u8], key: &SigningKey) -> Self {
        Self {
            kid: key.kid().clone(),
            signature: key.sign(&message(snapshot)),
        }
    }

    /// Checks that one of these keys has signed the bytes of a snapshot.
    ///
    /// # Errors
    ///
    /// [`Code::UntrustedDocumentKey`], [`Code::DocumentSignatureInvalid`].
    pub fn check(&self, snapshot: &[u8], keys: &TrustedKeys) -> Result<(), Refusal> {
        let key = keys.find(&self.kid).ok_or(Code::UntrustedDocumentKey)?;
        if key.verifies(&message(snapshot), &self.signature) {
            return Ok(());
        }
        Err(Code::DocumentSignatureInvalid.into())
    }
}

fn message(snapshot: &[u8]) -> Vec<u8> {
    [DOMAIN, snapshot].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Seed;

    fn key(name: &str, byte: u8) -> SigningKey {
        let kid = KeyId::new(format!("urn:cl:key:policy-snapshot:{name}")).unwrap();
        SigningKey::from_seed(kid, &Seed::new(&[byte; 32]).unwrap()).unwrap()
    }

    #[test]
    fn holds_for_these_bytes_this_key_and_this_use_only() {
        let (ours, other) = (key("a", 1), key("b", 2));
        let keys: TrustedKeys = [ours.public_key()].into_iter().collect();
        let signed = SnapshotSignature::make(b"{}", &ours);
        assert_eq!(signed.check(b"{}", &keys), Ok(()));
        let refusal = |signature: &SnapshotSignature, bytes: &[u8]| {
            signature.check(bytes, &keys).unwrap_err().code()
        };
        assert_eq!(refusal(&signed, b"{ }"), Code::DocumentSignatureInvalid);
        let foreign = SnapshotSignature::make(b"{}", &other);
        assert_eq!(refusal(&foreign, b"{}"), Code::UntrustedDocumentKey);
        let renamed = SnapshotSignature {
            kid: ours.kid().clone(),
            ..foreign
        };
        assert_eq!(refusal(&renamed, b"{}"), Code::DocumentSignatureInvalid);
        let elsewhere = SnapshotSignature {
            signature: ours.sign(b"{}"),
            ..signed
        };
        assert_eq!(refusal(&elsewhere, b"{}"), Code::DocumentSignatureInvalid);
    }
}
