//! Passkeys from outside: what an authenticator in software signs, and everything next to it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod artefacts;
mod assertions;
mod enrolment;
mod foreign;

use cl_authenticator::{Authenticator, Page, Signed};
use cl_model::passkey::{
    Assertion, CoseKey, Expected, InvalidPasskey, RelyingParty, VerifiedAssertion,
};

pub(crate) const RP_ID: &str = "notes.example";
pub(crate) const ORIGIN: &str = "https://console.notes.example";
pub(crate) const CHALLENGE: [u8; 32] = [7; 32];

pub(crate) fn relying_party() -> RelyingParty {
    RelyingParty::new(RP_ID, vec![ORIGIN.to_owned()]).unwrap()
}

pub(crate) fn page() -> Page {
    Page::new(RP_ID, ORIGIN)
}

pub(crate) fn authenticators() -> [Authenticator; 2] {
    [
        Authenticator::p256(page()).unwrap(),
        Authenticator::ed25519(page()).unwrap(),
    ]
}

pub(crate) fn assertion(signed: Signed) -> Assertion {
    Assertion {
        credential_id: signed.credential_id,
        client_data: signed.client_data,
        authenticator_data: signed.authenticator_data,
        signature: signed.signature,
    }
}

pub(crate) fn verify(
    authenticator: &Authenticator,
    signed: Signed,
) -> Result<VerifiedAssertion, InvalidPasskey> {
    assertion(signed).verify(&Expected {
        challenge: &CHALLENGE,
        relying_party: &relying_party(),
        key: &CoseKey::parse(&authenticator.cose_key()).unwrap(),
        is_backup_eligible: false,
    })
}
