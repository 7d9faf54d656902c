//! A program as operators run it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::wait::within;

/// A process of its own, which ends with the test in any case.
#[derive(Debug)]
pub struct Program {
    child: Child,
    log: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
    told: oneshot::Receiver<(SocketAddr, SocketAddr)>,
    at: Option<(SocketAddr, SocketAddr)>,
}

impl Program {
    /// Starts a program on free ports and a home folder, without a lame duck.
    pub fn start(program: &str, home: &Path, settings: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .env_clear()
            .arg(format!("--home={}", home.display()))
            .arg("--listen-addr=127.0.0.1:0")
            .arg("--admin-addr=127.0.0.1:0")
            .arg("--lame-duck-ms=0")
            .args(settings);
        Self::spawn(command)
    }

    /// Starts a command whose log is on stderr.
    pub fn spawn(mut command: Command) -> Self {
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&log);
        let (tell, told) = oneshot::channel();
        let reading = tokio::spawn(async move {
            let mut tell = Some(tell);
            while let Some(line) = lines.next_line().await.unwrap() {
                written.lock().unwrap().push_str(&format!("{line}\n"));
                if let Some(addrs) = ready_at(&line)
                    && let Some(tell) = tell.take()
                {
                    // Nobody may be waiting for it.
                    let _told = tell.send(addrs);
                }
            }
        });
        Self {
            child,
            log,
            reading,
            told,
            at: None,
        }
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&mut self) {
        let told = within("readiness", &mut self.told).await;
        let told = told.unwrap_or_else(|_| panic!("{}", self.log.lock().unwrap()));
        self.at = Some(told);
    }

    /// Where it serves, once it is ready.
    pub fn addr(&self) -> SocketAddr {
        self.at.unwrap().0
    }

    /// Where it answers probes, once it is ready.
    pub fn admin_addr(&self) -> SocketAddr {
        self.at.unwrap().1
    }

    /// Sends it a signal such as `-TERM`.
    pub async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().await;
        assert!(sent.unwrap().success());
    }

    /// Kills it, as `kill -9` does.
    pub async fn kill(mut self) {
        within("a kill", self.child.kill()).await.unwrap();
    }

    /// Waits until it ends by itself: its exit code, and all that it logged.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = within("the process's end", self.child.wait()).await;
        within("the log's end", self.reading).await.unwrap();
        let log = self.log.lock().unwrap().clone();
        (status.unwrap().code(), log)
    }

    /// Tells it to end, and waits until it has.
    pub async fn end(self) -> (Option<i32>, String) {
        self.signal("-TERM").await;
        self.ended().await
    }
}

/// The addresses in the line by which a process says that it is ready.
fn ready_at(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line["message"] != "ready" {
        return None;
    }
    let addr = |name: &str| line[name].as_str()?.parse().ok();
    Some((addr("main_addr")?, addr("admin_addr")?))
}
