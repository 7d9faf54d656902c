//! Signatures of policy snapshots.

use std::path::Path;

use cl_model::digest::Digest;
use cl_model::key::Signature;
use cl_model::policy::SnapshotSignature;
use cl_wire::policy::v1 as wire;
use serde_json::json;

use crate::error::Error;
use crate::home::read_json;
use crate::keys::{self, Purpose};
use crate::session::Session;

/// Signs the canonical bytes of a snapshot, and prints the signature for `put`.
pub(super) fn sign(session: &Session, snapshot: &[u8], key: Option<&Path>) -> Result<(), Error> {
    let purpose = Purpose::PolicySnapshot;
    let key = match key {
        Some(path) => keys::load_from(path, purpose)?,
        None => keys::load(&session.home, purpose)?,
    };
    let signed = SnapshotSignature::make(snapshot, &key);
    let digest = Digest::of_bytes(snapshot).to_string();
    let signature = signed.signature.to_base64url();
    let document = json!({
        "digest": digest,
        "kid": signed.kid.as_str(),
        "signature": signature,
    });
    session.output.exact(&format!("{document:#}"))
}

/// The signature that `sign` printed.
pub(super) fn read(path: &Path) -> Result<wire::SnapshotSignature, Error> {
    let malformed = || Error::Malformed {
        path: path.to_owned(),
        expected: "a signature as clctl policy sign prints it",
    };
    let document = read_json(path)?;
    let text = |member: &str| document[member].as_str().ok_or_else(malformed);
    let signature = Signature::from_base64url(text("signature")?).ok_or_else(malformed)?;
    Ok(wire::SnapshotSignature {
        kid: text("kid")?.to_owned(),
        signature: signature.as_bytes().to_vec(),
    })
}

/// The signature of the home's own key, if it has one.
pub(super) fn by_home(
    session: &Session,
    snapshot: &[u8],
) -> Result<Option<wire::SnapshotSignature>, Error> {
    let purpose = Purpose::PolicySnapshot;
    if !session.home.key(&purpose.file()).exists() {
        return Ok(None);
    }
    let signed = SnapshotSignature::make(snapshot, &keys::load(&session.home, purpose)?);
    Ok(Some(wire::SnapshotSignature {
        kid: signed.kid.as_str().to_owned(),
        signature: signed.signature.as_bytes().to_vec(),
    }))
}
