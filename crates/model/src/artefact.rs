//! Approvals as a person signed them (spec 9.3): one document, one passkey assertion over its digest,
//! and everything that is needed to verify both later and elsewhere.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use crate::canonical;
use crate::digest::Digest;
use crate::document::read_canonical;
use crate::json::read::{FromJson, ToJson, constant, object};
use crate::list::UniqueList;
use crate::passkey::{Assertion, CoseKey, Expected, InvalidPasskey, RelyingParty};
use crate::policy::{Approval, ApprovedScope};
use crate::scalar::{Action, Predicate, Reference, Text};
use crate::time::Timestamp;
use crate::urn::ApprovalId;

/// What the challenge of an approval begins with.
const DOMAIN: &[u8] = b"context-layer/approval/v1\0";

/// The largest approval document that is signed, in bytes: with the largest assertion it makes an
/// artefact of less than [`MAX_ARTEFACT_BYTES`].
pub const MAX_DOCUMENT_BYTES: usize = 36_864;

/// The largest artefact, in bytes.
pub const MAX_ARTEFACT_BYTES: usize = 65_536;

constant! {
    /// The version of the approval document.
    pub struct ApprovalVersion = 1;
    /// The version of the artefact.
    pub struct ArtefactVersion = 1;
}

object! {
    /// One person's answer to the gated scope of one request under one policy.
    pub struct ApprovalDocument {
        /// The version of this document.
        approval_version: ApprovalVersion,
        /// The approval's id.
        id: ApprovalId,
        /// The tenant.
        tenant: Text<1, 63>,
        /// 32 random bytes in unpadded base64url, so that no two documents are the same.
        nonce: Text<43, 43>,
        /// The person.
        approver: Reference,
        /// The exact request that was shown.
        request_digest: Digest,
        /// The policy that it was shown under.
        policy_digest: Digest,
        /// Gated predicates that are granted.
        granted_selectors: UniqueList<Predicate, 0, 64>,
        /// Gated actions that are granted.
        granted_actions: UniqueList<Action, 0, 64>,
        /// Gated predicates that are declined.
        declined_selectors: UniqueList<Predicate, 0, 64>,
        /// Gated actions that are declined.
        declined_actions: UniqueList<Action, 0, 64>,
        /// When what it grants ends at the latest.
        expires_at: Timestamp,
    }
}

impl ApprovalDocument {
    /// Reads a document's canonical bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidArtefact::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidArtefact> {
        let value = read_canonical(bytes).map_err(|_| InvalidArtefact::Malformed)?;
        Self::from_json(&value).map_err(|_| InvalidArtefact::Malformed)
    }

    /// The document's canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical::to_text(&self.to_json()).into_bytes()
    }

    /// The approval as evaluation reads it.
    ///
    /// # Errors
    ///
    /// [`InvalidArtefact::Malformed`] if the id is longer than decisions may refer to.
    pub fn to_approval(&self) -> Result<Approval, InvalidArtefact> {
        let selectors = |names: &UniqueList<Predicate, 0, 64>| {
            names.iter().map(|name| name.as_str().to_owned()).collect()
        };
        let actions = |names: &UniqueList<Action, 0, 64>| {
            names.iter().map(|name| name.as_str().to_owned()).collect()
        };
        Ok(Approval {
            id: Reference::new(self.id.as_str()).ok_or(InvalidArtefact::Malformed)?,
            request_digest: self.request_digest,
            policy_digest: self.policy_digest,
            expires_at: Some(self.expires_at.clone()),
            scope: Some(ApprovedScope {
                granted_selectors: selectors(&self.granted_selectors),
                granted_actions: actions(&self.granted_actions),
                declined_selectors: selectors(&self.declined_selectors),
                declined_actions: actions(&self.declined_actions),
            }),
        })
    }

    /// Whether it grants nothing of what it answers.
    pub fn declines_everything(&self) -> bool {
        self.granted_selectors.is_empty() && self.granted_actions.is_empty()
    }
}

/// The challenge that a person signs: SHA-256 over `context-layer/approval/v1`, a zero byte and the
/// document's bytes.
pub fn challenge(document: &[u8]) -> [u8; 32] {
    let mut message = DOMAIN.to_vec();
    message.extend_from_slice(document);
    *Digest::of_bytes(&message).as_bytes()
}

/// What a person and an operator compare before a credential is confirmed: the first 20 hex digits of
/// the SHA-256 over its id and its public key, in groups of four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    const DIGITS: usize = 20;

    /// The fingerprint of a credential.
    pub fn of(credential_id: &[u8], key: &CoseKey) -> Self {
        let mut message = credential_id.to_vec();
        message.extend_from_slice(key.as_bytes());
        let digits = Digest::of_bytes(&message).to_hex();
        Self(digits.chars().take(Self::DIGITS).collect())
    }

    /// Reads one as people write it: in either case, with or without spaces between the digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|it| *it != ' ').collect();
        let is_whole =
            digits.len() == Self::DIGITS && digits.bytes().all(|it| it.is_ascii_hexdigit());
        is_whole.then(|| Self(digits.to_ascii_lowercase()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, digit) in self.0.chars().enumerate() {
            if index > 0 && index % 4 == 0 {
                f.write_str(" ")?;
            }
            fmt::Write::write_char(f, digit)?;
        }
        Ok(())
    }
}

