//! Signed tokens: JWS compact serialisation (RFC 7515), two algorithms, keys from the key set only.

use cl_model::json::{self, Limits};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::InvalidToken;
use super::jwks::KeySet;

/// The longest token that is looked at, checked before anything is decoded.
pub(super) const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The longest key id, in characters.
pub(super) const MAX_KID_CHARS: usize = 128;

/// Members of a token's header that would choose the key, change what is signed, or say that the
/// payload is something else than claims.
const FORBIDDEN_MEMBERS: [&str; 9] = [
    "jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc", "cty",
];

/// The types of an access token (RFC 9068 section 4); an ID token or another JWT is none.
const TYPES: [&str; 2] = ["at+jwt", "application/at+jwt"];

/// The payload of a token that a key of `keys` signed.
pub(super) fn verified_payload(
    token: &str,
    keys: &KeySet,
) -> Result<Map<String, Value>, InvalidToken> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(InvalidToken::Form);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(InvalidToken::Form)?;
    let (header, payload) = signed.split_once('.').ok_or(InvalidToken::Form)?;
    // A further point fails to decode, so there are exactly three parts.
    let [header, payload, signature] = [header, payload, signature].map(decoded);
    let (header, payload, signature) = (header?, payload?, signature?);

    let header = object(&header).ok_or(InvalidToken::TokenHeader)?;
    let Header { algorithm, key_id } = Header::read(&header).ok_or(InvalidToken::TokenHeader)?;
    let key = keys.find(key_id).ok_or(InvalidToken::Key)?;
    if !key.takes(algorithm) {
        return Err(InvalidToken::Key);
    }
    if !key.verifies(signed.as_bytes(), &signature) {
        return Err(InvalidToken::Signature);
    }
    object(&payload).ok_or(InvalidToken::Claims)
}

struct Header<'a> {
    algorithm: &'a str,
    key_id: &'a str,
}

impl<'a> Header<'a> {
    fn read(header: &'a Map<String, Value>) -> Option<Self> {
        if FORBIDDEN_MEMBERS
            .iter()
            .any(|name| header.contains_key(*name))
        {
            return None;
        }
        let kind = header.get("typ")?.as_str()?;
        let key_id = header.get("kid")?.as_str()?;
        let is_access_token = TYPES.iter().any(|name| kind.eq_ignore_ascii_case(name));
        let is_bounded = (1..=MAX_KID_CHARS).contains(&key_id.chars().count());
        (is_access_token && is_bounded).then_some(Self {
            algorithm: header.get("alg")?.as_str()?,
            key_id,
        })
    }
}

/// Refuses padding, white space and stray bits at the end, so that a token has one spelling.
fn decoded(part: &str) -> Result<Vec<u8>, InvalidToken> {
    if part.is_empty() {
        return Err(InvalidToken::Form);
    }
    BASE64URL_NOPAD
        .decode(part.as_bytes())
        .map_err(|_| InvalidToken::Form)
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match json::parse(bytes, Limits::network(MAX_TOKEN_BYTES)).ok()? {
        Value::Object(object) => Some(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}
