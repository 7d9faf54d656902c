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
    assert_eq!(&shown, receipt);
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
