//! The binary: it starts from its files, ends when told, and refuses a shared key.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cl_host::tls::TlsFiles;
use tempfile::TempDir;

use crate::exchange::trust_json;
use crate::pki::Authority;
use crate::serving::within;

fn write_secret(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// A home folder with everything that the proxy needs.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let (pki, keys) = (home.path().join("pki"), home.path().join("keys"));
    fs::create_dir_all(&pki).unwrap();
    fs::create_dir_all(&keys).unwrap();
    let files = TlsFiles {
        chain: pki.join("cl-semantic-proxy.pem"),
        key: pki.join("cl-semantic-proxy.key"),
        trust: pki.join("ca.pem"),
    };
    Authority::new().write("exchange/cl-semantic-proxy", &files);
    write_secret(&keys.join("transform.key"), &[1; 32]);
    fs::write(home.path().join("trust.json"), trust_json()).unwrap();
    home
}

fn start(home: &Path, admin_addr: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cl-semantic-proxy"))
        .arg(format!("--home={}", home.display()))
        .arg("--listen-addr=127.0.0.1:0")
        .arg(format!("--admin-addr={admin_addr}"))
        .arg("--receipt-store-addr=localhost:1")
        .arg("--vault-addr=localhost:1")
        .arg("--lame-duck-ms=0")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn ended(child: Child) -> (Option<i32>, String) {
    let wait = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = within("the process's end", wait).await.unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
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
    // It has nothing to keep.
    assert!(!home.path().join("data").exists());
}

#[tokio::test]
async fn refuses_to_start_without_its_keys() {
    let home = home();
    let key = home.path().join("keys/transform.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let (code, log) = ended(start(home.path(), &free_address())).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("chmod 0600"), "{log}");
    write_secret(&key, &[1; 31]);
    let (code, _) = ended(start(home.path(), &free_address())).await;
    assert_eq!(code, Some(1));
    write_secret(&key, &[1; 32]);
    fs::remove_file(home.path().join("trust.json")).unwrap();
    let (code, log) = ended(start(home.path(), &free_address())).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("trust.json"), "{log}");
}
