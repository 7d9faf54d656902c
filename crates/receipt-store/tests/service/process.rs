//! The real binary on the real engine.

use std::path::Path;

use cl_testbed::{Authority, Program, within};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{Client, READERS, STORE, WRITERS, client};

/// A home folder that outlives its processes.
pub(crate) struct Home {
    home: cl_testbed::Home,
    pub(crate) authority: Authority,
    /// The public half of the key of its logs.
    pub(crate) log_key: [u8; 32],
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    /// A home in this folder.
    pub(crate) fn on(dir: TempDir) -> Self {
        let authority = Authority::new();
        let home = cl_testbed::Home::on(dir, &authority, STORE);
        home.write_key("cl-receipt-store.kek", &[5; 32]);
        let log_key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        home.write_key("receipts.pem", log_key.as_ref());
        home.write("receipt-writers.json", WRITERS);
        home.write("receipt-readers.json", READERS);
        let pair = Ed25519KeyPair::from_pkcs8(log_key.as_ref()).unwrap();
        Self {
            home,
            authority,
            log_key: pair.public_key().as_ref().try_into().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Its process, with settings from the environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cl-receipt-store"));
        command
            .env_clear()
            .env("CL_HOME", self.path())
            .env("CL_LISTEN_ADDR", "127.0.0.1:0")
            .env("CL_ADMIN_ADDR", "127.0.0.1:0")
            .env("CL_LAME_DUCK_MS", "0")
            .env("CL_LOG_FILTER", "trace")
            .kill_on_drop(true);
        let policy = self.path().join("witnesses.policy");
        if policy.exists() {
            command.env("CL_WITNESS_POLICY", policy);
        }
        command
    }

    /// Starts the process and waits until it is ready.
    pub(crate) async fn start(&self) -> Program {
        let mut process = Program::spawn(self.command());
        process.ready().await;
        process
    }

    pub(crate) fn client(&self, process: &Program, path: &str) -> Client {
        client(&self.authority, process.addr(), path)
    }
}

#[tokio::test]
async fn refuses_settings_that_are_wrong() {
    let home = Home::new();
    let inside = home.path().join("data/cl-receipt-store/pins");
    let mut command = home.command();
    let output = within("an end", command.env("CL_PIN_DIR", inside).output());
    let log = String::from_utf8(output.await.unwrap().stderr).unwrap();
    assert!(log.contains("the pin folder must not be in"), "{log}");
    for (file, content, says) in [
        ("receipt-writers.json", "{}", "writers table"),
        ("receipt-readers.json", "{}", "readers table"),
        ("keys/cl-receipt-store.kek", "short", "INVALID_KEY_MATERIAL"),
        ("keys/receipts.pem", "short", "INVALID_KEY_MATERIAL"),
    ] {
        let home = Home::new();
        std::fs::write(home.path().join(file), content).unwrap();
        let output = within("an end", home.command().output()).await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains(says), "{log}");
    }
}
