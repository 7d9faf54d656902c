//! Opening an authenticated bundle: untrusted bytes in, a verified bundle out (spec 6.4, 12).
//!
//! Refusals are tried in this order, and the first one wins: size, strict JSON, envelope members,
//! record integrity, type and version, purpose code, purpose, task, restrictions, forbidden
//! material, times, recipient, provenance, closed schema, authentication members, key id,
//! signature. Only then does anything of the content count.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::forbidden::contains_forbidden_material;
use crate::json::read::FromJson;
use crate::json::{self, Limits};
use crate::key::{MacKey, PublicKey, Signature};
use crate::object::{ProtocolObject, ScopedContextBundle};
use crate::part::{SPEC_VERSION, Task};
use crate::purpose::PurposeCode;
use crate::record;
use crate::refusal::{Code, Refusal};
use crate::scalar::{KeyId, Text, integer};
use crate::time::UnixTime;
use crate::urn::BundleId;

/// The largest envelope that is opened, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = 2 * 1024 * 1024;

/// The one authority whose bundles are accepted.
#[derive(Debug)]
pub struct TrustedAuthority {
    key: PublicKey,
    retired: Option<MacKey>,
}

impl TrustedAuthority {
    /// Accepts bundles signed by `key`.
    pub const fn new(key: PublicKey) -> Self {
        Self { key, retired: None }
    }

    /// Also accepts the retired HMAC form under the same key id. Verification only: there is no
    /// way to issue in this form, and the secret is never derived from another key.
    #[must_use]
    pub fn with_retired_hmac(mut self, secret: MacKey) -> Self {
        self.retired = Some(secret);
        self
    }
}

/// A bundle that its authority signed and that keeps to its closed schema.
///
/// Only [`VerifiedBundle::open`] makes one. It is not yet known to be current, or for whom.
#[derive(Clone, Debug)]
pub struct VerifiedBundle {
    bundle: ScopedContextBundle,
    digest: Digest,
}

impl VerifiedBundle {
    /// Verifies the bytes of an envelope that came over a network.
    ///
    /// # Errors
    ///
    /// In the order of the module: [`Code::BundleTooLarge`], [`Code::InvalidBundleJson`],
    /// [`Code::InvalidAuthenticatedBundle`], [`Code::InvalidRecordIntegrity`],
    /// [`Code::RecordIntegrityMismatch`], [`Code::InvalidBundle`],
    /// [`Code::InvalidBundlePurposeCode`], [`Code::InvalidBundlePurpose`], [`Code::InvalidTask`],
    /// [`Code::InvalidBundleRestrictions`], [`Code::BundleContainsForbiddenMaterial`],
    /// [`Code::InvalidDateTime`], [`Code::InvalidBundleRecipient`],
    /// [`Code::BundleProvenanceInvalid`], [`Code::InvalidBundleAuthentication`],
    /// [`Code::UntrustedBundleAuthority`], [`Code::BundleAuthenticationFailed`].
    pub fn open(envelope: &[u8], authority: &TrustedAuthority) -> Result<Self, Refusal> {
        Self::open_within(envelope, authority, Limits::network(MAX_ENVELOPE_BYTES))
    }

    /// As [`VerifiedBundle::open`], in the local profile's number domain: integers beyond 2^53-1
    /// round instead of being refused.
    ///
    /// # Errors
    ///
    /// As [`VerifiedBundle::open`].
    pub fn open_profile(envelope: &[u8], authority: &TrustedAuthority) -> Result<Self, Refusal> {
        Self::open_within(envelope, authority, Limits::profile(MAX_ENVELOPE_BYTES))
    }

    fn open_within(
        envelope: &[u8],
        authority: &TrustedAuthority,
        limits: Limits,
    ) -> Result<Self, Refusal> {
        let envelope = json::parse(envelope, limits).map_err(|refusal| {
            if refusal.code() == Code::JsonTooLarge {
                Code::BundleTooLarge
            } else {
                Code::InvalidBundleJson
            }
        })?;
        let (value, authentication) = split_envelope(&envelope)?;
        let (digest, text) = record::verify_text(value, BundleId::PREFIX)?;
        let bundle = check_bundle(value)?;
        let authentication = Authentication::read(authentication, authority.retired.is_some())
            .ok_or(Code::InvalidBundleAuthentication)?;
        authentication.verify(&text, authority)?;
        Ok(Self { bundle, digest })
    }

    /// The bundle, for the checks that need it; its content is for [`crate::session`] to release.
    pub const fn bundle(&self) -> &ScopedContextBundle {
        &self.bundle
    }

    /// The digest of its contents.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Checks that the bundle is current and for this recipient; the instant of expiry is expired.
    ///
    /// # Errors
    ///
    /// [`Code::BundleExpired`], then [`Code::BundleRecipientMismatch`].
    pub fn check_use(&self, recipient: &str, now: UnixTime) -> Result<(), Refusal> {
        if self.bundle.expires_at.instant() <= now {
            return Err(Code::BundleExpired.into());
        }
        if self.bundle.recipient.as_str() != recipient {
            return Err(Code::BundleRecipientMismatch.into());
        }
        Ok(())
    }
}

impl Drop for VerifiedBundle {
    /// Overwrites what was disclosed, as far as this value holds it.
    fn drop(&mut self) {
        self.bundle.wipe();
    }
}

