//! The binary: it starts from its files, ends when told, and refuses what is not to be trusted.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::pki::Authority;
use crate::support::within;
use crate::tokens::TokenIssuer;

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in ["pki", "keys"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    let pki = home.path().join("pki");
    Authority::new().write("edge/cl-gateway", &pki, "cl-gateway");
    write_kek(home.path(), &[3; 32]);
    let jwks = TokenIssuer::new().jwks();
    fs::write(home.path().join("jwks.json"), jwks.to_string()).unwrap();
    home
}

fn write_kek(home: &Path, bytes: &[u8]) {
    let path = home.join("keys/cl-gateway.kek");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn start(home: &Path, admin_addr: &str, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cl-gateway"))
        .arg(format!("--home={}", home.display()))
        .arg("--listen-addr=127.0.0.1:0")
        .arg(format!("--admin-addr={admin_addr}"))
        .arg("--policy-engine-addr=localhost:1")
        .arg("--lame-duck-ms=0")
        .args(more)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the process on a thread of its own, and returns its exit code and log.
async fn ended(child: Child) -> (Option<i32>, String) {
    let wait = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = within("the process's end", wait).await.unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const TOKENS: [&str; 2] = [
    "--token-issuer=https://tokens.example.org",
    "--token-audience=https://gateway.example.org",
];

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let admin_addr = free_address();
    let services = [
        "--bundle-issuer-addr=localhost:1",
        "--receipt-store-addr=localhost:1",
        "--vault-addr=localhost:1",
    ];
    let child = start(home.path(), &admin_addr, &[&TOKENS[..], &services].concat());
    within("readiness", async {
        while tokio::net::TcpStream::connect(&admin_addr).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let pid = child.id().to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(told.unwrap().success());
    let (code, log) = ended(child).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("key set loaded") && log.contains("ready"),
        "{log}"
    );
    assert!(home.path().join("data/cl-gateway").is_dir());
}

#[tokio::test]
async fn refuses_to_start_on_what_is_not_to_be_trusted() {
    let refuses = async |home: &Path, more: &[&str], code: i32, text: &str| {
        let (found, log) = ended(start(home, &free_address(), more)).await;
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains(text), "{log}");
        assert!(!home.join("data").exists());
    };
    let folder = home();
    let path = folder.path();
    refuses(path, &TOKENS[..1], 2, "--token-audience").await;
    refuses(
        path,
        &["--public-url=http://gateway.example.org"],
        1,
        "https://",
    )
    .await;
    for setting in [
        "--bundle-issuer-addr=nowhere",
        "--receipt-store-addr=nowhere",
        "--vault-addr=nowhere",
    ] {
        refuses(path, &[setting], 1, "host:port").await;
    }
    let secret = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AA","d":"AA"}]}"#;
    fs::write(path.join("jwks.json"), secret).unwrap();
    refuses(path, &TOKENS, 1, "secret").await;
    fs::remove_file(path.join("jwks.json")).unwrap();
    refuses(path, &TOKENS, 1, "jwks.json").await;
    write_kek(path, &[3; 31]);
    refuses(path, &[], 1, "32 bytes").await;
    let tls = fs::read(path.join("pki/cl-gateway.key")).unwrap();
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    let tls = PrivateKeyDer::from_pem_slice(&tls).unwrap();
    // Any 32 bytes of it, among them the private scalar.
    write_kek(path, &tls.secret_der()[36..68]);
    refuses(path, &[], 1, "hold the same key").await;
}
