//! The real binary on the real engine.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::pki::Authority;
use crate::support::{Client, READERS, STORE, WRITERS, client, within};

/// A home folder that outlives its processes.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
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
        authority.write(dir.path(), STORE);
        let keys = dir.path().join("keys");
        fs::create_dir(&keys).unwrap();
        let kek = keys.join("cl-receipt-store.kek");
        fs::write(&kek, [5; 32]).unwrap();
        fs::set_permissions(&kek, Permissions::from_mode(0o600)).unwrap();
        let log_key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let log_key_path = keys.join("receipts.pem");
        fs::write(&log_key_path, log_key.as_ref()).unwrap();
        fs::set_permissions(&log_key_path, Permissions::from_mode(0o600)).unwrap();
        fs::write(dir.path().join("receipt-writers.json"), WRITERS).unwrap();
        fs::write(dir.path().join("receipt-readers.json"), READERS).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(log_key.as_ref()).unwrap();
        Self {
            dir,
            authority,
            log_key: pair.public_key().as_ref().try_into().unwrap(),
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cl-receipt-store"));
        command
            .env_clear()
            .env("CL_HOME", self.dir.path())
            .env("CL_LISTEN_ADDR", "127.0.0.1:0")
            .env("CL_ADMIN_ADDR", "127.0.0.1:0")
            .env("CL_LAME_DUCK_MS", "0")
            .env("CL_LOG_FILTER", "trace")
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let policy = self.dir.path().join("witnesses.policy");
        if policy.exists() {
            command.env("CL_WITNESS_POLICY", policy);
        }
        command
    }

    /// Starts the process and waits until it is ready.
    pub(crate) async fn start(&self) -> Process {
        let mut child = self.command().spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&log);
        let (ready, told) = oneshot::channel();
        let reading = tokio::spawn(async move {
            let mut ready = Some(ready);
            while let Some(line) = lines.next_line().await.unwrap() {
                written.lock().unwrap().push_str(&(line.clone() + "\n"));
                let parsed: Value = serde_json::from_str(&line).unwrap_or_default();
                if parsed["message"] == "ready" {
                    let addr = |name: &str| parsed[name].as_str().unwrap().parse().unwrap();
                    let addrs: (SocketAddr, SocketAddr) = (addr("main_addr"), addr("admin_addr"));
                    ready.take().unwrap().send(addrs).unwrap();
                }
            }
        });
        let told = within("a start", told).await;
        let (addr, admin_addr) = told.unwrap_or_else(|_| panic!("{}", log.lock().unwrap()));
        Process {
            child,
            addr,
            admin_addr,
            log,
            reading,
        }
    }

    pub(crate) fn client(&self, process: &Process, path: &str) -> Client {
        client(&self.authority, process.addr, path)
    }
}

pub(crate) struct Process {
    child: Child,
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    log: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

impl Process {
    /// Ends it with SIGKILL.
    pub(crate) async fn kill(mut self) {
        within("a kill", self.child.kill()).await.unwrap();
    }

    /// Ends it with SIGTERM: its exit code, and all that it logged.
    pub(crate) async fn terminate(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(sent.unwrap().success());
        let status = within("an end", self.child.wait()).await.unwrap();
        within("the log's end", self.reading).await.unwrap();
        let log = self.log.lock().unwrap().clone();
        (status.code(), log)
    }
}

#[tokio::test]
async fn refuses_settings_that_are_wrong() {
    let home = Home::new();
    let inside = home.dir.path().join("data/cl-receipt-store/pins");
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
        fs::write(home.dir.path().join(file), content).unwrap();
        let output = within("an end", home.command().output()).await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains(says), "{log}");
    }
}
