//! Expected objects, made by the adapter that the cases are then run against.

use std::io::Write;
use std::process::{Command, Stdio};

use data_encoding::HEXLOWER;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::cases::{ANCHOR_SEED, CLOCK, KEY_ID, SEED};

/// The adapter, asked for what it answers.
pub(crate) struct Oracle {
    pub(crate) program: &'static str,
}

impl Oracle {
    pub(crate) fn ask(&self, operation: &str, mut request: Value) -> Value {
        request["adapter_version"] = "context-layer-conformance-adapter/1".into();
        request["operation"] = operation.into();
        let mut child = Command::new(self.program)
            .arg("adapter")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
        let output = child.wait_with_output().unwrap();
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["ok"], true, "{operation}: {answer}");
        answer["result"].take()
    }

    fn digest(&self, value: &Value) -> Value {
        self.ask("canonicalize", json!({"value": value}))["digest"].take()
    }
}

/// The whole expectation file.
pub(crate) fn expectations(
    oracle: &Oracle,
    policy: &Value,
    exchange: &Value,
    memory: &Value,
) -> Value {
    let value = json!(1e21);
    let canonical = oracle.ask("canonicalize", json!({"value": value}));
    let decision = json!({
        "request": exchange["request"],
        "policy": exchange["policy"],
        "clock": CLOCK,
        "receipt_preflight": "available",
    });
    let issue = json!({
        "request": exchange["request"],
        "policy": exchange["policy"],
        "claims": exchange["claims"],
        "clock": CLOCK,
        "key_id": KEY_ID,
        "synthetic_seed_hex": HEXLOWER.encode(&SEED),
    });
    let envelope = oracle.ask("issue_bundle", issue);
    let key = Ed25519KeyPair::from_seed_unchecked(&SEED).unwrap();
    let proposal = json!({
        "envelope": envelope,
        "clock": CLOCK,
        "recipient": "urn:agent:reader",
        "key_id": KEY_ID,
        "public_key_hex": HEXLOWER.encode(key.public_key().as_ref()),
        "revocation": "clear",
        "proposal": {
            "operation": memory["memory_proposal"]["operation"],
            "proposed_claims": memory["memory_proposal"]["proposed_claims"],
            "provenance_handles": [],
            "rationale": memory["memory_proposal"]["rationale"],
        },
    });
    json!({
        "canonical_cases": [{
            "id": "own-number",
            "value": value,
            "canonical_json": canonical["canonical_json"],
            "digest": canonical["digest"],
        }],
        "decisions": decisions(oracle, policy),
        "approvals": approvals(oracle, policy),
        "exchange_decision": oracle.ask("evaluate_policy", decision),
        "envelope": envelope,
        "proposal": oracle.ask("memory_proposal", proposal),
        "receipts": receipts(oracle, memory),
    })
}

fn decisions(oracle: &Oracle, policy: &Value) -> Value {
    let mut decisions = json!({});
    for case in policy["state_cases"].as_array().unwrap() {
        let request = evaluation(policy, &case["request_patch"]);
        let id = case["id"].as_str().unwrap();
        decisions[id] = oracle.ask("evaluate_policy", request);
    }
    decisions
}

fn approvals(oracle: &Oracle, policy: &Value) -> Value {
    let group = &policy["approval"];
    let mut decisions = json!({});
    for case in group["cases"].as_array().unwrap() {
        let mut request = evaluation(policy, &group["request_patch"]);
        let mut approval = group["candidate"].clone();
        approval["request_digest"] = oracle.digest(&request["request"]);
        approval["policy_digest"] = oracle.digest(&request["policy"]);
        if case["mode"] == "expired" {
            approval["expires_at"] = group["expired_candidate_expires_at"].clone();
        }
        request["approval"] = approval;
        request["approval_verifier"] = match case["mode"].as_str().unwrap() {
            "authenticated" => "authenticated".into(),
            _ => "absent".into(),
        };
        let id = case["id"].as_str().unwrap();
        decisions[id] = oracle.ask("evaluate_policy", request);
    }
    decisions
}

fn evaluation(policy: &Value, patch: &Value) -> Value {
    let mut request = policy["base_request"].clone();
    for (name, value) in patch.as_object().unwrap() {
        request[name] = value.clone();
    }
    json!({"request": request, "policy": policy["base_policy"], "clock": CLOCK})
}

fn receipts(oracle: &Oracle, memory: &Value) -> Vec<Value> {
    let request = json!({
        "clock": CLOCK,
        "synthetic_seed_hex": HEXLOWER.encode(&ANCHOR_SEED),
        "operations": memory["receipt_operations"],
    });
    let answer = oracle.ask("receipt_log", request);
    let log = answer["log_jsonl"].as_str().unwrap();
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["receipt"].take())
        .collect()
}
