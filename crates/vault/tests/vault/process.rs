//! The binary: it starts from its files, ends when told, refuses a shared key, and loses nothing
//! that it acknowledged when it is killed.

use cl_host::client::PeerChannel;
use cl_testbed::{Home, Program, channel, within};
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::capture_service_client::CaptureServiceClient;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use cl_wire::vault::v1::{EraseSubjectRequest, ListEventsRequest};

use crate::documents::{SUBJECT, TENANT, batch, item, operation};
use crate::support::{World, trust_file};

/// A home folder with everything that the vault needs.
fn home(world: &World) -> Home {
    let home = Home::new(&world.authority, "vault/cl-vault");
    home.write("trust.json", trust_file().to_string());
    for (name, byte) in [
        ("cl-vault.kek", 1),
        ("cl-vault-data.kek", 2),
        ("vault-alias.key", 3),
        ("subject-tag.key", 4),
    ] {
        home.write_key(name, &[byte; 32]);
    }
    home
}

fn start(world: &World, home: &Home) -> Program {
    let receipts = format!(
        "--receipt-store-addr=localhost:{}",
        world.receipts_addr().port()
    );
    Program::start(env!("CARGO_BIN_EXE_cl-vault"), home.path(), &[&receipts])
}

async fn ready(world: &World, home: &Home) -> Program {
    let mut process = start(world, home);
    process.ready().await;
    process
}

fn to(process: &Program, world: &World, path: &str) -> PeerChannel {
    let credentials = world.authority.credentials(path);
    channel(process.addr(), credentials, "vault/cl-vault")
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let world = World::new().await;
    let home = home(&world);
    let process = ready(&world, &home).await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(home.join("data/cl-vault/keys").is_dir());
    assert!(home.join("data/cl-vault/data").is_dir());
}

#[tokio::test]
async fn refuses_to_start_with_a_shared_key() {
    let world = World::new().await;
    for (name, byte) in [
        ("cl-vault.kek", 2),
        ("cl-vault-data.kek", 3),
        ("vault-alias.key", 4),
        ("subject-tag.key", 1),
    ] {
        let home = home(&world);
        home.write_key(name, &[byte; 32]);
        let (code, log) = start(&world, &home).ended().await;
        assert_eq!(code, Some(1), "{name}");
        assert!(log.contains("hold the same key"), "{log}");
        assert!(!home.join("data").exists());
    }
}

#[tokio::test]
async fn refuses_to_start_without_trusted_keys() {
    let world = World::new().await;
    let home = home(&world);
    home.write("trust.json", "{}");
    let (code, log) = start(&world, &home).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("INVALID_TRUST_FILE"), "{log}");
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let world = World::new().await;
    let home = home(&world);
    let mut taken = 0;
    for round in 0..3_u32 {
        let process = ready(&world, &home).await;
        let mut owner = OwnerServiceClient::new(to(&process, &world, "owner/acme"));
        let list = ListEventsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            page_size: 1,
            page_token: String::new(),
        };
        let listed = within("a list", owner.list_events(list)).await.unwrap();
        assert_eq!(listed.into_inner().total_size, taken);
        let mut capture = CaptureServiceClient::new(to(&process, &world, "vault/cl-capture"));
        for number in 0..4 {
            let message = batch(
                vec![item(&format!("m{taken}"), "Launch", &[])],
                round * 4 + number,
            );
            let answer = within("a capture", capture.capture_events(message)).await;
            let outcomes = answer.unwrap().into_inner().outcomes;
            let outcome = outcomes[0].result.clone().unwrap();
            assert!(matches!(outcome, CaptureResult::Captured(_)), "{outcome:?}");
            taken += 1;
        }
        process.kill().await;
    }
    assert_eq!(world.receipts.of("vault.capture").len(), 12);
}

#[tokio::test]
async fn an_erasure_that_was_killed_is_finished_at_the_next_start() {
    let world = World::new().await;
    let home = home(&world);
    let process = ready(&world, &home).await;
    let mut capture = CaptureServiceClient::new(to(&process, &world, "vault/cl-capture"));
    let message = batch(vec![item("m1", "Launch", &[])], 1);
    within("a capture", capture.capture_events(message))
        .await
        .unwrap();
    // The erasure cannot write its receipt, so it is under way when the process is killed.
    world.receipts.set_append_down(true);
    let mut owner = OwnerServiceClient::new(to(&process, &world, "owner/acme"));
    let erase = EraseSubjectRequest {
        tenant: TENANT.to_owned(),
        subject_ref: SUBJECT.to_owned(),
        operation_id: operation(2),
    };
    within("an erasure", owner.erase_subject(erase.clone()))
        .await
        .unwrap_err();
    process.kill().await;

    world.receipts.set_append_down(false);
    let process = ready(&world, &home).await;
    let mut owner = OwnerServiceClient::new(to(&process, &world, "owner/acme"));
    let erased = within("an erasure", owner.erase_subject(erase))
        .await
        .unwrap();
    assert_eq!(erased.into_inner().events, 1);
    assert_eq!(world.receipts.of("vault.erase_subject").len(), 1);
    assert_eq!(process.end().await.0, Some(0));
}
