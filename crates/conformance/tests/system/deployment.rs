//! A deployment of real processes on loopback, each of which can be killed and started again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::{ClientLimits, PeerChannel, Target};
use cl_host::clock::SystemClock;
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_wire::exchange::v1::exchange_service_client::ExchangeServiceClient;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more than anything here takes; only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(180);

pub(crate) const RECEIPT_STORE: &str = "cl-receipt-store";
pub(crate) const VAULT: &str = "cl-vault";
pub(crate) const SEMANTIC_PROXY: &str = "cl-semantic-proxy";
pub(crate) const BUNDLE_ISSUER: &str = "cl-bundle-issuer";
pub(crate) const POLICY_ENGINE: &str = "cl-policy-engine";
pub(crate) const GATEWAY: &str = "cl-gateway";

/// In the order of their start, with their zones.
pub(crate) const PROCESSES: [(&str, &str); 6] = [
    (RECEIPT_STORE, "exchange"),
    (VAULT, "vault"),
    (SEMANTIC_PROXY, "exchange"),
    (BUNDLE_ISSUER, "exchange"),
    (POLICY_ENGINE, "exchange"),
    (GATEWAY, "edge"),
];

/// Started by the tests that are about it.
pub(crate) const CONSOLE: &str = "cl-console";

const TRUST_DOMAIN: &str = "context-layer.local";

/// Looks again and again until there is something.
pub(crate) async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let found = tokio::time::timeout(HANG, async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    match found.await {
        Ok(found) => found,
        Err(_) => panic!("hangs: {what}"),
    }
}

/// A home with its processes.
pub(crate) struct Deployment {
    folder: TempDir,
    addrs: BTreeMap<&'static str, [SocketAddr; 2]>,
    children: BTreeMap<&'static str, Child>,
    log_filter: &'static str,
}

