//! Homes, calls of the program, and processes that are stopped in any case.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Far more than anything here takes.
const HANG: Duration = Duration::from_secs(120);

pub(crate) const CLCTL: &str = env!("CARGO_BIN_EXE_clctl");

/// The processes of a deployment, in the order of their start.
pub(crate) const PROGRAMS: [&str; 7] = [
    "cl-receipt-store",
    "cl-vault",
    "cl-semantic-proxy",
    "cl-bundle-issuer",
    "cl-policy-engine",
    "cl-gateway",
    "cl-console",
];

/// The program that `clctl capture` becomes.
const CAPTURE: &str = "cl-capture";

/// Waits for something that no event tells.
pub(crate) fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "tests wait in real time")]
    let now = SystemTime::now;
    let deadline = now() + HANG;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A folder with a home in it.
pub(crate) struct TestHome {
    folder: TempDir,
}

impl TestHome {
    /// One that nobody made yet.
    pub(crate) fn missing() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn new() -> Self {
        let home = Self::missing();
        home.ok(&["init"]);
        home
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn example(&self, name: &str) -> String {
        let path = self.path(&format!("examples/{name}.json"));
        path.display().to_string()
    }

    /// A path beside the home.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A file beside the home.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.beside(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(CLCTL);
        command
            .env_clear()
            .arg("--home")
            .arg(self.root())
            .args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        Answer::of(&self.command(args).output().unwrap())
    }

    /// What a command says that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let answer = self.run(args);
        assert_eq!(answer.code, Some(0), "{args:?}: {}", answer.stderr);
        answer.stdout
    }

    /// The same as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        serde_json::from_str(&self.ok(&args)).unwrap()
    }

    /// The exit code and the error code of a command that must fail.
    pub(crate) fn failure(&self, args: &[&str]) -> (i32, String) {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        let answer = self.run(&args);
        let error: Value = serde_json::from_str(&answer.stderr)
            .unwrap_or_else(|_| panic!("{args:?}: {} {}", answer.stdout, answer.stderr));
        let code = error["error"]["code"].as_str().unwrap().to_owned();
        (answer.code.unwrap(), code)
    }

    /// Runs a command whose certificate the peer refuses.
    ///
    /// In TLS 1.3 the refusal is a last word on a connection that the peer then closes; when it
    /// comes after what the client sent meanwhile was thrown away, it is lost.
    pub(crate) fn certificate_is_refused(&self, args: &[&str]) {
        until("refusal", || match self.failure(args) {
            (1, code) if code == "OWN_CERTIFICATE_REFUSED" => Some(()),
            (3, code) if code == "PEER_UNREACHABLE" => None,
            other => panic!("{other:?}"),
        });
    }

    /// Starts everything and waits until it is ready.
    pub(crate) fn up(&self) -> Up {
        let up = self.start(&["--base-port=0"]);
        up.wait_until_ready(self);
        up
    }

    pub(crate) fn start(&self, args: &[&str]) -> Up {
        build_programs();
        let file = |name: &str| File::create(self.folder.path().join(name)).unwrap();
        let child = self
            .command(&["up"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(file("up.out"))
            .stderr(file("up.err"))
            .spawn()
            .unwrap();
        Up {
            child,
            errors: self.folder.path().join("up.err"),
        }
    }

    pub(crate) fn endpoints(&self) -> Option<Value> {
        let bytes = fs::read(self.path("run/endpoints.json")).ok()?;
        // It appears whole, so it always parses.
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    pub(crate) fn pid_of(&self, process: &str) -> i32 {
        let endpoints = self.endpoints().unwrap();
        let pid = &endpoints["processes"][process]["pid"];
        pid.as_i64().unwrap().try_into().unwrap()
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }
}

/// A `clctl up` that runs.
pub(crate) struct Up {
    child: Child,
    errors: PathBuf,
}

impl Up {
    pub(crate) fn wait_until_ready(&self, home: &TestHome) {
        until("readiness", || {
            let ended = !is_alive(self.pid());
            assert!(!ended, "{}", self.errors());
            home.endpoints()
        });
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for its end; the exit status and what it said.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = until("end of clctl up", || self.child.try_wait().unwrap());
        (status, self.errors())
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.signal(Signal::TERM);
            let _ended = self.child.wait();
        }
    }
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The access rights of a file or folder.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Whether the process exists and is more than an entry that waits for its parent.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| state != "Z")
}

/// The services are crates of their own: built here where the workspace's build did not.
fn build_programs() {
    static BUILT: Once = Once::new();

    let folder = Path::new(CLCTL).parent().unwrap();
    let is_missing = |program: &&str| !folder.join(program).is_file();
    BUILT.call_once(|| {
        let programs = PROGRAMS.into_iter().chain([CAPTURE]);
        let missing: Vec<_> = programs.filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--bins"]);
        // `<target>/<profile>/clctl`.
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        for program in missing {
            cargo.args(["--package", program]);
        }
        assert!(cargo.status().unwrap().success());
    });
}
