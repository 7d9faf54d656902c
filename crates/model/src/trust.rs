//! Public keys that are trusted, each for one purpose: `trust.json`.
//!
//! ```json
//! {"keys": [{"kid": "urn:cl:key:decision:..", "purpose": "decision", "alg": "Ed25519",
//!            "x": "<32 bytes, base64url>", "not_before": null, "not_after": null,
//!            "revoked": false}]}
//! ```

use std::collections::HashSet;

use data_encoding::BASE64URL_NOPAD;

use crate::document::TrustedKeys;
use crate::json::read::{Expected, FromJson as _, Mismatch, Nullable, constant, object};
use crate::json::{self, Limits};
use crate::key::{KEY_BYTES, PublicKey};
use crate::list::List;
use crate::refusal::{Code, Refusal};
use crate::scalar::{KeyId, Name, Text};
use crate::time::{Timestamp, UnixTime};

/// The purpose of keys that sign grants.
pub const DECISION: &str = "decision";

/// The purpose of keys that sign bundles.
pub const BUNDLE: &str = "bundle";

/// The purpose of keys that sign disclosure notes.
pub const NOTES: &str = "notes";

/// The purpose of keys that sign the checkpoints of receipt logs.
pub const RECEIPTS: &str = "receipts";

/// The purpose of keys by which operators sign policy snapshots.
pub const POLICY_SNAPSHOT: &str = "policy-snapshot";

/// The longest file that is read.
pub const MAX_TRUST_BYTES: usize = 1024 * 1024;

constant! {
    /// The one algorithm.
    pub struct Ed25519Name = "Ed25519";
}

object! {
    /// A public key, for what, and when it signs.
    pub struct TrustedKey {
        /// Its id.
        kid: KeyId,
        /// What it signs, such as `decision` or `bundle`.
        purpose: Name,
        /// Always `Ed25519`.
        alg: Ed25519Name,
        /// Its 32 bytes in unpadded base64url.
        x: Text<43, 43>,
        /// From when it signs; null: always did.
        not_before: Nullable<Timestamp>,
        /// Until when it signs; null: no end is known.
        not_after: Nullable<Timestamp>,
        /// Whether nothing that it signed counts any more.
        revoked: bool,
    }
    check = TrustedKey::has_key_bytes;
}

impl TrustedKey {
    fn bytes(&self) -> Option<[u8; KEY_BYTES]> {
        let bytes = BASE64URL_NOPAD.decode(self.x.as_str().as_bytes()).ok()?;
        bytes.try_into().ok()
    }

    fn has_key_bytes(&self) -> Result<(), Mismatch> {
        if self.bytes().is_none() {
            return Err(Expected::Pattern("32 bytes in base64url").into());
        }
        Ok(())
    }

    fn signs_at(&self, time: UnixTime) -> bool {
        let ended = |until: &Timestamp| until.instant() <= time;
        self.has_signed_by(time) && !self.not_after.get().is_some_and(ended)
    }

    fn has_signed_by(&self, time: UnixTime) -> bool {
        let begun = |from: &Timestamp| from.instant() <= time;
        !self.revoked && self.not_before.get().is_none_or(begun)
    }
}

object! {
    /// The whole file.
    pub struct TrustFile {
        /// The keys, each under its own id, up to 1,024.
        keys: List<TrustedKey, 0, 1024>,
    }
    check = TrustFile::names_each_once;
}