impl Deployment {
    /// Makes a home, starts all processes, and activates the home's first policy.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// The same after a change of the first policy.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Value)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), "debug", change).await
    }

    /// The same in a folder, with processes that log this much.
    pub(crate) async fn start_in(
        folder: TempDir,
        log_filter: &'static str,
        change: impl FnOnce(&mut Value),
    ) -> Self {
        check_programs();
        // Held until all ports are known, so that they are distinct.
        let names = PROCESSES.map(|(name, _)| name).into_iter().chain([CONSOLE]);
        let bound: Vec<_> = names.map(|name| (name, [listener(), listener()])).collect();
        let addrs = bound.iter().map(|(name, ports)| {
            let addrs = ports.each_ref().map(|port| port.local_addr().unwrap());
            (*name, addrs)
        });
        let mut deployment = Self {
            addrs: addrs.collect(),
            children: BTreeMap::new(),
            folder,
            log_filter,
        };
        drop(bound);
        deployment.clctl(&["init"]);
        for (name, _) in PROCESSES {
            deployment.run(name).await;
        }
        deployment.write_endpoints();
        let policy = deployment.home().join("policy/default.json");
        let mut snapshot: Value = serde_json::from_slice(&fs::read(&policy).unwrap()).unwrap();
        change(&mut snapshot);
        fs::write(&policy, snapshot.to_string()).unwrap();
        let put = deployment.clctl(&["policy", "put", &policy.display().to_string()]);
        let digest = put["digest"].as_str().unwrap().to_owned();
        deployment.clctl(&["policy", "activate", &digest]);
        deployment
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Starts a process and waits until it is ready.
    pub(crate) async fn run(&mut self, name: &'static str) {
        let home = self.home();
        let [addr, admin] = self.addrs[name];
        let log = File::options()
            .create(true)
            .append(true)
            .open(home.join("logs").join(format!("{name}.log")))
            .unwrap();
        let mut command = Command::new(programs().join(name));
        command
            .env_clear()
            .arg("--home")
            .arg(&home)
            .arg(format!("--listen-addr={addr}"))
            .arg(format!("--admin-addr={admin}"))
            .args(["--log-filter", self.log_filter, "--lame-duck-ms=0"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        for (flag, peer) in peers(name) {
            command.arg(format!("{flag}={}", self.addrs[peer][0]));
        }
        if name == POLICY_ENGINE {
            command.arg(format!("--passkey-origin={}", self.console_url()));
        }
        if name == CONSOLE {
            command.arg(format!("--origin={}", self.console_url()));
        }
        if name == GATEWAY {
            let tokens = fs::read(home.join("token-issuer.json")).unwrap();
            let tokens: Value = serde_json::from_slice(&tokens).unwrap();
            command
                .args(["--token-issuer", tokens["issuer"].as_str().unwrap()])
                .args(["--token-audience", tokens["audience"].as_str().unwrap()]);
        }
        let child = command.spawn().unwrap();
        assert!(self.children.insert(name, child).is_none(), "{name} runs");
        until(name, async || {
            let answer = http_get(admin, "/readyz")?;
            answer.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }

    /// Ends a process as a power cut would.
    pub(crate) fn kill(&mut self, name: &'static str) {
        let mut child = self.children.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Runs `clctl`, which must succeed.
    pub(crate) fn clctl(&self, args: &[&str]) -> Value {
        let (code, answer) = self.try_clctl(args);
        assert_eq!(code, Some(0), "{args:?}: {answer}");
        answer
    }

    /// Runs `clctl`: its exit code, and what it wrote.
    pub(crate) fn try_clctl(&self, args: &[&str]) -> (Option<i32>, Value) {
        let output = Command::new(programs().join("clctl"))
            .env_clear()
            .arg("--home")
            .arg(self.home())
            .arg("--json")
            .args(args)
            .output()
            .unwrap();
        let text = match output.status.success() {
            true => &output.stdout,
            false => &output.stderr,
        };
        let answer = serde_json::from_slice(text)
            .unwrap_or_else(|_| panic!("{args:?}: {}", String::from_utf8_lossy(text)));
        (output.status.code(), answer)
    }

    /// All receipts of the tenant.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        let listed = self.clctl(&["receipts", "list", "--limit", "1000"]);
        let receipts = listed["receipts"].as_array().unwrap();
        let total = listed["total"].as_u64().unwrap();
        assert_eq!(u64::try_from(receipts.len()).unwrap(), total);
        receipts.clone()
    }

    /// The exchange, as the home's client with a certificate sees it.
    pub(crate) fn exchange(&self) -> ExchangeServiceClient<PeerChannel> {
        ExchangeServiceClient::new(self.channel(GATEWAY, self.credentials("client")))
    }

    /// The certificate and key of an owner of the home.
    pub(crate) fn credentials(&self, owner: &str) -> Arc<Credentials> {
        let pki = self.home().join("pki");
        let files = TlsFiles {
            chain: pki.join(format!("{owner}.pem")),
            key: pki.join(format!("{owner}.key")),
            trust: pki.join("ca.pem"),
        };
        Credentials::load(files, ServerTls::INTERNAL, Arc::new(SystemClock)).unwrap()
    }

    /// A connection to a process.
    pub(crate) fn channel(&self, name: &str, credentials: Arc<Credentials>) -> PeerChannel {
        let (_, zone) = PROCESSES.iter().find(|(other, _)| *other == name).unwrap();
        let target = Target {
            address: self.addrs[name][0].to_string(),
            id: format!("spiffe://{TRUST_DOMAIN}/{zone}/{name}")
                .parse()
                .unwrap(),
        };
        let limits = ClientLimits {
            default_deadline: HANG,
            ..ClientLimits::default()
        };
        PeerChannel::new(target, credentials, limits).unwrap()
    }

    /// The process's id.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        self.children[name].id()
    }

    /// What a process tells operators about itself.
    pub(crate) fn metrics(&self, name: &str) -> String {
        http_get(self.addrs[name][1], "/metrics").unwrap()
    }

    /// The URL of the gateway.
    pub(crate) fn gateway_url(&self) -> String {
        format!("https://{}", self.addrs[GATEWAY][0])
    }

    /// Where browsers find the console.
    pub(crate) fn console_url(&self) -> String {
        format!("https://localhost:{}", self.addrs[CONSOLE][0].port())
    }

    /// A request of the home's client, with an id of its own.
    pub(crate) fn request(&self, id: &str) -> Value {
        let example = self.home().join("examples/request-mtls.json");
        let mut request: Value = serde_json::from_slice(&fs::read(example).unwrap()).unwrap();
        request["id"] = json!(format!("urn:cl:request:{id}"));
        request
    }

    fn write_endpoints(&self) {
        let processes = self.children.keys().map(|name| {
            let [addr, admin] = self.addrs[name];
            let endpoint = json!({
                "addr": addr.to_string(),
                "admin_addr": admin.to_string(),
                "pid": self.pid(name),
            });
            ((*name).to_owned(), endpoint)
        });
        let endpoints = json!({
            "endpoints_version": 1,
            "ready_at": "2030-01-01T00:00:00.000Z",
            "processes": processes.collect::<serde_json::Map<_, _>>(),
            "gateway_url": self.gateway_url(),
        });
        let run = self.home().join("run");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("endpoints.json"), endpoints.to_string()).unwrap();
    }
}

/// The peers that a process is told of.
fn peers(name: &str) -> &'static [(&'static str, &'static str)] {
    const TO_RECEIPTS: (&str, &str) = ("--receipt-store-addr", RECEIPT_STORE);
    const TO_ISSUER: (&str, &str) = ("--bundle-issuer-addr", BUNDLE_ISSUER);
    const TO_VAULT: (&str, &str) = ("--vault-addr", VAULT);

    match name {
        VAULT => &[TO_RECEIPTS, TO_ISSUER],
        SEMANTIC_PROXY => &[TO_RECEIPTS, TO_VAULT],
        BUNDLE_ISSUER => &[TO_RECEIPTS, ("--semantic-proxy-addr", SEMANTIC_PROXY)],
        POLICY_ENGINE => &[TO_RECEIPTS, TO_ISSUER],
        CONSOLE => &[("--policy-engine-addr", POLICY_ENGINE), TO_RECEIPTS],
        GATEWAY => &[
            ("--policy-engine-addr", POLICY_ENGINE),
            TO_RECEIPTS,
            TO_ISSUER,
            TO_VAULT,
        ],
        _ => &[],
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn http_get(addr: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(HANG)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Where the workspace's programs are: beside the folder of this test.
pub(crate) fn programs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.to_owned()
}

/// The workspace's programs are built by its test run.
fn check_programs() {
    let names = PROCESSES.iter().map(|(name, _)| *name);
    let mut names = names.chain([CONSOLE, "clctl"]);
    let is_missing = |name: &str| !programs().join(name).is_file();
    let missing = names.find(|name| is_missing(name));
    assert_eq!(
        missing, None,
        "build it first: cargo test --workspace --no-run"
    );
}
