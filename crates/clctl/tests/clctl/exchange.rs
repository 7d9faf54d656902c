//! From a mailbox to a bundle in its recipient's hands, and to an erased subject.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{TestHome, mode, until};

pub(crate) const SUBJECT: &str = "vault://subjects/primary";
const OWNER: &str = "--owner-address=mira@solberg.example";

fn fixture(name: &str) -> String {
    let mail = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/fixtures/mail");
    mail.join(name).display().to_string()
}

pub(crate) fn capture(home: &TestHome, name: &str) -> Value {
    home.json(&["capture", "mail", &fixture(name), OWNER])
}

/// The answer to an example, once its bundle is there.
pub(crate) fn issued(home: &TestHome, example: &str, more: &[&str]) -> Value {
    let file = home.example(example);
    let with = |args: &[&str]| {
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        home.json(&args)
    };
    let mut answer = with(&["request", &file]);
    let id = answer["request"].as_str().unwrap().to_owned();
    until("bundle", || {
        if answer["state"] == "issued" {
            return Some(answer.clone());
        }
        assert_eq!(answer["state"], "decided", "{answer}");
        answer = with(&["requests", "show", &id]);
        None
    })
}

pub(crate) fn bundle_of(answer: &Value) -> String {
    answer["bundle"].as_str().unwrap().to_owned()
}

