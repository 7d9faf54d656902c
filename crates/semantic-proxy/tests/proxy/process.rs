//! The binary: it starts from its files, ends when told, and refuses a shared key.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use cl_testbed::{Authority, Home, Program};

use crate::exchange::trust_json;

/// A home folder with everything that the proxy needs.
fn home() -> Home {
    let home = Home::new(&Authority::new(), "exchange/cl-semantic-proxy");
    home.write_key("transform.key", &[1; 32]);
    home.write("trust.json", trust_json());
    home
}

fn start(home: &Home) -> Program {
    let settings = [
        "--receipt-store-addr=localhost:1",
        "--vault-addr=localhost:1",
    ];
    Program::start(
        env!("CARGO_BIN_EXE_cl-semantic-proxy"),
        home.path(),
        &settings,
    )
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let mut process = start(&home);
    process.ready().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ready"), "{log}");
    // It has nothing to keep.
    assert!(!home.join("data").exists());
}

#[tokio::test]
async fn refuses_to_start_without_its_keys() {
    let home = home();
    let key = home.join("keys/transform.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let (code, log) = start(&home).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("chmod 0600"), "{log}");
    home.write_key("transform.key", &[1; 31]);
    let (code, _) = start(&home).ended().await;
    assert_eq!(code, Some(1));
    home.write_key("transform.key", &[1; 32]);
    fs::remove_file(home.join("trust.json")).unwrap();
    let (code, log) = start(&home).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("trust.json"), "{log}");
}
