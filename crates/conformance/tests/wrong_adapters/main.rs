//! The runner accepts the adapter of this workspace and tells each of four wrong ones.
//!
//! The cases are small ones of our own, whose expected objects the adapter itself made. If
//! `CL_INTEROP_DATA` names a folder with the published data, those are run as well.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod cases;
mod oracle;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Message;
use serde_json::Value;

use self::oracle::Oracle;

const RUNNER: &str = env!("CARGO_BIN_EXE_cl-conformance");

/// Each fault, and the checks that must fail because of it: these and no others.
const FAULTS: [(&str, &[&str]); 5] = [
    ("none", &[]),
    (
        "extra-scope",
        &[
            "policy.allow",
            "policy.allow-with-reductions",
            "approval.authenticated-and-bound",
            "exchange.decision",
            "exchange.envelope",
        ],
    ),
    (
        "unknown-member",
        &[
            "policy.allow",
            "policy.allow-with-reductions",
            "policy.needs-approval",
            "policy.deny-unauthorized-recipient",
            "approval.unverified",
            "approval.authenticated-and-bound",
            "approval.expired",
            "exchange.decision",
            "exchange.envelope",
            "memory.proposal",
        ],
    ),
    (
        "wrong-approval-digest",
        &["approval.authenticated-and-bound"],
    ),
    (
        "longer-retention",
        &[
            "policy.allow",
            "policy.allow-with-reductions",
            "approval.authenticated-and-bound",
            "exchange.decision",
            "exchange.envelope",
        ],
    ),
];

#[test]
fn tells_wrong_adapters_with_cases_of_our_own() {
    let data = tempfile::tempdir().unwrap();
    cases::write(data.path(), &Oracle { program: RUNNER });
    check_faults(data.path());
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test takes no arguments, and the published data is not part of the repository"
)]
fn tells_wrong_adapters_with_the_published_data() {
    match env::var_os("CL_INTEROP_DATA") {
        Some(data) => check_faults(Path::new(&data)),
        None => println!("not run: CL_INTEROP_DATA is not set"),
    }
}

#[test]
fn refuses_data_that_was_changed() {
    let data = tempfile::tempdir().unwrap();
    cases::write(data.path(), &Oracle { program: RUNNER });
    let path = data.path().join("local-profile-expectations.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text} ")).unwrap();
    let output = Command::new(RUNNER)
        .arg("interop")
        .arg("--data")
        .arg(data.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

fn check_faults(data: &Path) {
    let wrong_adapter = wrong_adapter();
    for (fault, expected) in FAULTS {
        let outcome = run(data, &wrong_adapter, fault);
        assert_eq!(outcome.failed, expected, "{fault}");
        let code = i32::from(!expected.is_empty());
        assert_eq!(outcome.code, Some(code), "{fault}");
    }
}

struct Outcome {
    code: Option<i32>,
    failed: Vec<String>,
}

fn run(data: &Path, wrong_adapter: &Path, fault: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let output = Command::new(RUNNER)
        .arg("interop")
        .arg("--data")
        .arg(data)
        .arg("--report")
        .arg(&report)
        .arg("--")
        .arg(wrong_adapter)
        .args([fault, RUNNER, "adapter"])
        .output()
        .unwrap();
    let text = fs::read(&report)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)));
    let report: Value = serde_json::from_slice(&text).unwrap();
    let checks = report["checks"].as_array().unwrap();
    Outcome {
        code: output.status.code(),
        failed: checks
            .iter()
            .filter(|check| check["status"] == "failed")
            .map(|check| check["id"].as_str().unwrap().to_owned())
            .collect(),
    }
}

/// Builds the example and returns its path. Which examples a test run builds, and under which
/// names, depends on how the run was started.
fn wrong_adapter() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--message-format=json"])
        .args(["--example", "wrong_adapter"])
        .args([
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()
        .unwrap();
    let built = Message::parse_stream(&output.stdout[..]).find_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) if artifact.target.is_example() => {
            artifact.executable
        }
        _ => None,
    });
    let log = String::from_utf8_lossy(&output.stderr);
    built.unwrap_or_else(|| panic!("not built: {log}")).into()
}
