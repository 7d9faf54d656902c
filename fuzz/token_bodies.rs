//! What the token fuzz targets do with one input; the gateway's ordinary tests replay their corpus.

#![allow(
    clippy::expect_used,
    dead_code,
    reason = "a broken promise must panic here, and each target uses one of these"
)]

use cl_gateway::auth::jwks::MAX_KEYS;
use cl_gateway::auth::{Bearer, KeySet, Moment, TokenPolicy, verify};

/// A public key whose private half is not known here, so that nothing verifies.
const JWKS: &[u8] = br#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k",
    "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// Nothing is let in without the key, whatever it says.
pub(crate) fn token(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = Bearer::parse(text);
    let policy = TokenPolicy {
        issuer: "i".to_owned(),
        audience: "a".to_owned(),
    };
    let keys = KeySet::parse(JWKS).expect("a key set");
    let judged = verify(text, &policy, &keys, None, Moment::from_unix_ms(1));
    assert!(judged.is_err(), "nobody can sign");
}

/// What is read is bounded and has a key to verify by.
pub(crate) fn jwks(bytes: &[u8]) {
    if let Ok(keys) = KeySet::parse(bytes) {
        assert!((1..=MAX_KEYS).contains(&(keys.usable() + keys.left_out())));
        assert!(keys.usable() > 0, "a set without a key was read");
    }
}
