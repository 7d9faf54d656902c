//! The binary: it starts from its files, ends when told, refuses a shared key, and loses nothing
//! that it acknowledged when it is killed.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::tls::TlsFiles;
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::capture_service_client::CaptureServiceClient;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use cl_wire::vault::v1::{EraseSubjectRequest, ListEventsRequest};
use tempfile::TempDir;

use crate::documents::{SUBJECT, TENANT, batch, item, operation};
use crate::support::{World, channel, trust_file, within};

fn write_secret(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// A home folder with everything that the vault needs.
fn home(world: &World) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let (pki, keys) = (home.path().join("pki"), home.path().join("keys"));
    fs::create_dir_all(&pki).unwrap();
    fs::create_dir_all(&keys).unwrap();
    let files = TlsFiles {
        chain: pki.join("cl-vault.pem"),
        key: pki.join("cl-vault.key"),
        trust: pki.join("ca.pem"),
    };
    world.authority.write("vault/cl-vault", &files);
    fs::write(home.path().join("trust.json"), trust_file().to_string()).unwrap();
    for (name, byte) in [
        ("cl-vault.kek", 1),
        ("cl-vault-data.kek", 2),
        ("vault-alias.key", 3),
        ("subject-tag.key", 4),
    ] {
        write_secret(&keys.join(name), &[byte; 32]);
    }
    home
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

struct Process {
    child: Child,
    listen_addr: String,
}

impl Process {
    fn start(world: &World, home: &Path) -> Self {
        let listen_addr = free_address();
        let receipts = world.receipts_addr();
        let child = Command::new(env!("CARGO_BIN_EXE_cl-vault"))
            .arg(format!("--home={}", home.display()))
            .arg(format!("--listen-addr={listen_addr}"))
            .arg(format!("--admin-addr={}", free_address()))
            .arg(format!(
                "--receipt-store-addr=localhost:{}",
                receipts.port()
            ))
            .arg("--lame-duck-ms=0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, listen_addr }
    }

    async fn ready(&self) {
        within("readiness", async {
            while tokio::net::TcpStream::connect(&self.listen_addr)
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    fn channel(&self, world: &World, path: &str) -> PeerChannel {
        let addr = self.listen_addr.parse().unwrap();
        channel(addr, world.authority.credentials(path), "vault/cl-vault")
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args([signal, &pid]).status();
        assert!(killed.unwrap().success());
    }

    /// Waits on a thread of its own; the exit code and the log.
    async fn ended(self) -> (Option<i32>, String) {
        let child = self.child;
        let wait = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        let output = within("the process's end", wait).await.unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), log)
    }
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let world = World::new().await;
    let home = home(&world);
    let process = Process::start(&world, home.path());
    process.ready().await;
    process.signal("-TERM");
    let (code, log) = process.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(home.path().join("data/cl-vault/keys").is_dir());
    assert!(home.path().join("data/cl-vault/data").is_dir());
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
        write_secret(&home.path().join("keys").join(name), &[byte; 32]);
        let (code, log) = Process::start(&world, home.path()).ended().await;
        assert_eq!(code, Some(1), "{name}");
        assert!(log.contains("hold the same key"), "{log}");
        assert!(!home.path().join("data").exists());
    }
}

#[tokio::test]
async fn refuses_to_start_without_trusted_keys() {
    let world = World::new().await;
    let home = home(&world);
    fs::write(home.path().join("trust.json"), "{}").unwrap();
    let (code, log) = Process::start(&world, home.path()).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("INVALID_TRUST_FILE"), "{log}");
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let world = World::new().await;
    let home = home(&world);
    let mut taken = 0;
    for round in 0..3_u32 {
        let process = Process::start(&world, home.path());
        process.ready().await;
        let mut owner = OwnerServiceClient::new(process.channel(&world, "owner/acme"));
        let list = ListEventsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: SUBJECT.to_owned(),
            page_size: 1,
            page_token: String::new(),
        };
        let listed = within("a list", owner.list_events(list)).await.unwrap();
        assert_eq!(listed.into_inner().total_size, taken);
        let mut capture = CaptureServiceClient::new(process.channel(&world, "vault/cl-capture"));
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
        process.signal("-KILL");
        let (code, _) = process.ended().await;
        assert_eq!(code, None);
    }
    assert_eq!(world.receipts.of("vault.capture").len(), 12);
}

#[tokio::test]
async fn an_erasure_that_was_killed_is_finished_at_the_next_start() {
    let world = World::new().await;
    let home = home(&world);
    let process = Process::start(&world, home.path());
    process.ready().await;
    let mut capture = CaptureServiceClient::new(process.channel(&world, "vault/cl-capture"));
    let message = batch(vec![item("m1", "Launch", &[])], 1);
    within("a capture", capture.capture_events(message))
        .await
        .unwrap();
    // The erasure cannot write its receipt, so it is under way when the process is killed.
    world.receipts.set_append_down(true);
    let mut owner = OwnerServiceClient::new(process.channel(&world, "owner/acme"));
    let erase = EraseSubjectRequest {
        tenant: TENANT.to_owned(),
        subject_ref: SUBJECT.to_owned(),
        operation_id: operation(2),
    };
    within("an erasure", owner.erase_subject(erase.clone()))
        .await
        .unwrap_err();
    process.signal("-KILL");
    process.ended().await;

    world.receipts.set_append_down(false);
    let process = Process::start(&world, home.path());
    process.ready().await;
    let mut owner = OwnerServiceClient::new(process.channel(&world, "owner/acme"));
    let erased = within("an erasure", owner.erase_subject(erase))
        .await
        .unwrap();
    assert_eq!(erased.into_inner().events, 1);
    assert_eq!(world.receipts.of("vault.erase_subject").len(), 1);
    process.signal("-TERM");
    assert_eq!(process.ended().await.0, Some(0));
}
