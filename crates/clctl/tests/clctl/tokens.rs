//! Tokens of the local issuer, checked by other means than those that made them.

use std::fs;

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;

use crate::support::TestHome;

fn json_of(part: &str) -> Value {
    serde_json::from_slice(&BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
}

/// Header and claims of a token whose signature holds under the published key.
fn verified(home: &TestHome, token: &str) -> (Value, Value) {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        panic!("not three parts");
    };
    let keys = fs::read(home.path("jwks.json")).unwrap();
    let keys: Value = serde_json::from_slice(&keys).unwrap();
    let header_json = json_of(header);
    let key = &keys["keys"][0];
    assert_eq!(header_json["kid"], key["kid"]);
    let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).unwrap();
    let public = decode(key["x"].as_str().unwrap());
    let signed = format!("{header}.{claims}");
    UnparsedPublicKey::new(&ED25519, public)
        .verify(signed.as_bytes(), &decode(signature))
        .unwrap();
    (header_json, json_of(claims))
}

#[test]
fn a_token_says_what_was_asked_for_and_verifies() {
    let home = TestHome::new();
    let token = home.ok(&[
        "token",
        "mint",
        "--sub=urn:agent:a",
        "--client-instance=urn:device:d",
        "--tenant=acme",
        "--scope=context.request receipt.read",
        "--ttl=90s",
    ]);
    let (header, claims) = verified(&home, token.trim_end());
    assert_eq!(header["alg"], "EdDSA");
    assert_eq!(header["typ"], "at+jwt");
    let issuer = fs::read(home.path("token-issuer.json")).unwrap();
    let issuer: Value = serde_json::from_slice(&issuer).unwrap();
    assert_eq!(claims["iss"], issuer["issuer"]);
    assert_eq!(claims["aud"], issuer["audience"]);
    assert_eq!(claims["sub"], "urn:agent:a");
    assert_eq!(claims["client_instance"], "urn:device:d");
    assert_eq!(claims["client_id"], "urn:device:d");
    assert_eq!(claims["tenant"], "acme");
    assert_eq!(claims["scope"], "context.request receipt.read");
    let seconds = |name: &str| claims[name].as_i64().unwrap();
    assert_eq!(seconds("exp") - seconds("iat"), 90);
}

#[test]
fn each_token_is_its_own() {
    let home = TestHome::new();
    let jti = || {
        let minted = home.json(&["token", "mint"]);
        let token = minted["access_token"].as_str().unwrap().to_owned();
        assert_eq!(minted["expires_in"], 600);
        verified(&home, &token).1["jti"].clone()
    };
    assert_ne!(jti(), jti());
}

#[test]
fn refuses_what_no_token_may_say() {
    let home = TestHome::new();
    for bad in [
        "--ttl=25h",
        "--ttl=0s",
        "--scope=a  b",
        "--sub=x",
        "--tenant=A",
    ] {
        let answer = home.run(&["token", "mint", bad]);
        assert_eq!(answer.code, Some(2), "{bad}");
        assert_eq!(answer.stdout, "");
    }
}

#[test]
fn without_a_home_there_is_no_token() {
    let home = TestHome::missing();
    let refused = home.failure(&["token", "mint"]);
    assert_eq!(refused, (1, "HOME_NOT_FOUND".to_owned()));
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt;

    let home = TestHome::new();
    let key = home.path("keys/token.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = home.failure(&["token", "mint"]);
    assert_eq!(refused, (1, "FILE_NOT_READ".to_owned()));
}
