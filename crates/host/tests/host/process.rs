//! A real process with real signals: the `health_only` example.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tonic_health::pb::health_client::HealthClient;

use crate::pki::{Authority, Folder, credentials, id};
use crate::support::{CLIENT, asking, channel, within};

/// Cargo builds examples along with tests, beside them.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join("health_only")
}

struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

fn start(home: &Path, settings: &[(&str, &str)]) -> Process {
    let mut child = Command::new(example())
        .env_clear()
        .env("CL_HOME", home)
        .env("CL_LISTEN_ADDR", "127.0.0.1:0")
        .env("CL_ADMIN_ADDR", "127.0.0.1:0")
        .env("CL_LAME_DUCK_MS", "0")
        .envs(settings.iter().copied())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap()).lines();
    Process { child, log }
}

impl Process {
    /// The first log line with `message`, as JSON.
    async fn line(&mut self, message: &str) -> serde_json::Value {
        within(message, async {
            loop {
                let line = self.log.next_line().await.unwrap().expect("the log ended");
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                if line["message"] == message {
                    return line;
                }
            }
        })
        .await
    }

    async fn signal(&self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().await;
        assert!(sent.unwrap().success());
    }

    async fn exit_code(&mut self) -> Option<i32> {
        within("the process's end", self.child.wait())
            .await
            .unwrap()
            .code()
    }
}

fn home(authority: &Authority) -> Folder {
    Folder::new(&authority.issue("exchange/health-only"), &authority.pem())
}

#[tokio::test]
async fn serves_until_sigterm_or_sigint() {
    let authority = Authority::new("A");
    let home = home(&authority);
    for signal in ["-TERM", "-INT"] {
        let mut process = start(home.home(), &[]);
        let ready = process.line("ready").await;
        let addr = ready["main_addr"].as_str().unwrap().parse().unwrap();
        let own = credentials(&authority, CLIENT);
        let mut client = HealthClient::new(channel(addr, own, &id("exchange/health-only")));
        within("a call", client.check(asking(""))).await.unwrap();
        process.signal(signal).await;
        process.line("calls ended").await;
        assert_eq!(process.exit_code().await, Some(0), "{signal}");
    }
}

#[tokio::test]
async fn a_second_signal_ends_a_process_that_drains() {
    let authority = Authority::new("A");
    let home = home(&authority);
    let mut process = start(home.home(), &[("CL_DRAIN_DEADLINE_MS", "600000")]);
    let ready = process.line("ready").await;
    let addr = ready["main_addr"].as_str().unwrap().parse().unwrap();
    let own = credentials(&authority, CLIENT);
    let mut client = HealthClient::new(channel(addr, own, &id("exchange/health-only")));
    let mut stream = client.watch(asking("")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());

    process.signal("-TERM").await;
    process.line("SIGTERM").await;
    let waiting = tokio::time::timeout(Duration::from_millis(300), process.child.wait()).await;
    assert!(waiting.is_err(), "the open stream holds the drain");
    process.signal("-TERM").await;
    assert_eq!(process.exit_code().await, Some(130));
}

#[tokio::test]
async fn a_process_that_cannot_start_says_why() {
    let authority = Authority::new("A");
    let home = home(&authority);
    let mut process = start(home.home(), &[("CL_LISTEN_ADDR", "nowhere")]);
    assert_eq!(process.exit_code().await, Some(2));

    std::fs::remove_file(home.files().key).unwrap();
    let mut process = start(home.home(), &[]);
    let failed = process.line("process failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("health-only.key"), "{error}");
    assert_eq!(process.exit_code().await, Some(1));
}
