//! Approvals as they were signed.

use cl_authenticator::Authenticator;
use cl_model::artefact::{
    ApprovalDocument, Artefact, Fingerprint, InvalidArtefact, MAX_ARTEFACT_BYTES,
    MAX_DOCUMENT_BYTES, challenge,
};
use cl_model::json::read::FromJson;
use cl_model::passkey::{
    Assertion, CoseKey, InvalidPasskey, MAX_AUTHENTICATOR_DATA_BYTES, MAX_CLIENT_DATA_BYTES,
    MAX_CREDENTIAL_ID_BYTES, RelyingParty,
};
use serde_json::{Value, json};

use super::{ORIGIN, RP_ID, assertion, page, relying_party};

fn document() -> ApprovalDocument {
    ApprovalDocument::from_json(&json!({
        "approval_version": 1,
        "id": "urn:cl:approval:0198f1b2-0000-7000-8000-000000000001",
        "tenant": "acme",
        "nonce": "A".repeat(43),
        "approver": "urn:person:owner",
        "request_digest": format!("sha256:{}", "1".repeat(64)),
        "policy_digest": format!("sha256:{}", "2".repeat(64)),
        "granted_selectors": ["stakeholder"],
        "granted_actions": [],
        "declined_selectors": [],
        "declined_actions": ["email.send"],
        "expires_at": "2030-01-01T12:05:00Z",
    }))
    .unwrap()
}

fn artefact(authenticator: &Authenticator, document: &[u8], challenge: &[u8]) -> Artefact {
    Artefact {
        approval: document.to_vec(),
        rp_id: RP_ID.to_owned(),
        key: CoseKey::parse(&authenticator.cose_key()).unwrap(),
        is_backup_eligible: false,
        assertion: assertion(authenticator.sign(challenge).unwrap()),
    }
}

#[test]
fn a_signed_approval_verifies_elsewhere_and_later() {
    let authenticator = Authenticator::p256(page()).unwrap();
    let bytes = document().to_bytes();
    let signed = artefact(&authenticator, &bytes, &challenge(&bytes)).to_bytes();
    let read = Artefact::parse(&signed).unwrap();
    assert_eq!(read.to_bytes(), signed);
    let verified = read.verify(&relying_party()).unwrap();
    assert_eq!(verified.document().approver.as_str(), "urn:person:owner");
    assert_eq!(verified.fingerprint().to_string().len(), 24);
    let approval = verified.document().to_approval().unwrap();
    let scope = approval.scope.unwrap();
    assert!(scope.granted_selectors.contains("stakeholder"));
    assert!(scope.declined_actions.contains("email.send"));
}

#[test]
fn another_approval_than_the_signed_one_does_not_verify() {
    let authenticator = Authenticator::ed25519(page()).unwrap();
    let bytes = document().to_bytes();
    let good = artefact(&authenticator, &bytes, &challenge(&bytes));
    let mut widened: Value = serde_json::from_slice(&bytes).unwrap();
    widened["granted_actions"] = json!(["email.send"]);
    widened["declined_actions"] = json!([]);
    let mut other = good.clone();
    other.approval = ApprovalDocument::from_json(&widened).unwrap().to_bytes();
    let refused = |artefact: &Artefact| artefact.verify(&relying_party()).unwrap_err();
    let challenge_differs = InvalidArtefact::Passkey(InvalidPasskey::Challenge);
    assert_eq!(refused(&other), challenge_differs);
    // Signed without the domain, as a sign-in would be.
    let plain = artefact(&authenticator, &bytes, &bytes);
    assert_eq!(refused(&plain), challenge_differs);
    let mut spaced = good.clone();
    spaced.approval.push(b' ');
    assert_eq!(refused(&spaced), InvalidArtefact::Malformed);
    let elsewhere = RelyingParty::new("other.example", vec!["https://other.example".to_owned()]);
    let verdict = good.verify(&elsewhere.unwrap()).unwrap_err();
    assert_eq!(verdict, InvalidArtefact::Passkey(InvalidPasskey::RpId));
    let other_origin = RelyingParty::new(RP_ID, vec![format!("{ORIGIN}:8443")]).unwrap();
    let verdict = good.verify(&other_origin).unwrap_err();
    assert_eq!(verdict, InvalidArtefact::Passkey(InvalidPasskey::Origin));
}

#[test]
fn the_largest_document_fits_into_an_artefact_with_the_largest_assertion() {
    let largest = Artefact {
        approval: vec![b'x'; MAX_DOCUMENT_BYTES],
        rp_id: "r".repeat(253),
        key: CoseKey::parse(&Authenticator::p256(page()).unwrap().cose_key()).unwrap(),
        is_backup_eligible: false,
        assertion: Assertion {
            credential_id: vec![1; MAX_CREDENTIAL_ID_BYTES],
            client_data: vec![1; MAX_CLIENT_DATA_BYTES],
            authenticator_data: vec![1; MAX_AUTHENTICATOR_DATA_BYTES],
            signature: vec![1; 1024],
        },
    };
    assert!(largest.to_bytes().len() <= MAX_ARTEFACT_BYTES);
    Artefact::parse(&largest.to_bytes()).unwrap();
}

#[test]
fn fingerprints_are_read_as_people_write_them() {
    let key = CoseKey::parse(&Authenticator::p256(page()).unwrap().cose_key()).unwrap();
    let shown = Fingerprint::of(b"credential", &key);
    let text = shown.to_string();
    assert_eq!(text.len(), 24);
    for same in [
        text.clone(),
        text.replace(' ', ""),
        text.to_uppercase(),
        format!(" {text} "),
    ] {
        assert_eq!(Fingerprint::parse(&same), Some(shown.clone()), "{same}");
    }
    let digits = text.replace(' ', "");
    for other in [
        String::new(),
        digits[1..].to_owned(),
        format!("{digits}0"),
        digits.replacen(|it: char| it.is_ascii_hexdigit(), "g", 1),
        digits.replacen(|it: char| it.is_ascii_hexdigit(), "é", 1),
        text.replace(' ', "-"),
    ] {
        assert_eq!(Fingerprint::parse(&other), None, "{other}");
    }
}
