//! Signatures over challenges.

use cl_authenticator::{
    ATTESTED, Authenticator, BACKUP_ELIGIBLE, BACKUP_STATE, Page, USER_PRESENT, USER_VERIFIED,
};
use cl_model::passkey::{CoseKey, Expected, InvalidPasskey};
use serde_json::json;

use super::{CHALLENGE, ORIGIN, RP_ID, assertion, authenticators, page, relying_party, verify};

#[test]
fn both_kinds_of_keys_are_verified_with_their_counter() {
    for mut authenticator in authenticators() {
        authenticator.counter = 41;
        let signed = authenticator.sign(&CHALLENGE).unwrap();
        assert_eq!(verify(&authenticator, signed).unwrap().counter(), 41);
    }
}

#[test]
fn origins_and_relying_parties_are_compared_as_they_are() {
    let rows = [
        (ORIGIN, RP_ID, Ok(())),
        (
            "https://evilnotes.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        ("https://notes.example", RP_ID, Err(InvalidPasskey::Origin)),
        (
            "https://old.notes.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example.evil.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example@evil.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "http://console.notes.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example:9443",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example:443",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example/",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://Console.notes.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            "https://console.notes.example.",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        (
            " https://console.notes.example",
            RP_ID,
            Err(InvalidPasskey::Origin),
        ),
        ("null", RP_ID, Err(InvalidPasskey::Origin)),
        ("", RP_ID, Err(InvalidPasskey::Origin)),
        (ORIGIN, "console.notes.example", Err(InvalidPasskey::RpId)),
        (ORIGIN, "NOTES.EXAMPLE", Err(InvalidPasskey::RpId)),
        (ORIGIN, "example", Err(InvalidPasskey::RpId)),
    ];
    for authenticator in authenticators() {
        for (origin, rp_id, expected) in rows {
            let signed = authenticator
                .sign_on(&Page::new(rp_id, origin), &CHALLENGE)
                .unwrap();
            let verified = verify(&authenticator, signed).map(|_| ());
            assert_eq!(verified, expected, "{origin} {rp_id}");
        }
    }
}

#[test]
fn only_signing_ceremonies_of_the_page_itself_count() {
    let [authenticator, _] = authenticators();
    let with = |kind: Option<&str>, members: &[(&str, serde_json::Value)]| {
        let mut page = page();
        page.kind = kind.map(str::to_owned);
        page.members = members
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let signed = authenticator.sign_on(&page, &CHALLENGE).unwrap();
        verify(&authenticator, signed).map(|_| ())
    };
    assert_eq!(
        with(Some("webauthn.create"), &[]),
        Err(InvalidPasskey::Type)
    );
    assert_eq!(with(Some("payment.get"), &[]), Err(InvalidPasskey::Type));
    assert_eq!(with(Some("Webauthn.Get"), &[]), Err(InvalidPasskey::Type));
    let unknown = (
        "other_keys_can_be_added_here",
        json!("do not compare with a template"),
    );
    assert_eq!(with(None, &[unknown]), Ok(()));
    assert_eq!(
        with(None, &[("tokenBinding", json!({"status": "supported"}))]),
        Ok(())
    );
    let framed = [
        ("crossOrigin", json!(true)),
        ("topOrigin", json!("https://evil.example")),
    ];
    assert_eq!(with(None, &framed), Err(InvalidPasskey::CrossOrigin));
    for (name, value) in [
        ("crossOrigin", json!("false")),
        ("crossOrigin", json!(null)),
        ("origin", json!([ORIGIN])),
        ("challenge", json!("not base64url!")),
        ("type", json!(null)),
    ] {
        assert_eq!(
            with(None, &[(name, value)]),
            Err(InvalidPasskey::Malformed),
            "{name}"
        );
    }
}

#[test]
fn a_person_has_to_be_there_and_be_recognised() {
    for (flags, expected) in [
        (USER_PRESENT | USER_VERIFIED, Ok(())),
        (USER_VERIFIED, Err(InvalidPasskey::UserAbsent)),
        (USER_PRESENT, Err(InvalidPasskey::UserUnverified)),
        (0, Err(InvalidPasskey::UserAbsent)),
        (
            USER_PRESENT | USER_VERIFIED | BACKUP_STATE,
            Err(InvalidPasskey::BackupState),
        ),
        (
            USER_PRESENT | USER_VERIFIED | BACKUP_ELIGIBLE,
            Err(InvalidPasskey::BackupState),
        ),
        (
            USER_PRESENT | USER_VERIFIED | ATTESTED,
            Err(InvalidPasskey::Malformed),
        ),
    ] {
        for mut authenticator in authenticators() {
            authenticator.flags = flags;
            let signed = authenticator.sign(&CHALLENGE).unwrap();
            assert_eq!(
                verify(&authenticator, signed).map(|_| ()),
                expected,
                "{flags:08b}"
            );
        }
    }
}

#[test]
fn synced_credentials_stay_synced_ones() {
    let [mut authenticator, _] = authenticators();
    let key = CoseKey::parse(&authenticator.cose_key()).unwrap();
    for (flags, expected) in [
        (BACKUP_ELIGIBLE, Ok(())),
        (BACKUP_ELIGIBLE | BACKUP_STATE, Ok(())),
        (0, Err(InvalidPasskey::BackupState)),
    ] {
        authenticator.flags = USER_PRESENT | USER_VERIFIED | flags;
        let verified = assertion(authenticator.sign(&CHALLENGE).unwrap()).verify(&Expected {
            challenge: &CHALLENGE,
            relying_party: &relying_party(),
            key: &key,
            is_backup_eligible: true,
        });
        assert_eq!(verified.map(|_| ()), expected, "{flags:08b}");
    }
}

#[test]
fn refuses_another_challenge_key_or_message() {
    let [one, other] = authenticators();
    let signed = one.sign(&[8; 32]).unwrap();
    assert_eq!(verify(&one, signed), Err(InvalidPasskey::Challenge));
    let stranger = Authenticator::p256(page()).unwrap();
    for wrong in [&other, &stranger] {
        let signed = one.sign(&CHALLENGE).unwrap();
        assert_eq!(verify(wrong, signed), Err(InvalidPasskey::Signature));
    }
    let mut signed = one.sign(&CHALLENGE).unwrap();
    signed.client_data.push(b' ');
    assert_eq!(verify(&one, signed), Err(InvalidPasskey::Signature));
    let mut signed = one.sign(&CHALLENGE).unwrap();
    signed.authenticator_data[36] ^= 1;
    assert_eq!(verify(&one, signed), Err(InvalidPasskey::Signature));
    let mut signed = one.sign(&CHALLENGE).unwrap();
    signed.signature = one.signature(&CHALLENGE).unwrap();
    assert_eq!(verify(&one, signed), Err(InvalidPasskey::Signature));
}