fn split_envelope(envelope: &Value) -> Result<(&Value, &Map<String, Value>), Refusal> {
    let split = || {
        let members = envelope.as_object().filter(|members| members.len() == 3)?;
        let version = integer(members.get("envelope_version")?).ok()?;
        let bundle = members.get("bundle").filter(|bundle| bundle.is_object())?;
        let authentication = members.get("authentication")?.as_object()?;
        (version == 1).then_some((bundle, authentication))
    };
    split().ok_or_else(|| Code::InvalidAuthenticatedBundle.into())
}

/// Checks the profile's rules in its order, then the closed schema.
fn check_bundle(value: &Value) -> Result<ScopedContextBundle, Refusal> {
    let is_supported = value["spec_version"] == SPEC_VERSION
        && value["type"] == "scoped_context_bundle"
        && value["context"].is_array()
        && value["capabilities"].is_array();
    if !is_supported {
        return Err(Code::InvalidBundle.into());
    }
    if PurposeCode::from_json(&value["purpose_code"]).is_err() {
        return Err(Code::InvalidBundlePurposeCode.into());
    }
    let purpose = value.get("purpose");
    if purpose.is_some_and(|purpose| Text::<3, 240>::from_json(purpose).is_err()) {
        return Err(Code::InvalidBundlePurpose.into());
    }
    if Task::from_json(&value["task"]).is_err() {
        return Err(Code::InvalidTask.into());
    }
    if value["single_use"] != true {
        return Err(Code::InvalidBundle.into());
    }
    if !keeps_boundary(value) {
        return Err(Code::InvalidBundleRestrictions.into());
    }
    if contains_forbidden_material(value) {
        return Err(Code::BundleContainsForbiddenMaterial.into());
    }
    let times = ["created_at", "issued_at", "expires_at"];
    if !times
        .iter()
        .all(|name| value[*name].as_str().and_then(UnixTime::parse).is_some())
    {
        return Err(Code::InvalidDateTime.into());
    }
    if value["recipient"].as_str().is_none_or(str::is_empty) {
        return Err(Code::InvalidBundleRecipient.into());
    }
    if !has_provenance(value) {
        return Err(Code::BundleProvenanceInvalid.into());
    }
    let bundle = ScopedContextBundle::read(value)?;
    // Optional in the schema, but without it no receipt could name the policy in force.
    if bundle.policy_snapshot.is_none() {
        return Err(Code::InvalidBundle.into());
    }
    Ok(bundle)
}

fn keeps_boundary(bundle: &Value) -> bool {
    let restrictions = &bundle["restrictions"];
    let seconds = integer(&restrictions["retention_seconds"]);
    restrictions["raw_vault_resolution"] == "forbidden"
        && restrictions["memory_write"] == "proposal_only"
        && seconds.is_ok()
        && seconds == integer(&bundle["retention"]["max_seconds"])
}

fn has_provenance(bundle: &Value) -> bool {
    let is_known = |handle: &Value| {
        handle
            .as_str()
            .is_some_and(|handle| bundle["provenance"].get(handle).is_some())
    };
    bundle["context"].as_array().is_some_and(|items| {
        items.iter().all(|item| {
            item["provenance_handles"]
                .as_array()
                .is_some_and(|handles| !handles.is_empty() && handles.iter().all(is_known))
        })
    })
}

/// The authentication member of an envelope, in one of its two forms.
enum Authentication<'a> {
    Ed25519 { kid: &'a str, sig: &'a str },
    RetiredHmac { kid: &'a str, mac: &'a str },
}

impl<'a> Authentication<'a> {
    fn read(members: &'a Map<String, Value>, accepts_retired: bool) -> Option<Self> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if members.len() != 3 {
            return None;
        }
        match text("algorithm")? {
            "Ed25519" => Some(Self::Ed25519 {
                kid: text("kid").filter(|kid| is_key_id(kid))?,
                sig: text("sig").filter(|sig| is_base64url(sig, 86))?,
            }),
            "hmac-sha256" if accepts_retired => Some(Self::RetiredHmac {
                kid: text("key_id").filter(|kid| is_key_id(kid))?,
                mac: text("mac").filter(|mac| is_base64url(mac, 43))?,
            }),
            _ => None,
        }
    }

    fn verify(&self, message: &str, authority: &TrustedAuthority) -> Result<(), Refusal> {
        let (Self::Ed25519 { kid, .. } | Self::RetiredHmac { kid, .. }) = self;
        if *kid != authority.key.kid().as_str() {
            return Err(Code::UntrustedBundleAuthority.into());
        }
        let message = message.as_bytes();
        let verifies = match self {
            Self::Ed25519 { sig, .. } => Signature::from_base64url(sig)
                .is_some_and(|signature| authority.key.verifies(message, &signature)),
            Self::RetiredHmac { mac, .. } => authority.retired.as_ref().is_some_and(|secret| {
                let mac = BASE64URL_NOPAD.decode(mac.as_bytes());
                mac.is_ok_and(|mac| secret.verifies(message, &mac))
            }),
        };
        if verifies {
            return Ok(());
        }
        Err(Code::BundleAuthenticationFailed.into())
    }
}

fn is_key_id(text: &str) -> bool {
    KeyId::new(text).is_some()
}

fn is_base64url(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
