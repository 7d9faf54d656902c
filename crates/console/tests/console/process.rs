//! The binary: it starts from its files, ends when told, and refuses what is not to be trusted.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::pki::Authority;
use crate::receipt_store::FakeReceiptStore;
use crate::support::{until, within};

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let pki = home.path().join("pki");
    fs::create_dir(&pki).unwrap();
    Authority::new().write("edge/cl-console", &pki, "cl-console");
    fs::write(
        home.path().join("trust.json"),
        FakeReceiptStore::new().trust(),
    )
    .unwrap();
    home
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn start(home: &Path, admin_addr: &str, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cl-console"))
        .env_clear()
        .arg(format!("--home={}", home.display()))
        .arg("--listen-addr=127.0.0.1:0")
        .arg(format!("--admin-addr={admin_addr}"))
        .arg("--policy-engine-addr=localhost:1")
        .arg("--lame-duck-ms=0")
        .args(more)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the process on a thread of its own, and returns its exit code and log.
async fn ended(child: Child) -> (Option<i32>, String) {
    let wait = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = within("the process's end", wait).await.unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), log)
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let admin_addr = free_address();
    let more = [
        "--origin=https://localhost:7406",
        "--receipt-store-addr=localhost:1",
    ];
    let child = start(home.path(), &admin_addr, &more);
    until("readiness", async || {
        tokio::net::TcpStream::connect(&admin_addr).await.ok()
    })
    .await;
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let (code, log) = ended(child).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!home.path().join("data").exists(), "it keeps nothing");
}

#[tokio::test]
async fn refuses_to_start_on_what_is_not_to_be_trusted() {
    let folder = home();
    let refuses = async |more: &[&str], code: i32, text: &str| {
        let (found, log) = ended(start(folder.path(), &free_address(), more)).await;
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains(text), "{log}");
    };
    let origin = "--origin=https://localhost:7406";
    refuses(&[], 2, "--origin").await;
    refuses(&["--origin=http://localhost:7406"], 1, "https://").await;
    refuses(&["--origin=https://localhost:7406/"], 1, "https://").await;
    refuses(&[origin, "--max-in-flight=0"], 1, "1 or more").await;
    refuses(&[origin, "--receipt-store-addr=nowhere"], 1, "host:port").await;
    fs::write(folder.path().join("trust.json"), "{").unwrap();
    refuses(
        &[origin, "--receipt-store-addr=localhost:1"],
        1,
        "trust.json",
    )
    .await;
}
