//! Policy snapshots and receipts on running services.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestHome;

fn snapshot(home: &TestHome, version: &str, change: impl Fn(&mut Value)) -> String {
    let text = fs::read(home.path("policy/default.json")).unwrap();
    let mut snapshot: Value = serde_json::from_slice(&text).unwrap();
    snapshot["version"] = json!(version);
    change(&mut snapshot);
    home.write(&format!("{version}.json"), &format!("{snapshot:#}"))
}

fn active(home: &TestHome) -> Vec<String> {
    let listed = home.json(&["policy", "list"]);
    let snapshots = listed["snapshots"].as_array().unwrap();
    let active = snapshots
        .iter()
        .filter(|snapshot| snapshot["active"] == true);
    active
        .map(|snapshot| snapshot["version"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn snapshots_are_put_listed_and_activated() {
    let home = TestHome::new();
    let _up = home.up();
    assert_eq!(active(&home), ["default-1"]);
    let second = snapshot(&home, "second", |_| {});
    let digest = home.json(&["policy", "put", &second])["digest"].clone();
    let digest = digest.as_str().unwrap();
    // The digest is of the canonical bytes, so the form of the file does not matter.
    let compact: Value = serde_json::from_str(&fs::read_to_string(&second).unwrap()).unwrap();
    let compact = home.write("compact.json", &compact.to_string());
    assert_eq!(home.ok(&["policy", "put", &compact]).trim_end(), digest);
    assert_eq!(active(&home), ["default-1"]);
    let wrong = format!("sha256:{}", "0".repeat(64));
    let refused = home.failure(&["policy", "activate", digest, "--expected", &wrong]);
    assert_eq!(refused, (1, "SNAPSHOT_NOT_CURRENT".to_owned()));
    assert_eq!(active(&home), ["default-1"]);
    home.ok(&["policy", "activate", digest]);
    assert_eq!(active(&home), ["second"]);
    let listed = home.ok(&["policy", "list"]);
    assert!(listed.contains(digest), "{listed}");
}

#[test]
fn refusals_keep_their_code_and_name_the_place() {
    let home = TestHome::new();
    let _up = home.up();
    let other = snapshot(&home, "default-1", |snapshot| {
        snapshot["policy"]["decision_ttl_seconds"] = json!(1);
    });
    let refused = home.failure(&["policy", "put", &other]);
    assert_eq!(refused, (1, "SNAPSHOT_VERSION_CONFLICT".to_owned()));
    let wrong = snapshot(&home, "wrong", |snapshot| {
        snapshot["limits"] = json!({"max_selectors": 0});
    });
    let answer = home.run(&["policy", "put", &wrong]);
    assert_eq!(answer.code, Some(1));
    assert!(
        answer.stderr.contains("INVALID_POLICY"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("limits.max_selectors"),
        "{}",
        answer.stderr
    );
    let broken = home.write("broken.json", r#"{"a":1,"a":2}"#);
    let answer = home.run(&["policy", "put", &broken]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("DUPLICATE"), "{}", answer.stderr);
    let unknown = format!("sha256:{}", "0".repeat(64));
    let refused = home.failure(&["policy", "activate", &unknown]);
    assert_eq!(refused, (4, "SNAPSHOT_NOT_FOUND".to_owned()));
    let tenant = home.json(&["policy", "list", "--tenant=other"]);
    assert_eq!(tenant["snapshots"], json!([]));
}

#[test]
fn receipts_are_listed_shown_and_verified() {
    let home = TestHome::new();
    let _up = home.up();
    let listed = home.json(&["receipts", "list", "--operation=policy.put_snapshot"]);
    assert_eq!(listed["total"], 1);
    let receipt = &listed["receipts"][0];
    assert_eq!(receipt["receipt"]["operation"], "policy.put_snapshot");
    let urn = receipt["receipt_ref"].as_str().unwrap();
    let shown = home.json(&["receipts", "show", urn]);
    let mut with_tag = receipt.clone();
    with_tag["subject_tag"] = shown["subject_tag"].clone();
    assert_eq!(shown, with_tag);
    let tail = urn.rsplit_once(':').unwrap().1;
    assert_eq!(home.json(&["receipts", "show", tail]), shown);
    let newest = home.json(&["receipts", "list", "--limit=1"]);
    assert_eq!(newest["total"], 2);
    assert_eq!(
        newest["receipts"][0]["receipt"]["operation"],
        "policy.activate_snapshot"
    );
    let verified = home.json(&["receipts", "verify"]);
    assert_eq!(verified["entries"], 2);
    let checkpoint = verified["checkpoint"].as_str().unwrap();
    assert!(checkpoint.starts_with("context-layer.local/receipts/default\n2\n"));
    let missing = format!("urn:cl:receipt:{}", "0".repeat(64));
    let refused = home.failure(&["receipts", "show", &missing]);
    assert_eq!(refused, (4, "RECEIPT_NOT_FOUND".to_owned()));
    let refused = home.failure(&["receipts", "show", urn, "--tenant=other"]);
    assert_eq!(refused, (4, "RECEIPT_NOT_FOUND".to_owned()));
    let table = home.ok(&["receipts", "list"]);
    assert!(table.contains(urn), "{table}");
}

/// The worked example of the documentation.
fn household(name: &str) -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../conformance/policies/household"
    );
    format!("{folder}/{name}")
}

#[test]
fn the_worked_example_holds_and_each_of_its_policies_is_used() {
    let home = TestHome::missing();
    let valid = home.json(&["policy", "validate", &household("snapshot.yaml")]);
    assert_eq!(valid["policies"], 14);
    let report = home.json(&["policy", "test", &household("cases.yaml")]);
    assert_eq!(report["passed"], true, "{report:#}");
    assert_eq!(report["unused"], json!([]), "{report:#}");
    let shown = home.ok(&["policy", "test", &household("cases.yaml")]);
    assert!(
        shown.contains("14 of 14 policies decided something"),
        "{shown}"
    );
}

#[test]
fn a_case_that_fails_fails_the_command() {
    let home = TestHome::missing();
    let cases = fs::read_to_string(household("cases.yaml")).unwrap();
    let cases = cases
        .replace(
            "snapshot: snapshot.yaml",
            &format!("snapshot: {}", household("snapshot.yaml")),
        )
        .replacen("decision: allow\n", "decision: deny\n", 1);
    let cases = home.write("cases.yaml", &cases);
    let answer = home.run(&["policy", "test", &cases]);
    assert_eq!(answer.code, Some(1));
    assert!(
        answer
            .stdout
            .contains("FAILED  the planner learns the date"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stdout.contains("expected deny, found allow"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stderr.contains("1 of the cases failed"),
        "{}",
        answer.stderr
    );
    let unknown = home.write("unknown.yaml", "snapshot: s.json\nnow: today\ncases: []\n");
    let refused = home.failure(&["policy", "test", &unknown]);
    assert_eq!(refused, (1, "INVALID_POLICY_CASES".to_owned()));
    let twice = home.write("twice.yaml", "snapshot: a\nsnapshot: b\n");
    let refused = home.failure(&["policy", "test", &twice]);
    assert_eq!(refused, (1, "FILE_MALFORMED".to_owned()));
}

#[test]
fn validation_names_the_policy_and_what_is_wrong() {
    let home = TestHome::missing();
    let snapshot = fs::read_to_string(household("snapshot.yaml")).unwrap();
    let wrong = snapshot
        .replace("resource.sensitivity <= 2", "resource.sensitivty <= 2")
        .replace("context.recipient in", "context.receiver in");
    let wrong = home.write("wrong.yaml", &wrong);
    let answer = home.run(&["policy", "validate", &wrong]);
    assert_eq!(answer.code, Some(1));
    for expected in [
        "policy draft-letters: POLICY_SCHEMA_MISMATCH",
        "sensitivty",
        "policy home-models-only: POLICY_SCHEMA_MISMATCH",
        "receiver",
    ] {
        assert!(answer.stderr.contains(expected), "{}", answer.stderr);
    }
    let refused = home.failure(&["policy", "validate", &wrong]);
    assert_eq!(refused, (1, "INVALID_POLICY".to_owned()));
}

#[test]
fn a_list_style_snapshot_is_translated_put_and_decided_by() {
    let home = TestHome::new();
    let _up = home.up();
    let mut translated = home.json(&[
        "policy",
        "translate",
        &home.path("policy/default.json").display().to_string(),
    ]);
    translated["version"] = json!("default-2");
    let file = home.write("default-2.json", &translated.to_string());
    home.ok(&["policy", "validate", &file]);
    let digest = home.json(&["policy", "put", &file])["digest"].clone();
    home.ok(&["policy", "activate", digest.as_str().unwrap()]);
    assert_eq!(active(&home), ["default-2"]);
    let answer = home.json(&["request", &home.example("request")]);
    assert_eq!(
        answer["decision"]["decision"], "allow_with_reductions",
        "{answer:#}"
    );
    let again = home.failure(&["policy", "translate", &file]);
    assert_eq!(again, (1, "POLICY_NOT_TRANSLATABLE".to_owned()));
}

#[test]
fn signed_snapshots_are_required_where_that_is_asked_for() {
    let home = TestHome::new();
    let up = home.start(&["--base-port=0", "--require-signed-snapshots"]);
    up.wait_until_ready(&home);
    let listed = home.json(&["policy", "list"]);
    let signer = listed["snapshots"][0]["signed_by"].as_str().unwrap();
    assert!(
        signer.starts_with("urn:cl:key:policy-snapshot:"),
        "{signer}"
    );
    let second = snapshot(&home, "second", |_| {});
    let signed = home.json(&["policy", "sign", &second]);
    assert_eq!(signed["kid"], signer);
    let file = home.write("second.sig", &signed.to_string());
    let third = snapshot(&home, "third", |_| {});
    // The signature of another snapshot, then one of a key that nobody trusts.
    let refused = home.failure(&["policy", "put", &third, "--signature", &file]);
    assert_eq!(refused, (1, "SNAPSHOT_SIGNATURE_INVALID".to_owned()));
    let key = home.path("keys/token.pem").display().to_string();
    let foreign = home.json(&["policy", "sign", &third, "--key", &key]);
    let foreign = home.write("foreign.sig", &foreign.to_string());
    let refused = home.failure(&["policy", "put", &third, "--signature", &foreign]);
    assert_eq!(refused, (1, "SNAPSHOT_SIGNER_UNTRUSTED".to_owned()));
    let put = home.json(&["policy", "put", &second, "--signature", &file]);
    assert_eq!(put["digest"], signed["digest"]);
    home.ok(&["policy", "activate", put["digest"].as_str().unwrap()]);
    assert_eq!(active(&home), ["second"]);
    // Without the key there is nothing to sign with.
    fs::remove_file(home.path("keys/policy-snapshot.pem")).unwrap();
    let refused = home.failure(&["policy", "put", &third]);
    assert_eq!(refused, (1, "SNAPSHOT_UNSIGNED".to_owned()));
    let broken = home.write("broken.sig", "{}");
    let refused = home.failure(&["policy", "put", &third, "--signature", &broken]);
    assert_eq!(refused, (1, "FILE_MALFORMED".to_owned()));
}