fn predicates(claims: &Value, list: &str) -> Vec<String> {
    let claims = claims[list].as_array().unwrap().iter();
    let mut found: Vec<_> = claims
        .map(|entry| {
            let claim = entry.get("claim").filter(|claim| claim.is_object());
            let predicate = &claim.unwrap_or(entry)["predicate"];
            predicate.as_str().unwrap().to_owned()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn captured_mail_is_listed_to_its_owner() {
    let home = TestHome::new();
    let _up = home.up();
    let report = capture(&home, "eml/03-invoice.eml");
    assert_eq!(report["captured"], 1, "{report}");
    let again = capture(&home, "eml/03-invoice.eml");
    assert_eq!(again["duplicates"], 1, "{again}");

    let events = home.json(&["events", "list"]);
    assert_eq!(events["total"], 1);
    assert_eq!(events["events"][0]["claims"], 4);
    assert_eq!(events["events"][0]["event"]["source"]["adapter"], "email");
    let claims = home.json(&["claims", "list"]);
    assert_eq!(claims["total"], 4);
    assert_eq!(
        predicates(&claims, "claims"),
        [
            "amount_due",
            "request_summary",
            "requested_delivery_date",
            "requesting_stakeholder"
        ]
    );
    let amounts = home.json(&["claims", "list", "--predicate=amount_due"]);
    assert_eq!(amounts["total"], 1);
    assert_eq!(
        amounts["claims"][0]["claim"]["object"]["value"]["amount"],
        "1284.50"
    );
    let first = home.json(&["claims", "list", "--limit=1"]);
    assert_eq!(first["claims"].as_array().unwrap().len(), 1);
    let table = home.ok(&["claims", "list"]);
    assert!(
        table.contains("2026-10-22") && table.contains("4 of 4"),
        "{table}"
    );
    let table = home.ok(&["events", "list"]);
    assert!(
        table.contains("urn:cl:event:") && table.contains("1 of 1"),
        "{table}"
    );
    // Nobody else's.
    let other = home.json(&["claims", "list", "--subject=vault://subjects/other"]);
    assert_eq!(other["total"], 0);
}

#[test]
fn a_claim_is_explained_to_its_owner_by_the_words_it_came_from() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/03-invoice.eml");
    let claims = home.json(&["claims", "list", "--predicate=requested_delivery_date"]);
    let claim = claims["claims"][0]["claim"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let explained = home.json(&["claims", "explain", &claim]);
    assert_eq!(explained["claim"], claims["claims"][0]["claim"]);
    let evidence = explained["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0]["rule"], "date.explicit");
    let words = evidence[0]["words"].as_str().unwrap();
    assert!(words.contains("22 October 2026"), "{words}");
    assert!(evidence[0]["reason"].as_str().unwrap().len() > 10);
    let text = home.ok(&["claims", "explain", &claim]);
    assert!(
        text.contains(words) && text.contains("2026-10-22"),
        "{text}"
    );

    // Not of another subject, not what is not there, and not without the owner's certificate.
    let other = [
        "claims",
        "explain",
        &claim,
        "--subject=vault://subjects/other",
    ];
    assert_eq!(home.failure(&other), (4, "CLAIM_NOT_FOUND".to_owned()));
    let unknown = format!("urn:cl:claim:{}", "0".repeat(64));
    let missing = (4, "CLAIM_NOT_FOUND".to_owned());
    assert_eq!(home.failure(&["claims", "explain", &unknown]), missing);
    let malformed = home.failure(&["claims", "explain", "urn:cl:event:a"]);
    assert_eq!(malformed, (1, "INVALID_FIELD".to_owned()));
    for extension in ["pem", "key"] {
        let of = |name: &str| home.path(&format!("pki/{name}.{extension}"));
        fs::copy(of("auditor"), of("owner")).unwrap();
    }
    let stranger = home.failure(&["claims", "explain", &claim]);
    assert_eq!(stranger, (1, "CALLER_NOT_ALLOWED".to_owned()));
}

#[test]
fn a_run_of_capture_ends_as_it_says() {
    let home = TestHome::new();
    let not_up = home.failure(&["capture", "mail", "somewhere", OWNER]);
    assert_eq!(not_up, (3, "NOT_RUNNING".to_owned()));
    let _up = home.up();
    let missing = home.run(&["capture", "mail", "/nonexistent", OWNER]);
    assert_eq!(missing.code, Some(1), "{}", missing.stdout);
    assert!(
        missing.stderr.starts_with("cl-capture: "),
        "{}",
        missing.stderr
    );
    let text = home.write("notes.txt", "\u{0}not a message");
    let refused = home.run(&["--json", "capture", "mail", &text, OWNER]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    let report: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(report["refused"]["NOT_A_MESSAGE"], 1);
    assert_eq!(home.run(&["capture", "mail", &text]).code, Some(2));
    let gone = home.failure(&["capture", "mail", &text, OWNER, "--bin-dir=/nonexistent"]);
    assert_eq!(gone, (1, "PROGRAM_NOT_FOUND".to_owned()));
}

#[test]
fn a_bundle_opens_once_and_shows_only_what_was_granted() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/03-invoice.eml");
    let answer = issued(&home, "request", &[]);
    assert_eq!(answer["decision"]["decision"], "allow_with_reductions");
    let bundle = bundle_of(&answer);
    let stranger = home.failure(&["open", &bundle, "--recipient=urn:cl:model:other"]);
    assert_eq!(stranger, (4, "BUNDLE_NOT_FOUND".to_owned()));

    let saved = home.write("delivery.json", "");
    let opened = home.json(&[
        "open",
        &bundle,
        "--save",
        &saved,
        "--perform=email.create_draft",
    ]);
    assert_eq!(
        predicates(&opened, "facts"),
        ["requested_delivery_date", "requesting_stakeholder"]
    );
    let text = opened.to_string();
    assert!(text.contains("2026-10-22"), "{text}");
    assert!(!text.contains("1284"), "{text}");
    let fact = &opened["facts"][0];
    assert_eq!(
        (&fact["trust"], &fact["status"]),
        (&json!("untrusted"), &json!("derived"))
    );
    assert_eq!(opened["instructions"], json!(["Draft only."]));
    assert_eq!(
        opened["capabilities"],
        json!([
            "email.create_draft",
            "memory.propose",
            "model.generate_text"
        ])
    );
    assert_eq!(
        opened["actions"],
        json!([{"action": "email.create_draft", "outcome": "success", "code": null}])
    );
    assert_eq!(
        home.failure(&["open", &bundle]),
        (1, "BUNDLE_REPLAY".to_owned())
    );

    let receipts = home.json(&["receipts", "list"]).to_string();
    for operation in [
        "vault.capture",
        "policy.decide",
        "vault.resolve",
        "semantic_proxy.project",
        "bundle.issue",
        "bundle.deliver",
        "bundle.consume",
        "email.create_draft",
    ] {
        assert!(receipts.contains(operation), "{operation}: {receipts}");
    }
    assert_eq!(home.json(&["receipts", "verify"])["verified"], true);
}

#[test]
fn a_saved_delivery_is_checked_without_any_process() {
    let home = TestHome::new();
    let up = home.up();
    capture(&home, "eml/03-invoice.eml");
    let bundle = bundle_of(&issued(&home, "request", &[]));
    let saved = home.write("delivery.json", "");
    let opened = home.json(&["open", &bundle, "--save", &saved]);
    drop(up);
    assert_eq!(mode(Path::new(&saved)), 0o600);

    let shown = home.json(&["open", "--file", &saved]);
    assert_eq!(shown["facts"], opened["facts"]);
    assert_eq!(shown["bundle"], opened["bundle"]);
    assert_eq!(shown["recipient"], "urn:cl:model:demo");
    assert_eq!(
        (&shown["verified"], &shown["expired"]),
        (&json!(true), &json!(false))
    );
    let table = home.ok(&["open", "--file", &saved]);
    assert!(
        table.contains("Delivery was requested by 2026-10-22."),
        "{table}"
    );

    // Another home believes other keys.
    let other = TestHome::new();
    let refused = other.failure(&["open", "--file", &saved]);
    assert_eq!(refused, (1, "UNTRUSTED_BUNDLE_AUTHORITY".to_owned()));
    let mut delivery: Value = serde_json::from_slice(&fs::read(&saved).unwrap()).unwrap();
    delivery["notes_signature"] = delivery["scope_signature"].clone();
    let changed = home.write("changed.json", &delivery.to_string());
    assert_eq!(home.failure(&["open", "--file", &changed]).0, 1);
    let empty = home.write("empty.json", "{}");
    let refused = home.failure(&["open", "--file", &empty]);
    assert_eq!(refused, (1, "INVALID_DELIVERY".to_owned()));
}

#[test]
fn an_action_that_is_not_granted_is_refused_and_the_others_are_done() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/01-kickoff.eml");
    let bundle = bundle_of(&issued(&home, "request", &[]));
    let args = ["--perform=payment.send", "--perform=email.create_draft"];
    let answer = home.run(&["--json", "open", &bundle, args[0], args[1]]);
    assert_eq!(answer.code, Some(1));
    let opened: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(
        opened["actions"],
        json!([
            {"action": "payment.send", "outcome": "refused", "code": "CAPABILITY_NOT_GRANTED"},
            {"action": "email.create_draft", "outcome": "success", "code": null},
        ])
    );
    assert!(
        answer.stderr.contains("CAPABILITY_NOT_GRANTED"),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_recipient_proposes_what_it_learned() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/01-kickoff.eml");
    let bundle = bundle_of(&issued(&home, "request", &[]));
    let wrong = home.write("wrong.json", "{}");
    let refused = home.failure(&["open", &bundle, "--propose", &wrong]);
    assert_eq!(refused, (1, "PROPOSED_CLAIMS_REQUIRED".to_owned()));
    // That took no bundle.
    let proposal = json!({
        "proposed_claims": [{
            "predicate": "requested_delivery_date",
            "object": {"value": "2026-10-17", "datatype": "date"},
            "confidence": 0.6,
        }],
        "rationale": "The draft had to move it by a day.",
    });
    let file = home.write("proposal.json", &proposal.to_string());
    let opened = home.json(&["open", &bundle, "--propose", &file]);
    let reference = opened["proposal"].as_str().unwrap();
    assert!(reference.starts_with("urn:cl:proposal:"), "{reference}");
    let receipts = home.json(&["receipts", "list", "--operation=memory.propose"]);
    assert_ne!(receipts["total"], 0);
    // A proposal is no claim.
    let claims = home.json(&["claims", "list", "--predicate=requested_delivery_date"]);
    assert_eq!(claims["total"], 1);
}

#[test]
fn a_client_with_a_certificate_takes_its_own_bundle() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/01-kickoff.eml");
    let bundle = bundle_of(&issued(&home, "request-mtls", &["--mtls"]));
    let opened = home.json(&["open", &bundle, "--mtls"]);
    assert_eq!(
        opened["recipient"],
        "spiffe://context-layer.local/client/default/demo"
    );
    assert_eq!(opened["facts"].as_array().unwrap().len(), 2);
}

#[test]
fn an_erased_subject_is_gone_for_good() {
    let home = TestHome::new();
    let _up = home.up();
    capture(&home, "eml/03-invoice.eml");
    let bundle = bundle_of(&issued(&home, "request", &[]));
    let unsure = home.run(&["subject", "erase", SUBJECT]);
    assert_eq!(unsure.code, Some(2));
    assert!(unsure.stderr.contains("--yes"), "{}", unsure.stderr);
    assert_eq!(home.json(&["claims", "list"])["total"], 4);

    let erased = home.json(&["subject", "erase", SUBJECT, "--yes"]);
    assert_eq!(
        (&erased["events"], &erased["claims"]),
        (&json!(1), &json!(4))
    );
    for list in ["events", "claims"] {
        assert_eq!(home.json(&[list, "list"])["total"], 0);
    }
    let again = home.run(&["capture", "mail", &fixture("eml/01-kickoff.eml"), OWNER]);
    assert_eq!(again.code, Some(1), "{}", again.stdout);
    assert!(again.stderr.contains("SUBJECT_ERASED"), "{}", again.stderr);
    // What was issued and not taken is revoked as soon as the issuer was told.
    until("revocation", || {
        let receipts = home.json(&["receipts", "list", "--operation=bundle.revoke"]);
        (receipts["total"] != 0).then_some(())
    });
    assert_eq!(
        home.failure(&["open", &bundle]),
        (1, "BUNDLE_REVOKED".to_owned())
    );
    assert_eq!(home.json(&["receipts", "verify"])["verified"], true);
}

#[test]
fn commands_of_the_exchange_need_their_arguments() {
    let home = TestHome::new();
    let urn = format!("urn:cl:bundle:{}", "0".repeat(64));
    for wrong in [
        &["open"][..],
        &["open", "urn:cl:request:a"],
        &["open", "--file=a", "--perform=b"],
        &["open", &urn, "--file=a"],
        &["open", &urn, "--mtls", "--recipient=urn:a:b"],
        &["subject", "erase"],
        &["events", "list", "--subject="],
    ] {
        assert_eq!(home.run(wrong).code, Some(2), "{wrong:?}");
    }
    assert_eq!(home.failure(&["open", &urn]), (3, "NOT_RUNNING".to_owned()));
    assert_eq!(
        home.failure(&["claims", "list"]),
        (3, "NOT_RUNNING".to_owned())
    );
    let missing = home.failure(&["open", "--file=/nonexistent"]);
    assert_eq!(missing, (1, "FILE_NOT_READ".to_owned()));
}

#[test]
fn a_recipients_token_goes_to_no_other_process() {
    let home = TestHome::new();
    let _up = home.up();
    let mut endpoints = home.endpoints().unwrap();
    let urn = format!("urn:cl:bundle:{}", "0".repeat(64));
    let engine = endpoints["processes"]["cl-policy-engine"]["addr"].clone();
    endpoints["processes"]["cl-gateway"]["addr"] = engine;
    fs::write(home.path("run/endpoints.json"), endpoints.to_string()).unwrap();
    let refused = home.failure(&["open", &urn]);
    assert_eq!(refused, (1, "PEER_NOT_VERIFIED".to_owned()));
}
