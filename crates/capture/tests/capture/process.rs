//! The command as operators run it.

use std::process::Output;

use cl_testbed::Home;
use tokio::process::Command;

use crate::support::{OWNER, World, fixtures};

async fn capture(world: &World, arguments: &[&str]) -> Output {
    let home = Home::new(&world.authority, "vault/cl-capture");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cl-capture"));
    command
        .arg("mail")
        .args(arguments)
        .args(["--tenant", "acme", "--owner-address", OWNER])
        .args(["--vault-addr", &world.addr.to_string()])
        .arg("--home")
        .arg(home.path());
    command.output().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_as_a_table_and_as_json_with_exit_codes() {
    let world = World::new().await;
    let mbox = fixtures().join("lantern.mbox");
    let done = capture(&world, &[mbox.to_str().unwrap()]).await;
    let table = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{table}");
    assert!(table.starts_with("captured"), "{table}");
    assert!(done.stderr.is_empty(), "progress is for terminals");

    let again = capture(&world, &[mbox.to_str().unwrap(), "--json"]).await;
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        (&report["captured"], &report["duplicates"]),
        (&0.into(), &44.into())
    );

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.eml"), "").unwrap();
    let refused = capture(&world, &[folder.path().to_str().unwrap()]).await;
    assert_eq!(refused.status.code(), Some(3));

    let missing = capture(&world, &["/nowhere/at/all"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        String::from_utf8(missing.stderr)
            .unwrap()
            .contains("cannot open the path")
    );

    let wrong = capture(&world, &[]).await;
    assert_eq!(wrong.status.code(), Some(2));
}
