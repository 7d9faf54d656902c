//! What `clctl init` makes, and what it refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use cl_host::clock::{Clock, SystemClock};
use cl_host::tls::{Credentials, ServerTls, TlsFiles};
use cl_model::time::UnixTime;
use cl_model::trust::TrustFile;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::support::{Answer, CLCTL, TestHome};

/// Every file and folder below, with its mode.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(modes(&path));
        }
        found.push((
            path.display().to_string(),
            metadata.permissions().mode() & 0o7777,
        ));
    }
    found.sort();
    found
}

fn check_modes(home: &TestHome) {
    let all = modes(&home.root());
    assert!(all.len() > 30, "{all:?}");
    for (path, mode) in all {
        let is_secret =
            [".key", ".kek"].iter().any(|end| path.ends_with(end)) || path.contains("/keys/");
        let expected = match fs::metadata(&path).unwrap().is_dir() {
            true => 0o700,
            false if is_secret => 0o600,
            false => 0o644,
        };
        assert_eq!(mode, expected, "{path}");
    }
    let root = fs::metadata(home.root()).unwrap().permissions().mode();
    assert_eq!(root & 0o7777, 0o700);
}

#[test]
fn only_the_owner_can_read_secrets_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let home = TestHome::missing();
        let root = home.root();
        let script = format!("umask {umask}; exec {CLCTL} --home {} init", root.display());
        let output = Command::new("/bin/sh").args(["-c", &script]).output();
        let answer = Answer::of(&output.unwrap());
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        check_modes(&home);
    }
}

#[test]
fn an_empty_folder_becomes_a_home() {
    let home = TestHome::missing();
    fs::create_dir(home.root()).unwrap();
    home.ok(&["init"]);
    check_modes(&home);
}

#[test]
fn a_home_is_never_made_again() {
    let home = TestHome::new();
    let before = contents(&home.root());
    assert_eq!(home.failure(&["init"]), (1, "HOME_NOT_EMPTY".to_owned()));
    assert_eq!(contents(&home.root()), before);
}

#[test]
fn a_folder_with_other_things_is_left_alone() {
    let home = TestHome::missing();
    fs::create_dir(home.root()).unwrap();
    fs::write(home.path("notes.txt"), "mine").unwrap();
    assert_eq!(home.failure(&["init"]), (1, "HOME_NOT_EMPTY".to_owned()));
    assert_eq!(contents(&home.root()).len(), 1);
}

