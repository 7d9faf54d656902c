//! What is said of the receipts of a whole exchange.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::exchange::{SUBJECT, bundle_of, capture, issued};
use crate::support::{TestHome, until};
use crate::writer::Writer;

/// The first sentence about each operation, behind the name of who did it.
const DEEDS: [(&str, &str); 13] = [
    (
        "policy.put_snapshot",
        "cl-policy-engine stored a policy snapshot.",
    ),
    (
        "policy.activate_snapshot",
        "cl-policy-engine made a policy snapshot the active one.",
    ),
    (
        "vault.capture",
        "cl-vault took source events into the vault.",
    ),
    (
        "policy.decide",
        "cl-policy-engine decided a context request.",
    ),
    (
        "vault.resolve",
        "cl-vault looked up the claims that a grant allows.",
    ),
    (
        "semantic_proxy.project",
        "cl-semantic-proxy brought granted claims into the form that may be disclosed.",
    ),
    (
        "bundle.issue",
        "cl-bundle-issuer issued a bundle for one recipient.",
    ),
    (
        "bundle.deliver",
        "cl-bundle-issuer handed a bundle out to its recipient.",
    ),
    ("bundle.consume", "urn:cl:model:demo opened a bundle."),
    (
        "email.create_draft",
        "urn:cl:model:demo carried out the operation email.create_draft.",
    ),
    (
        "memory.propose",
        "cl-vault kept a proposed memory update for review.",
    ),
    (
        "vault.erase_subject",
        "cl-vault erased all that the vault held of a subject.",
    ),
    (
        "bundle.revoke",
        "cl-bundle-issuer ended bundles before their time.",
    ),
];

/// Leaves a receipt of every operation that an exchange has.
fn exchange(home: &TestHome) {
    let proposal = json!({
        "proposed_claims": [{
            "predicate": "requested_delivery_date",
            "object": {"value": "2026-10-17", "datatype": "date"},
            "confidence": 0.6,
        }],
        "rationale": "The draft had to move it by a day.",
    });
    let file = home.write("proposal.json", &proposal.to_string());
    let bundle = bundle_of(&issued(home, "request", &[]));
    home.json(&[
        "open",
        &bundle,
        "--perform=email.create_draft",
        "--propose",
        &file,
    ]);
    // One that is ended before anybody takes it.
    issued(home, "request", &[]);
    home.json(&["subject", "erase", SUBJECT, "--yes"]);
    until("revocation", || {
        let receipts = home.json(&["receipts", "list", "--operation=bundle.revoke"]);
        (receipts["total"] != 0).then_some(())
    });
}

