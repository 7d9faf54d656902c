//! The binary: it starts from its files, ends when told, and refuses a shared key.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cl_host::tls::TlsFiles;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use tempfile::TempDir;

use crate::pki::Authority;
use crate::support::within;

fn write_secret(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// A home folder with everything that the engine needs.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let (pki, keys) = (home.path().join("pki"), home.path().join("keys"));
    fs::create_dir_all(&pki).unwrap();
    fs::create_dir_all(&keys).unwrap();
    let files = TlsFiles {
        chain: pki.join("cl-policy-engine.pem"),
        key: pki.join("cl-policy-engine.key"),
        trust: pki.join("ca.pem"),
    };
    Authority::new().write("exchange/cl-policy-engine", &files);
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    write_secret(&keys.join("decision.pem"), document.as_ref());
    write_secret(&keys.join("alias.key"), &[1; 32]);
    write_secret(&keys.join("subject-tag.key"), &[2; 32]);
    write_secret(&keys.join("cl-policy-engine.kek"), &[3; 32]);
    home
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn start(home: &Path, admin_addr: &str) -> Child {
    start_with(home, admin_addr, &[])
}

fn start_with(home: &Path, admin_addr: &str, settings: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cl-policy-engine"))
        .arg(format!("--home={}", home.display()))
        .arg("--listen-addr=127.0.0.1:0")
        .arg(format!("--admin-addr={admin_addr}"))
        .arg("--receipt-store-addr=localhost:1")
        .arg("--lame-duck-ms=0")
        .args(settings)
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
    let child = start(home.path(), &admin_addr);
    within("readiness", async {
        while tokio::net::TcpStream::connect(&admin_addr).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    let (code, log) = ended(child).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ready"), "{log}");
    assert!(home.path().join("data/cl-policy-engine").is_dir());
}

#[tokio::test]
async fn refuses_to_start_with_a_shared_key() {
    let home = home();
    let keys = home.path().join("keys");
    write_secret(&keys.join("subject-tag.key"), &[3; 32]);
    let (code, log) = ended(start(home.path(), &free_address())).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("hold the same key"), "{log}");
    assert!(!home.path().join("data").exists());
}

#[tokio::test]
async fn refuses_to_start_for_a_console_that_cannot_be() {
    for settings in [
        &["--passkey-rp-id=notes.example"][..],
        &[
            "--passkey-rp-id=notes.example",
            "--passkey-origin=http://notes.example",
        ],
        &[
            "--passkey-rp-id=notes.example",
            "--passkey-origin=https://evilnotes.example",
        ],
        &["--passkey-origin=https://localhost:8449/"],
        &["--passkey-rp-id=Localhost"],
        &["--approval-seconds=0"],
        &["--approval-seconds=604801"],
    ] {
        let home = home();
        let child = start_with(home.path(), &free_address(), settings);
        let (code, log) = ended(child).await;
        assert_eq!(code, Some(1), "{settings:?}");
        let setting = settings[0].split('=').next().unwrap();
        assert!(log.contains(setting), "{settings:?}: {log}");
        assert!(!home.path().join("data").exists());
    }
}