#[test]
fn two_at_once_make_at_most_one_home() {
    let home = TestHome::missing();
    let start = || {
        home.command(&["init"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let made = both.iter().filter(|output| output.status.success()).count();
    assert!(made <= 1);
    if made == 1 {
        check_modes(&home);
        load_all(&home);
    }
}

/// Each file's path and bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = modes(folder).into_iter().map(|(path, _)| path);
    files
        .filter(|path| Path::new(path).is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// The id of every certificate, as the services load them.
fn load_all(home: &TestHome) -> Vec<String> {
    [
        "auditor",
        "cl-bundle-issuer",
        "cl-capture",
        "cl-console",
        "cl-gateway",
        "cl-policy-engine",
        "cl-receipt-store",
        "cl-semantic-proxy",
        "cl-vault",
        "client",
        "operator",
        "owner",
    ]
    .into_iter()
    .map(|owner| {
        let files = TlsFiles {
            chain: home.path(&format!("pki/{owner}.pem")),
            key: home.path(&format!("pki/{owner}.key")),
            trust: home.path("pki/ca.pem"),
        };
        let clock = std::sync::Arc::new(SystemClock);
        let loaded = Credentials::load(files, ServerTls::INTERNAL, clock).unwrap();
        loaded.own().id.to_string()
    })
    .collect()
}

#[test]
fn each_owner_has_a_certificate_of_the_trust_domain() {
    let home = TestHome::missing();
    home.ok(&["init", "--trust-domain", "example.org"]);
    let ids = load_all(&home);
    let expected = [
        "auditor/clctl",
        "exchange/cl-bundle-issuer",
        "vault/cl-capture",
        "edge/cl-console",
        "edge/cl-gateway",
        "exchange/cl-policy-engine",
        "exchange/cl-receipt-store",
        "exchange/cl-semantic-proxy",
        "vault/cl-vault",
        "client/default/demo",
        "operator/clctl",
        "owner/default",
    ];
    assert_eq!(
        ids,
        expected.map(|path| format!("spiffe://example.org/{path}"))
    );
}

#[test]
fn certificates_are_renewed_for_the_same_owners() {
    let home = TestHome::missing();
    home.ok(&["init", "--trust-domain", "example.org"]);
    let authority = fs::read(home.path("pki/ca.pem")).unwrap();
    let (ids, chain) = (load_all(&home), home.path("pki/operator.pem"));
    let before = fs::read(&chain).unwrap();
    home.ok(&["certificates", "renew"]);
    assert_eq!(load_all(&home), ids);
    assert_ne!(fs::read(&chain).unwrap(), before);
    assert_eq!(fs::read(home.path("pki/ca.pem")).unwrap(), authority);
    check_modes(&home);
}

#[test]
fn refuses_what_is_no_trust_domain() {
    let home = TestHome::missing();
    for bad in ["", "A.b", "a/b", "a b", &"a".repeat(256)] {
        let refused = home.failure(&["init", "--trust-domain", bad]);
        assert_eq!(refused, (2, "TRUST_DOMAIN_INVALID".to_owned()), "{bad}");
        assert!(!home.root().exists());
    }
}

fn document(home: &TestHome, name: &str) -> Value {
    serde_json::from_slice(&fs::read(home.path(name)).unwrap()).unwrap()
}

#[test]
fn published_keys_are_the_public_halves() {
    let home = TestHome::new();
    for (purpose, file, place) in [
        ("decision", "trust.json", 0),
        ("bundle", "trust.json", 1),
        ("notes", "trust.json", 2),
        ("receipts", "trust.json", 3),
        ("policy-snapshot", "trust.json", 4),
        ("token", "jwks.json", 0),
    ] {
        let pem = fs::read(home.path(&format!("keys/{purpose}.pem"))).unwrap();
        let document_of = PrivatePkcs8KeyDer::from_pem_slice(&pem).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document_of.secret_pkcs8_der()).unwrap();
        let public = pair.public_key().as_ref();
        let published = &document(&home, file)["keys"][place];
        assert_eq!(published["x"], BASE64URL_NOPAD.encode(public).as_str());
        let tail = HEXLOWER.encode(digest(&SHA256, public).as_ref());
        let kid = format!("urn:cl:key:{purpose}:{tail}");
        assert_eq!(published["kid"], kid.as_str());
    }
    let trust = fs::read(home.path("trust.json")).unwrap();
    let (trusted, now) = (TrustFile::parse(&trust).unwrap(), now());
    for purpose in ["decision", "bundle", "notes", "receipts", "policy-snapshot"] {
        assert_eq!(trusted.public_keys(purpose, now).count(), 1, "{purpose}");
    }
    assert_eq!(document(&home, "jwks.json")["keys"][0]["kty"], "OKP");
}

fn now() -> UnixTime {
    UnixTime::from_milliseconds(SystemClock.now_unix_ms())
}

#[test]
fn each_process_has_the_secrets_that_it_looks_for() {
    let home = TestHome::new();
    let keys = contents(&home.path("keys"));
    let names: Vec<_> = keys
        .iter()
        .map(|(path, _)| Path::new(path).file_name().unwrap().to_str().unwrap())
        .collect();
    let expected = [
        "alias.key",
        "bundle.pem",
        "cl-bundle-issuer.kek",
        "cl-gateway.kek",
        "cl-policy-engine.kek",
        "cl-receipt-store.kek",
        "cl-vault-data.kek",
        "cl-vault.kek",
        "decision.pem",
        "notes.pem",
        "policy-snapshot.pem",
        "receipts.pem",
        "subject-tag.key",
        "token.pem",
        "transform.key",
        "vault-alias.key",
    ];
    assert_eq!(names, expected);
    for (path, bytes) in keys.iter().filter(|(path, _)| !path.ends_with(".pem")) {
        assert_eq!(bytes.len(), 32, "{path}");
    }
}

#[test]
fn auditor_gateway_and_console_read_receipts_and_nobody_else() {
    let home = TestHome::new();
    let table = document(&home, "receipt-readers.json");
    assert_eq!(
        table,
        json!({
            "readers_version": 1,
            "readers": {
                "spiffe://context-layer.local/auditor/clctl": [
                    {"role": "auditor", "tenant": "*"},
                ],
                "spiffe://context-layer.local/edge/cl-console": [
                    {"role": "auditor", "tenant": "*"},
                ],
                "spiffe://context-layer.local/edge/cl-gateway": [
                    {"role": "requester", "tenant": "*"},
                ],
            },
        })
    );
}

#[test]
fn each_writer_has_a_row_for_its_receipts() {
    let home = TestHome::new();
    let table = document(&home, "receipt-writers.json");
    let operations = |path: &str, list: &str| {
        let row = &table["writers"][format!("spiffe://context-layer.local/{path}")];
        let operations = row[list].as_array().unwrap().iter();
        let operations = operations.map(|operation| operation.as_str().unwrap().to_owned());
        operations.collect::<Vec<_>>()
    };
    let own = |path: &str| operations(path, "operations");
    assert_eq!(
        own("exchange/cl-semantic-proxy"),
        ["semantic_proxy.project"]
    );
    assert_eq!(
        own("exchange/cl-bundle-issuer"),
        ["bundle.issue", "bundle.deliver", "bundle.revoke"]
    );
    assert!(own("vault/cl-vault").contains(&"vault.erase_subject".to_owned()));
    for path in ["exchange/cl-policy-engine", "vault/cl-vault"] {
        assert!(operations(path, "consumer_operations").is_empty(), "{path}");
    }
    let consumers = operations("exchange/cl-bundle-issuer", "consumer_operations");
    assert_eq!(consumers, ["*"]);
    let rows = table["writers"].as_object().unwrap();
    assert_eq!(
        rows.len(),
        4,
        "the gateway and the store write none of their own"
    );
}

#[test]
fn no_two_homes_and_no_two_purposes_share_a_secret() {
    let secrets = |home: &TestHome| {
        let mut secrets = contents(&home.path("keys"));
        secrets.extend(contents(&home.path("pki")));
        secrets.retain(|(path, _)| !path.ends_with(".pem") || path.contains("/keys/"));
        secrets.into_iter().map(|(_, bytes)| bytes)
    };
    let (one, other) = (TestHome::new(), TestHome::new());
    let mut all: Vec<_> = secrets(&one).chain(secrets(&other)).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(count > 20);
}

#[test]
fn nothing_secret_is_said() {
    let home = TestHome::missing();
    let mut said = String::new();
    for args in [
        &["init"][..],
        &["init"],
        &["--json", "certificates", "renew"],
        &["status"],
        &["request", "nowhere.json"],
        &["up", "--without", "cl-policy-engine"],
    ] {
        let answer = home.run(args);
        said.push_str(&answer.stdout);
        said.push_str(&answer.stderr);
    }
    // A key that cannot be used is not shown either.
    let token = home.path("keys/token.pem");
    let broken = fs::read_to_string(&token)
        .unwrap()
        .replace("PRIVATE", "SECRET");
    fs::write(&token, &broken).unwrap();
    let answer = home.run(&["token", "mint"]);
    assert_eq!(answer.code, Some(1), "{}", answer.stdout);
    said.push_str(&answer.stderr);

    for (path, bytes) in contents(&home.path("keys")) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines = text.lines().filter(|line| line.len() > 8);
        for line in lines.filter(|line| !line.starts_with("-----")) {
            assert!(!said.contains(line), "{path}");
        }
        assert!(!said.contains(&HEXLOWER.encode(&bytes)), "{path}");
    }
}
