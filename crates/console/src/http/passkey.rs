//! What the script of a page returns from a passkey.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::Console;
use crate::engine::{Assertion, Ceremony};
use crate::error::{Error, Peer};
use crate::forms::Form;

const MAX_CREDENTIAL_ID_BYTES: usize = 1023;
const MAX_PART_BYTES: usize = 4096;
const MAX_SIGNATURE_BYTES: usize = 1024;

pub(crate) fn encoded(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// The id that the page gave the operation, so that a repeat of the form is the same one.
pub(super) fn operation_id(form: &Form) -> Result<String, Error> {
    const NAME: &str = "operation_id";
    const UUID_CHARS: usize = 36;

    let id = form.one(NAME)?;
    let uuid = id.strip_prefix("urn:cl:operation:").unwrap_or_default();
    let is_one = uuid.len() == UUID_CHARS
        && uuid
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_one.then(|| id.to_owned()).ok_or(Error::Form(NAME))
}

pub(super) fn ceremony_id(form: &Form) -> Result<Vec<u8>, Error> {
    Ok(form.bytes("ceremony_id", 16, 16)?.to_vec())
}

pub(super) fn client_data(form: &Form) -> Result<Vec<u8>, Error> {
    Ok(form.bytes("client_data", 1, MAX_PART_BYTES)?.to_vec())
}

pub(super) fn assertion(form: &Form) -> Result<Assertion, Error> {
    let part = |name, max| {
        form.bytes(name, 1, max)
            .map(|bytes: Zeroizing<_>| bytes.to_vec())
    };
    Ok(Assertion {
        credential_id: part("credential_id", MAX_CREDENTIAL_ID_BYTES)?,
        client_data: client_data(form)?,
        authenticator_data: part("authenticator_data", MAX_PART_BYTES)?,
        signature: part("signature", MAX_SIGNATURE_BYTES)?,
    })
}

impl Console {
    /// Refuses a challenge that no passkey of these pages could answer: the engine and the console
    /// are configured for different places.
    pub(super) fn checked(&self, ceremony: Ceremony) -> Result<Ceremony, Error> {
        if self.origin.suits(&ceremony.rp_id) {
            return Ok(ceremony);
        }
        let what = "its relying party id is not the host of --origin, or above it";
        Err(Error::BrokenContract(Peer::PolicyEngine, what))
    }
}

/// A challenge, for the script.
pub(super) fn to_json(ceremony: &Ceremony) -> Value {
    json!({
        "ceremony_id": encoded(&ceremony.id),
        "challenge": encoded(&ceremony.challenge),
        "rp_id": ceremony.rp_id,
    })
}
