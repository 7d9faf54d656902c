//! New credentials.

use cl_authenticator::{Page, USER_PRESENT};
use cl_model::passkey::{CoseKey, InvalidPasskey, enrol};

use super::{CHALLENGE, ORIGIN, RP_ID, authenticators, page, relying_party};

#[test]
fn both_kinds_of_keys_are_enrolled() {
    for authenticator in authenticators() {
        let created = authenticator.create(&CHALLENGE);
        let enrolled = enrol(
            &created.client_data,
            &created.attestation_object,
            &CHALLENGE,
            &relying_party(),
        );
        let credential = enrolled.unwrap();
        assert_eq!(credential.id, authenticator.id());
        assert_eq!(credential.key.as_bytes(), authenticator.cose_key());
        assert_eq!(credential.counter, 0);
        assert!(!credential.is_backup_eligible);
    }
}

#[test]
fn enrols_only_for_its_own_page_challenge_and_person() {
    let [mut authenticator, _] = authenticators();
    let attempt = |authenticator: &cl_authenticator::Authenticator, page: &Page, challenge| {
        let created = authenticator.create_on(page, challenge);
        let (client_data, object) = (created.client_data, created.attestation_object);
        enrol(&client_data, &object, &CHALLENGE, &relying_party()).map(|_| ())
    };
    let mut signing = page();
    signing.kind = Some("webauthn.get".to_owned());
    for (page, expected) in [
        (page(), Ok(())),
        (
            Page::new(RP_ID, "https://evil.example"),
            Err(InvalidPasskey::Origin),
        ),
        (Page::new("evil.example", ORIGIN), Err(InvalidPasskey::RpId)),
        (signing, Err(InvalidPasskey::Type)),
    ] {
        assert_eq!(attempt(&authenticator, &page, &CHALLENGE), expected);
    }
    let other = attempt(&authenticator, &page(), &[1; 32]);
    assert_eq!(other, Err(InvalidPasskey::Challenge));
    authenticator.flags = USER_PRESENT;
    let unverified = attempt(&authenticator, &page(), &CHALLENGE);
    assert_eq!(unverified, Err(InvalidPasskey::UserUnverified));
}

#[test]
fn keys_of_other_forms_are_refused() {
    let [p256, ed25519] = authenticators();
    for key in [p256.cose_key(), ed25519.cose_key()] {
        assert!(CoseKey::parse(&key).is_ok());
        let mut longer = key.clone();
        longer.push(0);
        assert_eq!(
            CoseKey::parse(&longer).err(),
            Some(InvalidPasskey::Malformed)
        );
        for length in 0..key.len() {
            assert_eq!(
                CoseKey::parse(&key[..length]).err(),
                Some(InvalidPasskey::Malformed)
            );
        }
    }
    // RS256, a compressed point, a curve that is not the algorithm's, and a member twice.
    let mut rsa = p256.cose_key();
    rsa[4] = 0x38;
    assert!(CoseKey::parse(&rsa).is_err());
    let mut compressed = p256.cose_key();
    compressed.truncate(43);
    compressed.push(0xf5);
    assert_eq!(
        CoseKey::parse(&compressed).err(),
        Some(InvalidPasskey::Malformed)
    );
    let mut other_curve = ed25519.cose_key();
    other_curve[6] = 1;
    assert_eq!(
        CoseKey::parse(&other_curve).err(),
        Some(InvalidPasskey::UnsupportedKey)
    );
    let mut twice = ed25519.cose_key();
    twice[3] = 1;
    assert_eq!(
        CoseKey::parse(&twice).err(),
        Some(InvalidPasskey::Malformed)
    );
}
