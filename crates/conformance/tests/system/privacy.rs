//! Private words stay where they belong.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::decisions::{read, submit};
use crate::deployment::{Deployment, PROCESSES};

const SUBJECT: &str = "vault://subjects/canary-subject";

/// A word of each private field, none of which may turn up outside the process that keeps it.
const CANARIES: [&str; 6] = [
    "canary-subject",
    "canary purpose",
    "canary_fact",
    "canary.task",
    "canary-refused",
    "canary-policy",
];

fn change(snapshot: &mut Value) {
    let policy = &mut snapshot["policy"];
    policy["allowed_subjects"] = json!([SUBJECT]);
    policy["allowed_tasks"] = json!(["draft_only", "canary.task"]);
    policy["bundle_instructions"] = json!(["Keep to canary-policy."]);
    policy["allowed_selectors"] = json!(["canary_fact", "requesting_stakeholder"]);
    snapshot["predicates"]["canary_fact"] = json!({"datatype": "text", "label": "private"});
}

pub(crate) fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn assert_clean(place: &str, bytes: &[u8]) {
    for canary in CANARIES {
        let mut windows = bytes.windows(canary.len());
        let leaks = windows.any(|window| window == canary.as_bytes());
        assert!(!leaks, "{canary} in {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_words_reach_no_log_error_metric_receipt_or_disk() {
    let deployment = Deployment::start_with(change).await;
    let exchange = deployment.exchange();
    let mut request = deployment.request("canaries");
    request["subject_ref"] = json!(SUBJECT);
    request["purpose"] = json!("a canary purpose");
    request["task"]["kind"] = json!("canary.task");
    request["selectors"] = json!([{"predicate": "canary_fact"}, {"predicate": "amount_due"}]);
    let decision = submit(&exchange, &request).await.unwrap();
    let said: Value = serde_json::from_slice(&decision).unwrap();
    assert_eq!(said["decision"], "allow_with_reductions");
    read(&exchange, request["id"].as_str().unwrap())
        .await
        .unwrap();

    // Refusals of several kinds, each with private words in it.
    let mut errors = Vec::new();
    let mut conflict = request.clone();
    conflict["purpose"] = json!("another canary purpose");
    let mut wrong_field = request.clone();
    wrong_field["canary-refused"] = json!("canary-refused");
    let mut wrong_value = request.clone();
    wrong_value["subject_ref"] = json!(["canary-subject"]);
    for refused in [conflict, wrong_field, wrong_value] {
        errors.push(submit(&exchange, &refused).await.unwrap_err());
    }
    let unknown = read(&exchange, "urn:cl:request:canary-refused").await;
    errors.push(unknown.unwrap_err());
    for error in &errors {
        assert_clean("an error", format!("{error:?}").as_bytes());
        assert_clean("error details", error.details());
    }

    for (process, _) in PROCESSES {
        assert_clean(process, deployment.metrics(process).as_bytes());
    }
    let receipts = deployment.receipts();
    assert!(receipts.len() >= 3);
    assert_clean("receipts", json!(receipts).to_string().as_bytes());
    let mut found = Vec::new();
    for folder in ["data", "logs"] {
        files(&deployment.home().join(folder), &mut found);
    }
    assert!(found.len() > 6);
    for path in found {
        assert_clean(&path.display().to_string(), &fs::read(&path).unwrap());
    }
}