impl TrustFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidTrustFile`] if it departs from its form; the codes of strict JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes, Limits::network(MAX_TRUST_BYTES))?;
        Self::from_json(&value).map_err(|mismatch| mismatch.refuse(Code::InvalidTrustFile))
    }

    /// The keys that may sign for `purpose` at a time.
    ///
    /// A document that counts for a short while is judged at the time of its use. The end of a key
    /// that was replaced therefore lies after the end of the last document that it signed.
    pub fn keys(&self, purpose: &str, time: UnixTime) -> TrustedKeys {
        self.public_keys(purpose, time).collect()
    }

    /// The keys that have signed for `purpose` up to a time, also those that were replaced since.
    ///
    /// What stays for good, such as a log, is verified by them. One that is revoked is not among
    /// them.
    pub fn verifying_keys(&self, purpose: &str, time: UnixTime) -> impl Iterator<Item = PublicKey> {
        self.keys
            .iter()
            .filter(move |key| key.purpose.as_str() == purpose && key.has_signed_by(time))
            .filter_map(|key| Some(PublicKey::new(key.kid.clone(), key.bytes()?)))
    }

    /// The same keys as of [`Self::keys`] one by one.
    pub fn public_keys(&self, purpose: &str, time: UnixTime) -> impl Iterator<Item = PublicKey> {
        self.keys
            .iter()
            .filter(move |key| key.purpose.as_str() == purpose && key.signs_at(time))
            .filter_map(|key| Some(PublicKey::new(key.kid.clone(), key.bytes()?)))
    }

    fn names_each_once(&self) -> Result<(), Mismatch> {
        let names: HashSet<_> = self.keys.iter().map(|key| &key.kid).collect();
        if names.len() < self.keys.len() {
            return Err(Expected::Distinct.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::document::{Verified, sign};
    use crate::key::{Seed, SigningKey};
    use crate::notes::DisclosureNotes;

    fn key() -> SigningKey {
        let kid = KeyId::new("urn:cl:key:test").expect("a key id");
        SigningKey::from_seed(kid, &Seed::new(&[1; 32]).expect("32 bytes")).expect("a key")
    }

    fn entry() -> Value {
        json!({
            "kid": "urn:cl:key:test",
            "purpose": "notes",
            "alg": "Ed25519",
            "x": BASE64URL_NOPAD.encode(key().public_key().as_bytes()),
            "not_before": "2030-01-01T00:00:00Z",
            "not_after": "2030-02-01T00:00:00Z",
            "revoked": false,
        })
    }

    fn parse(entries: &[Value]) -> Result<TrustFile, Code> {
        let file = json!({"keys": entries}).to_string();
        TrustFile::parse(file.as_bytes()).map_err(|refusal| refusal.code())
    }

    fn changed(name: &str, value: Value) -> Value {
        let mut entry = entry();
        entry[name] = value;
        entry
    }

    fn trusts(entry: Value, purpose: &str, time: &str) -> bool {
        let notes = json!({
            "notes_version": 1,
            "bundle_digest": format!("sha256:{}", "0".repeat(64)),
            "items": [],
            "kid": "urn:cl:key:test",
        });
        let notes = DisclosureNotes::from_json(&notes).expect("notes");
        let signed = sign(&notes, &key()).expect("signed");
        let file = parse(&[entry]).expect("a file");
        let time = UnixTime::parse(time).expect("a time");
        Verified::<DisclosureNotes>::open(&signed, &file.keys(purpose, time)).is_ok()
    }

    #[test]
    fn a_key_counts_for_its_purpose_and_within_its_times() {
        assert!(trusts(entry(), "notes", "2030-01-01T00:00:00Z"));
        assert!(trusts(entry(), "notes", "2030-01-31T23:59:59Z"));
        assert!(!trusts(entry(), "bundle", "2030-01-15T00:00:00Z"));
        assert!(!trusts(entry(), "notes", "2029-12-31T23:59:59Z"));
        assert!(!trusts(entry(), "notes", "2030-02-01T00:00:00Z"));
        let revoked = changed("revoked", json!(true));
        assert!(!trusts(revoked, "notes", "2030-01-15T00:00:00Z"));
        let open = changed("not_after", Value::Null);
        assert!(trusts(open, "notes", "2040-01-01T00:00:00Z"));
        let other = changed("x", json!("A".repeat(43)));
        assert!(!trusts(other, "notes", "2030-01-15T00:00:00Z"));
    }

    #[test]
    fn refuses_what_departs_from_its_form() {
        assert!(parse(&[]).is_ok());
        for bad in [
            changed("alg", json!("ES256")),
            changed("x", json!("A".repeat(42))),
            changed("x", json!(format!("{}=", "A".repeat(42)))),
            changed("not_before", json!("2030")),
            changed("revoked", Value::Null),
            changed("extra", json!(1)),
        ] {
            assert_eq!(parse(&[bad]).err(), Some(Code::InvalidTrustFile));
        }
        assert_eq!(
            parse(&[entry(), entry()]).err(),
            Some(Code::InvalidTrustFile)
        );
    }
}
