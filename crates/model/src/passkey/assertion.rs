//! Signatures of passkeys over challenges.

use super::client_data::{Ceremony, ClientData, MAX_CLIENT_DATA_BYTES};
use super::{AuthenticatorData, CoseKey, InvalidPasskey, MAX_CREDENTIAL_ID_BYTES, RelyingParty};
use crate::digest::Digest;
use crate::opaque::opaque_debug;

const MAX_SIGNATURE_BYTES: usize = 1024;

/// What a browser returned for a challenge; nothing of it is verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Assertion {
    /// The credential's id.
    pub credential_id: Vec<u8>,
    /// `clientDataJSON`.
    pub client_data: Vec<u8>,
    /// `authenticatorData`.
    pub authenticator_data: Vec<u8>,
    /// The signature over both.
    pub signature: Vec<u8>,
}

opaque_debug!(Assertion);

/// What an assertion is verified against.
#[derive(Debug)]
pub struct Expected<'a> {
    /// The challenge that it has to answer.
    pub challenge: &'a [u8],
    /// For whom it has to be made.
    pub relying_party: &'a RelyingParty,
    /// The credential's key.
    pub key: &'a CoseKey,
    /// Whether the credential was enrolled as one that can be copied.
    pub is_backup_eligible: bool,
}

/// An assertion that holds. Only [`Assertion::verify`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedAssertion {
    counter: u32,
}

impl VerifiedAssertion {
    /// The signature counter, to be judged by [`next_counter`].
    pub const fn counter(self) -> u32 {
        self.counter
    }
}

impl Assertion {
    /// Verifies that the key's holder, present and recognised, signed the challenge on a page of the
    /// relying party. The counter is the caller's to judge, since only it knows the stored one.
    ///
    /// # Errors
    ///
    /// The first rule of [`InvalidPasskey`] that does not hold.
    pub fn verify(&self, expected: &Expected<'_>) -> Result<VerifiedAssertion, InvalidPasskey> {
        let is_bounded = (1..=MAX_CREDENTIAL_ID_BYTES).contains(&self.credential_id.len())
            && self.client_data.len() <= MAX_CLIENT_DATA_BYTES
            && self.signature.len() <= MAX_SIGNATURE_BYTES;
        if !is_bounded {
            return Err(InvalidPasskey::Malformed);
        }
        let client_data = ClientData::parse(&self.client_data)?;
        client_data.check(Ceremony::Get, expected.challenge, expected.relying_party)?;
        let data = AuthenticatorData::parse(&self.authenticator_data)?;
        if data.is_attested() {
            return Err(InvalidPasskey::Malformed);
        }
        data.check(expected.relying_party)?;
        if data.is_backup_eligible() != expected.is_backup_eligible {
            return Err(InvalidPasskey::BackupState);
        }
        let mut message = self.authenticator_data.clone();
        message.extend_from_slice(Digest::of_bytes(&self.client_data).as_bytes());
        if !expected.key.verifies(&message, &self.signature) {
            return Err(InvalidPasskey::Signature);
        }
        Ok(VerifiedAssertion {
            counter: data.counter(),
        })
    }
}

/// The counter to store after `new` was seen; `None` if that points to a copy of the authenticator:
/// once one of both is not zero, the new one has to be greater.
pub const fn next_counter(stored: u32, new: u32) -> Option<u32> {
    if (stored == 0 && new == 0) || new > stored {
        Some(new)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::next_counter;

    #[test]
    fn a_counter_that_was_seen_only_grows() {
        for (stored, new, after) in [
            (0, 0, Some(0)),
            (0, 3, Some(3)),
            (5, 6, Some(6)),
            (5, u32::MAX, Some(u32::MAX)),
            (5, 5, None),
            (5, 4, None),
            (5, 0, None),
            (u32::MAX, 0, None),
            (u32::MAX, u32::MAX, None),
        ] {
            assert_eq!(next_counter(stored, new), after, "{stored} {new}");
        }
    }
}
