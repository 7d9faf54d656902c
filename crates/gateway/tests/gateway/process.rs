//! The binary: it starts from its files, ends when told, and refuses what is not to be trusted.

use std::fs;

use cl_testbed::{Authority, Home, Program};

use crate::tokens::TokenIssuer;

const KEK: &str = "cl-gateway.kek";

fn home() -> Home {
    let home = Home::new(&Authority::new(), "edge/cl-gateway");
    home.write_key(KEK, &[3; 32]);
    home.write("jwks.json", TokenIssuer::new().jwks().to_string());
    home
}

fn start(home: &Home, more: &[&str]) -> Program {
    let settings = [&["--policy-engine-addr=localhost:1"], more].concat();
    Program::start(env!("CARGO_BIN_EXE_cl-gateway"), home.path(), &settings)
}

const TOKENS: [&str; 2] = [
    "--token-issuer=https://tokens.example.org",
    "--token-audience=https://gateway.example.org",
];

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home();
    let services = [
        "--bundle-issuer-addr=localhost:1",
        "--receipt-store-addr=localhost:1",
        "--vault-addr=localhost:1",
    ];
    let mut process = start(&home, &[&TOKENS[..], &services].concat());
    process.ready().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("key set loaded") && log.contains("ready"),
        "{log}"
    );
    assert!(home.join("data/cl-gateway").is_dir());
}

#[tokio::test]
async fn refuses_to_start_on_what_is_not_to_be_trusted() {
    let refuses = async |home: &Home, more: &[&str], code: i32, text: &str| {
        let (found, log) = start(home, more).ended().await;
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains(text), "{log}");
        assert!(!home.join("data").exists());
    };
    let home = &home();
    refuses(home, &TOKENS[..1], 2, "--token-audience").await;
    refuses(
        home,
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
        refuses(home, &[setting], 1, "host:port").await;
    }
    let secret = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AA","d":"AA"}]}"#;
    home.write("jwks.json", secret);
    refuses(home, &TOKENS, 1, "secret").await;
    fs::remove_file(home.join("jwks.json")).unwrap();
    refuses(home, &TOKENS, 1, "jwks.json").await;
    home.write_key(KEK, &[3; 31]);
    refuses(home, &[], 1, "32 bytes").await;
    let tls = fs::read(home.join("pki/cl-gateway.key")).unwrap();
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    let tls = PrivateKeyDer::from_pem_slice(&tls).unwrap();
    // Any 32 bytes of it, among them the private scalar.
    home.write_key(KEK, &tls.secret_der()[36..68]);
    refuses(home, &[], 1, "hold the same key").await;
}
