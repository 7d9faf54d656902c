//! The binary: it starts from its files, ends when told, and refuses a shared key.

use cl_testbed::{Authority, Home, Program};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;

/// A home folder with everything that the engine needs.
fn home() -> Home {
    let home = Home::new(&Authority::new(), "exchange/cl-policy-engine");
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    home.write_key("decision.pem", document.as_ref());
    home.write_key("alias.key", &[1; 32]);
    home.write_key("subject-tag.key", &[2; 32]);
    home.write_key("cl-policy-engine.kek", &[3; 32]);
    home
}

fn start(home: &Home, settings: &[&str]) -> Program {
    let settings = [&["--receipt-store-addr=localhost:1"], settings].concat();
    Program::start(
        env!("CARGO_BIN_EXE_cl-policy-engine"),
        home.path(),
        &settings,
    )
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let mut process = start(&home, &[]);
    process.ready().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ready"), "{log}");
    assert!(home.join("data/cl-policy-engine").is_dir());
}

#[tokio::test]
async fn refuses_to_start_with_a_shared_key() {
    let home = home();
    home.write_key("subject-tag.key", &[3; 32]);
    let (code, log) = start(&home, &[]).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("hold the same key"), "{log}");
    assert!(!home.join("data").exists());
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
        let (code, log) = start(&home, settings).ended().await;
        assert_eq!(code, Some(1), "{settings:?}");
        let setting = settings[0].split('=').next().unwrap();
        assert!(log.contains(setting), "{settings:?}: {log}");
        assert!(!home.join("data").exists());
    }
}
