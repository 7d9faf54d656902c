//! Foreign bytes: refused or read, never a panic.

use cl_authenticator::Authenticator;
use cl_model::artefact::{ApprovalDocument, Artefact};
use cl_model::passkey::{AuthenticatorData, ClientData, CoseKey, enrol};
use proptest::prelude::*;

use super::{CHALLENGE, page, relying_party, verify};

/// Bytes that are nearly `good`: some changed, some cut off.
fn near(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = good.len();
    let changes = proptest::collection::vec((0..length, any::<u8>()), 0..4);
    (changes, 0..=length).prop_map(move |(changes, kept)| {
        let mut bytes = good.clone();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        bytes.truncate(kept);
        bytes
    })
}

fn read_everything(bytes: &[u8]) {
    drop(ClientData::parse(bytes));
    drop(AuthenticatorData::parse(bytes));
    drop(CoseKey::parse(bytes));
    drop(ApprovalDocument::parse(bytes));
    drop(Artefact::parse(bytes));
    let client_data = Authenticator::p256(page())
        .unwrap()
        .create(&CHALLENGE)
        .client_data;
    drop(enrol(&client_data, bytes, &CHALLENGE, &relying_party()));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_everything(&bytes);
    }

    #[test]
    fn nearly_good_attestations_are_read_without_a_panic(bytes in near(
        Authenticator::p256(page()).unwrap().create(&CHALLENGE).attestation_object
    )) {
        read_everything(&bytes);
    }

    #[test]
    fn no_changed_assertion_is_accepted(place in 0_usize..1000, bit in 0_u8..8) {
        let authenticator = Authenticator::ed25519(page()).unwrap();
        let mut signed = authenticator.sign(&CHALLENGE).unwrap();
        let lengths = [
            signed.client_data.len(),
            signed.authenticator_data.len(),
            signed.signature.len(),
        ];
        let place = place % lengths.iter().sum::<usize>();
        let byte = if place < lengths[0] {
            &mut signed.client_data[place]
        } else if place < lengths[0] + lengths[1] {
            &mut signed.authenticator_data[place - lengths[0]]
        } else {
            &mut signed.signature[place - lengths[0] - lengths[1]]
        };
        *byte ^= 1 << bit;
        prop_assert!(verify(&authenticator, signed).is_err());
    }
}
