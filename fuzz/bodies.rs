//! What each fuzz target does with one input. The ordinary tests replay the committed corpus
//! through the same functions.

#![allow(
    clippy::expect_used,
    dead_code,
    reason = "a broken promise must panic here, and each target uses one of these"
)]

use cl_model::anchor::{AnchorFile, AnchoredLog, log_id_of_path};
use cl_model::artefact::{ApprovalDocument, Artefact};
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::envelope::{TrustedAuthority, VerifiedBundle};
use cl_model::json::{self, Limits};
use cl_model::key::{Seed, SigningKey};
use cl_model::log::LogState;
use cl_model::passkey::{AuthenticatorData, ClientData, CoseKey, RelyingParty, enrol};
use cl_model::policy::Snapshot;
use cl_model::scalar::KeyId;
use cl_model::time::{Timestamp, UnixTime};
use serde_json::Value;

const MAX_BYTES: usize = 1 << 20;

/// The seed of every key here.
const SEED: [u8; 32] = [0x5a; 32];

pub(crate) fn signing_key() -> SigningKey {
    let kid = KeyId::new("urn:cl:key:fuzz").expect("a key id");
    let seed = Seed::new(&SEED).expect("32 bytes");
    SigningKey::from_seed(kid, &seed).expect("a key")
}

/// What is accepted is JSON to `serde_json` too, with one canonical form that is accepted again.
pub(crate) fn strict_json(bytes: &[u8]) {
    let exact = json::parse(bytes, Limits::network(MAX_BYTES));
    let Ok(value) = json::parse(bytes, Limits::profile(MAX_BYTES)) else {
        assert!(exact.is_err(), "the network entry is the stricter one");
        return;
    };
    let plain: Value = serde_json::from_slice(bytes).expect("accepted text is JSON");
    assert_eq!(value, plain);
    let text = canonical::to_text(&value);
    let again = json::parse(text.as_bytes(), Limits::profile(usize::MAX)).expect("canonical");
    assert_eq!(canonical::to_text(&again), text);
}

/// What is accepted is kept as text and names an instant that is written back in one form.
pub(crate) fn dates(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(timestamp) = Timestamp::parse(text) {
        assert_eq!(timestamp.as_str(), text);
        let written = timestamp.instant().to_string();
        assert_eq!(UnixTime::parse(&written), Some(timestamp.instant()));
        assert!(timestamp.instant().plus_seconds(u64::MAX) >= timestamp.instant());
    }
}

/// What opens has a digest that its own canonical text confirms.
pub(crate) fn envelope(bytes: &[u8]) {
    let authority = TrustedAuthority::new(signing_key().public_key());
    if let Ok(bundle) = VerifiedBundle::open_profile(bytes, &authority) {
        let value: Value = serde_json::from_slice(bytes).expect("opened text is JSON");
        let digest = cl_model::record::verify(&value["bundle"], "urn:cl:bundle:");
        assert_eq!(digest.ok(), Some(bundle.digest()));
    }
}

/// What is accepted has the form of its schema, and reads the same from its canonical text, under
/// the digest of which it is known.
pub(crate) fn policy_snapshot(bytes: &[u8]) {
    let Ok(value) = json::parse(bytes, Limits::network(MAX_BYTES)) else {
        return;
    };
    let form = Snapshot::check_form(&value);
    let Ok(snapshot) = Snapshot::read(&value) else {
        return;
    };
    assert!(form.is_ok(), "what is read has the form");
    let text = canonical::to_text(&value);
    assert_eq!(
        snapshot.identity().digest,
        Digest::of_bytes(text.as_bytes())
    );
    let again = json::parse(text.as_bytes(), Limits::network(usize::MAX)).expect("canonical");
    let again = Snapshot::read(&again).expect("read before");
    assert_eq!(again.identity(), snapshot.identity());
    assert_eq!(again.expires_at(), snapshot.expires_at());
}

/// The first half of the input, up to an `@`, is a log; the rest is its anchor.
pub(crate) fn log_import(bytes: &[u8]) {
    let (log, anchor) = match bytes.iter().position(|byte| *byte == b'@') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &bytes[bytes.len()..]),
    };
    let verified = LogState::verify(log);
    let key = signing_key();
    let id = log_id_of_path("/receipts.jsonl");
    let opened = AnchoredLog::open(log, &AnchorFile::Bytes(anchor), id, &key);
    if let Ok((opened, line)) = opened {
        assert!(line.is_none());
        let state = verified.expect("an anchored log verifies by itself");
        assert_eq!(opened.log().file_digest(), state.file_digest());
        assert_eq!(state.byte_length(), log.len() as u64);
    }
}

/// What is read of an authenticator's bytes is read again from the same bytes, and never verifies
/// with a key that signed nothing.
pub(crate) fn passkey(bytes: &[u8]) {
    let relying_party = RelyingParty::new("fuzz.example", vec!["https://fuzz.example".to_owned()]);
    let relying_party = relying_party.expect("a relying party");
    drop(ClientData::parse(bytes));
    drop(AuthenticatorData::parse(bytes));
    drop(ApprovalDocument::parse(bytes));
    if let Ok(key) = CoseKey::parse(bytes) {
        assert_eq!(key.as_bytes(), bytes);
        let again = CoseKey::parse(key.as_bytes()).expect("the same key");
        assert_eq!(again.as_bytes(), bytes);
    }
    if let Ok(artefact) = Artefact::parse(bytes) {
        assert_eq!(artefact.to_bytes(), bytes);
        drop(artefact.verify(&relying_party));
    }
    let client_data =
        br#"{"type":"webauthn.create","challenge":"AAAA","origin":"https://fuzz.example"}"#;
    if let Ok(made) = enrol(client_data, bytes, &[0; 3], &relying_party) {
        assert!(!made.id.is_empty());
    }
}
