//! People who approve, and what they signed.

use cl_authenticator::{Authenticator, Page};
use cl_model::artefact::{ApprovalDocument, Artefact, challenge};
use cl_model::json::read::FromJson;
use cl_model::passkey::{Assertion, CoseKey};
use serde_json::{Value, json};

use crate::support::TestHome;

const RP_ID: &str = "notes.example";
const ORIGIN: &str = "https://console.notes.example";

fn artefact() -> String {
    let document = ApprovalDocument::from_json(&json!({
        "approval_version": 1,
        "id": "urn:cl:approval:0198f1b2-0000-7000-8000-000000000001",
        "tenant": "default",
        "nonce": "A".repeat(43),
        "approver": "urn:person:owner",
        "request_digest": format!("sha256:{}", "1".repeat(64)),
        "policy_digest": format!("sha256:{}", "2".repeat(64)),
        "granted_selectors": ["stakeholder"],
        "granted_actions": [],
        "declined_selectors": [],
        "declined_actions": ["email.send"],
        "expires_at": "2030-01-01T12:05:00Z",
    }));
    let approval = document.unwrap().to_bytes();
    let authenticator = Authenticator::p256(Page::new(RP_ID, ORIGIN)).unwrap();
    let signed = authenticator.sign(&challenge(&approval)).unwrap();
    let artefact = Artefact {
        approval,
        rp_id: RP_ID.to_owned(),
        key: CoseKey::parse(&authenticator.cose_key()).unwrap(),
        is_backup_eligible: false,
        assertion: Assertion {
            credential_id: signed.credential_id,
            client_data: signed.client_data,
            authenticator_data: signed.authenticator_data,
            signature: signed.signature,
        },
    };
    String::from_utf8(artefact.to_bytes()).unwrap()
}

#[test]
fn a_signed_approval_is_verified_offline() {
    let home = TestHome::missing();
    let good = artefact();
    let file = home.write("approval.json", &format!("{good}\n"));
    let known = [
        "approvals",
        "verify",
        &file,
        "--rp-id",
        RP_ID,
        "--origin",
        ORIGIN,
    ];
    let verified = home.json(&known);
    assert_eq!(verified["approver"], "urn:person:owner");
    assert_eq!(verified["granted_selectors"], json!(["stakeholder"]));
    assert_eq!(verified["declined_actions"], json!(["email.send"]));
    assert!(home.ok(&known).contains("approver: urn:person:owner\n"));

    // The defaults are those of a local home, and this is another console's.
    let elsewhere = home.failure(&["approvals", "verify", &file]);
    assert_eq!(elsewhere, (5, "ASSERTION_RP_ID".to_owned()));
    let other_origin = [
        "approvals",
        "verify",
        &file,
        "--rp-id",
        RP_ID,
        "--origin",
        "https://notes.example",
    ];
    assert_eq!(
        home.failure(&other_origin),
        (5, "ASSERTION_ORIGIN".to_owned())
    );
    let no_origin_of_it = [
        "approvals",
        "verify",
        &file,
        "--rp-id",
        RP_ID,
        "--origin",
        "https://other.example",
    ];
    let invalid = (2, "RELYING_PARTY_INVALID".to_owned());
    assert_eq!(home.failure(&no_origin_of_it), invalid);

    let mut widened: Value = serde_json::from_str(&good).unwrap();
    widened["approval"] = serde_json::from_str::<Value>(&artefact()).unwrap()["signature"].clone();
    home.write("approval.json", &widened.to_string());
    let malformed = (5, "APPROVAL_ARTEFACT_MALFORMED".to_owned());
    assert_eq!(home.failure(&known), malformed);
    let mut other: Value = serde_json::from_str(&good).unwrap();
    other["signature"] = serde_json::from_str::<Value>(&artefact()).unwrap()["signature"].clone();
    home.write("approval.json", &other.to_string());
    assert_eq!(home.failure(&known), (5, "ASSERTION_SIGNATURE".to_owned()));
    home.write("approval.json", &"x".repeat(70_000));
    assert_eq!(home.failure(&known), malformed);
}

#[test]
fn links_are_made_and_credentials_named_by_a_running_engine() {
    let home = TestHome::new();
    let _up = home.up();
    let made = home.json(&["approvers", "enrol", "urn:person:owner"]);
    let link = made["link"].as_str().unwrap();
    let endpoints = home.endpoints().unwrap();
    let page = format!("{}/enrol#", endpoints["console_url"].as_str().unwrap());
    let token = link.strip_prefix(&page).unwrap();
    assert_eq!(token.len(), 43);
    let another = home.ok(&["approvers", "enrol", "urn:person:owner"]);
    assert_ne!(another.trim_end(), link);
    let listed = home.json(&["approvers", "list"]);
    assert_eq!(listed["credentials"], json!([]));
    let unknown = "urn:cl:credential:0198f1b2-0000-7000-8000-000000000001";
    let missing = (4, "CREDENTIAL_NOT_FOUND".to_owned());
    let confirm = ["approvers", "confirm", unknown, "0123 4567 89ab cdef 0123"];
    assert_eq!(home.failure(&confirm), missing);
    assert_eq!(home.failure(&["approvers", "revoke", unknown]), missing);
    let decision = format!("urn:cl:decision:{}", "0".repeat(64));
    let shown = home.failure(&["approvals", "show", &decision]);
    assert_eq!(shown, (4, "DECISION_NOT_FOUND".to_owned()));
    let receipts = home.json(&["receipts", "list", "--operation=policy.open_enrolment"]);
    assert_eq!(receipts["receipts"].as_array().unwrap().len(), 2);
    let logged = receipts.to_string();
    assert!(!logged.contains(token) && !logged.contains("urn:person:owner"));
}
