//! The binary: it starts from its files, ends when told, and refuses what is not to be trusted.

use cl_testbed::{Authority, Home, Program};

use crate::receipt_store::FakeReceiptStore;

fn home() -> Home {
    let home = Home::new(&Authority::new(), "edge/cl-console");
    home.write("trust.json", FakeReceiptStore::new().trust());
    home
}

fn start(home: &Home, more: &[&str]) -> Program {
    let settings = [&["--policy-engine-addr=localhost:1"], more].concat();
    Program::start(env!("CARGO_BIN_EXE_cl-console"), home.path(), &settings)
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let more = [
        "--origin=https://localhost:7406",
        "--receipt-store-addr=localhost:1",
    ];
    let mut process = start(&home, &more);
    process.ready().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!home.join("data").exists(), "it keeps nothing");
}

#[tokio::test]
async fn refuses_to_start_on_what_is_not_to_be_trusted() {
    let home = home();
    let refuses = async |more: &[&str], code: i32, text: &str| {
        let (found, log) = start(&home, more).ended().await;
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains(text), "{log}");
    };
    let origin = "--origin=https://localhost:7406";
    refuses(&[], 2, "--origin").await;
    refuses(&["--origin=http://localhost:7406"], 1, "https://").await;
    refuses(&["--origin=https://localhost:7406/"], 1, "https://").await;
    refuses(&[origin, "--max-in-flight=0"], 1, "1 or more").await;
    refuses(&[origin, "--receipt-store-addr=nowhere"], 1, "host:port").await;
    home.write("trust.json", "{");
    refuses(
        &[origin, "--receipt-store-addr=localhost:1"],
        1,
        "trust.json",
    )
    .await;
}