/// Texts and numbers that are in a document, long enough to be told from others.
fn values(document: &Value, found: &mut Vec<String>) {
    match document {
        Value::Array(elements) => elements.iter().for_each(|it| values(it, found)),
        Value::Object(members) => members.values().for_each(|it| values(it, found)),
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
    found.retain(|it| it.len() > 3);
}

#[test]
fn every_receipt_of_an_exchange_is_explained_without_anything_of_the_vault() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/03-invoice.eml");
    let mut canaries = vec![SUBJECT.to_owned(), "mira".to_owned(), "solberg".to_owned()];
    for claim in home.json(&["claims", "list"])["claims"].as_array().unwrap() {
        values(&claim["claim"]["object"]["value"], &mut canaries);
    }
    assert!(canaries.iter().any(|it| it == "1284.50"), "{canaries:?}");
    exchange(&home);

    let listed = home.json(&["receipts", "list"]);
    let mut said = String::new();
    let mut explained = BTreeMap::new();
    for receipt in listed["receipts"].as_array().unwrap() {
        let id = receipt["receipt_ref"].as_str().unwrap();
        let operation = receipt["receipt"]["operation"].as_str().unwrap();
        let document = home.json(&["receipts", "explain", id]);
        assert_eq!(document["proof_verifies"], true, "{document}");
        assert_eq!(document["operation"], operation);
        let text = home.ok(&["receipts", "explain", id]);
        assert!(text.contains("Its proof verifies: it is entry "), "{text}");
        for member in ["subject_ref", "request_ref", "decision_ref", "bundle_ref"] {
            let named = receipt["receipt"][member].as_str();
            assert!(named.is_none_or(|it| text.contains(it)), "{member}: {text}");
        }
        said += &(text.clone() + &document.to_string());
        // The recipient of a bundle has a receipt of its own about what it proposed.
        if operation != "memory.propose" || receipt["attestation"] == "authority" {
            explained.insert(operation.to_owned(), text);
        }
    }
    let mut receipts = listed["receipts"].as_array().unwrap().iter();
    let opened = receipts.find(|it| it["receipt"]["operation"] == "bundle.consume");
    let named = |member: &str| opened.unwrap()["receipt"][member].as_str().unwrap();
    let bundle = format!("--bundle={}", named("bundle_ref"));
    let decision = format!("--decision={}", named("decision_ref"));
    for (about, operation, found) in [
        (&bundle, "bundle.consume", 1),
        (&bundle, "policy.decide", 0),
        (&decision, "policy.decide", 1),
    ] {
        let operation = format!("--operation={operation}");
        let listed = home.json(&["receipts", "list", about, &operation]);
        assert_eq!(listed["total"], found, "{about} {operation}");
    }
    for (operation, deed) in DEEDS {
        let text = explained
            .get(operation)
            .unwrap_or_else(|| panic!("{operation}: {listed}"));
        assert!(text.lines().next().unwrap().ends_with(deed), "{text}");
    }
    assert_eq!(explained.len(), DEEDS.len(), "{:?}", explained.keys());
    let says = |operation: &str, sentence: &str| {
        assert!(
            explained[operation].contains(sentence),
            "{}",
            explained[operation]
        );
    };
    says(
        "policy.decide",
        "The decision is allow_with_reductions: a part of",
    );
    says("vault.resolve", " withheld.");
    says("semantic_proxy.project", "2 items were let through.");
    says("bundle.issue", "2 items were put into the bundle.");
    says("bundle.consume", "only where it came from was checked");
    says(
        "vault.erase_subject",
        "1 source event was erased.\n4 claims were erased.",
    );
    says("bundle.revoke", "The reason given is ");

    said += &home.ok(&["receipts", "verify"]);
    said += &home.json(&["receipts", "verify"]).to_string();
    said += &home.ok(&["receipts", "export", &home.beside("export")]);
    for canary in canaries {
        assert!(
            !said.to_lowercase().contains(&canary.to_lowercase()),
            "{canary}: {said}"
        );
    }
}

#[test]
fn a_proof_that_does_not_verify_is_said() {
    let home = TestHome::new();
    let _up = home.up();
    let id = home.json(&["receipts", "list"])["receipts"][0]["receipt_ref"].clone();
    let id = id.as_str().unwrap();
    let stranger = TestHome::new();
    fs::copy(stranger.path("trust.json"), home.path("trust.json")).unwrap();
    let answer = home.run(&["receipts", "explain", id]);
    assert_eq!(answer.code, Some(5), "{}", answer.stderr);
    assert!(
        answer
            .stdout
            .contains("Its proof does not verify: none of the trusted keys signed it."),
        "{}",
        answer.stdout
    );
    let missing = home.failure(&["receipts", "explain", &"0".repeat(64)]);
    assert_eq!(missing, (4, "RECEIPT_NOT_FOUND".to_owned()));
}

#[test]
fn an_operation_that_ends_late_is_told_from_both_sides() {
    let home = TestHome::new();
    let _up = home.up();
    let writer = Writer::new(&home);
    let late = writer.begin();
    let one = |operation: &str| {
        let listed = home.json(&["receipts", "list", &format!("--operation={operation}")]);
        let found = &listed["receipts"][0]["receipt_ref"];
        found.as_str().map(str::to_owned)
    };
    let overdue = until("the store's own receipt", || one("operation.overdue"));
    let said = home.ok(&["receipts", "explain", &overdue]);
    let deed = "cl-receipt-store noted that the operation policy.replay did not report its end";
    assert!(said.contains(deed), "{said}");
    assert!(!said.contains("taken its place"), "{said}");

    writer.complete(late);
    let late = one("policy.replay").unwrap();
    let said = home.ok(&["receipts", "explain", &overdue]);
    let newer = format!("By the receipt store's account, the receipt {late} has taken its place.");
    assert!(said.contains(&newer), "{said}");
    let said = home.ok(&["receipts", "explain", &late]);
    let older = format!("It takes the place of the receipt {overdue}.");
    assert!(said.contains(&older), "{said}");
    assert_eq!(home.json(&["receipts", "verify"])["entries"], 4);
}