object! {
    /// The artefact as a document; bytes are unpadded base64url.
    pub struct ArtefactDocument {
        /// The version of this document.
        artefact_version: ArtefactVersion,
        /// The approval document.
        approval: Text<1, MAX_ARTEFACT_BYTES>,
        /// The relying party id that the credential belongs to.
        rp_id: Text<1, 253>,
        /// The credential's id.
        credential_id: Text<2, 1364>,
        /// The credential's public key (COSE).
        public_key: Text<2, 1024>,
        /// Whether the credential was enrolled as one that can be copied.
        backup_eligible: bool,
        /// `clientDataJSON` of the assertion.
        client_data: Text<2, 5462>,
        /// `authenticatorData` of the assertion.
        authenticator_data: Text<2, 5462>,
        /// The assertion's signature.
        signature: Text<2, 1366>,
    }
}

/// A signed approval with what it is verified by.
#[derive(Clone, Debug)]
pub struct Artefact {
    /// The approval document's bytes.
    pub approval: Vec<u8>,
    /// The relying party id.
    pub rp_id: String,
    /// The credential's key.
    pub key: CoseKey,
    /// Whether the credential was enrolled as one that can be copied.
    pub is_backup_eligible: bool,
    /// The assertion over the document.
    pub assertion: Assertion,
}

/// An approval whose assertion holds. Only [`Artefact::verify`] makes one.
#[derive(Clone, Debug)]
pub struct VerifiedApproval {
    document: ApprovalDocument,
    fingerprint: Fingerprint,
    counter: u32,
}

impl VerifiedApproval {
    /// What the person signed.
    pub const fn document(&self) -> &ApprovalDocument {
        &self.document
    }

    /// Which credential signed.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The signature counter, to be judged by [`crate::passkey::next_counter`].
    pub const fn counter(&self) -> u32 {
        self.counter
    }
}

impl Artefact {
    /// Reads an artefact's canonical bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidArtefact::Malformed`]; [`InvalidArtefact::Passkey`] for its key.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidArtefact> {
        if bytes.len() > MAX_ARTEFACT_BYTES {
            return Err(InvalidArtefact::Malformed);
        }
        let value = read_canonical(bytes).map_err(|_| InvalidArtefact::Malformed)?;
        let document =
            ArtefactDocument::from_json(&value).map_err(|_| InvalidArtefact::Malformed)?;
        Ok(Self {
            approval: decode(document.approval.as_str())?,
            rp_id: document.rp_id.as_str().to_owned(),
            key: CoseKey::parse(&decode(document.public_key.as_str())?)?,
            is_backup_eligible: document.backup_eligible,
            assertion: Assertion {
                credential_id: decode(document.credential_id.as_str())?,
                client_data: decode(document.client_data.as_str())?,
                authenticator_data: decode(document.authenticator_data.as_str())?,
                signature: decode(document.signature.as_str())?,
            },
        })
    }

    /// The artefact's canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = |bytes: &[u8]| Value::String(BASE64URL_NOPAD.encode(bytes));
        let assertion = &self.assertion;
        let value = serde_json::json!({
            "artefact_version": 1,
            "approval": text(&self.approval),
            "rp_id": self.rp_id,
            "credential_id": text(&assertion.credential_id),
            "public_key": text(self.key.as_bytes()),
            "backup_eligible": self.is_backup_eligible,
            "client_data": text(&assertion.client_data),
            "authenticator_data": text(&assertion.authenticator_data),
            "signature": text(&assertion.signature),
        });
        canonical::to_text(&value).into_bytes()
    }

    /// Verifies that the credential's holder signed exactly this approval, on a page of
    /// `relying_party`. Whose credential it is, and whether it was active, only the policy engine
    /// knows: compare the fingerprint.
    ///
    /// # Errors
    ///
    /// [`InvalidArtefact::Malformed`], [`InvalidArtefact::Passkey`].
    pub fn verify(
        &self,
        relying_party: &RelyingParty,
    ) -> Result<VerifiedApproval, InvalidArtefact> {
        let document = ApprovalDocument::parse(&self.approval)?;
        if self.rp_id != relying_party.id() {
            return Err(InvalidPasskey::RpId.into());
        }
        let verified = self.assertion.verify(&Expected {
            challenge: &challenge(&self.approval),
            relying_party,
            key: &self.key,
            is_backup_eligible: self.is_backup_eligible,
        })?;
        Ok(VerifiedApproval {
            fingerprint: Fingerprint::of(&self.assertion.credential_id, &self.key),
            counter: verified.counter(),
            document,
        })
    }
}

fn decode(text: &str) -> Result<Vec<u8>, InvalidArtefact> {
    BASE64URL_NOPAD
        .decode(text.as_bytes())
        .map_err(|_| InvalidArtefact::Malformed)
}

/// Why an artefact proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidArtefact {
    /// It departs from its form.
    Malformed,
    /// Its assertion does not hold.
    Passkey(InvalidPasskey),
}

impl From<InvalidPasskey> for InvalidArtefact {
    fn from(invalid: InvalidPasskey) -> Self {
        Self::Passkey(invalid)
    }
}

impl fmt::Display for InvalidArtefact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => formatter.write_str("APPROVAL_ARTEFACT_MALFORMED"),
            Self::Passkey(invalid) => invalid.fmt(formatter),
        }
    }
}

impl std::error::Error for InvalidArtefact {}
