//! By which keys a log is verified, and under which name.

use std::path::Path;

use cl_host::files::{self, MAX_PUBLIC_BYTES};
use cl_model::anchor::{AnchorCheck, log_id_of_path};
use cl_model::key::PublicKey;
use cl_model::leaf;
use cl_model::scalar::KeyId;
use cl_model::trust::{MAX_TRUST_BYTES, RECEIPTS, TrustFile};
use cl_tlog::{
    Algorithm, Checkpoint, Error as TreeError, KeyName, MAX_POLICY_BYTES, Policy, SignedCheckpoint,
    Verifier, VerifierKey, Witnesses,
};

use super::fault::{Fault, Place, Why};
use crate::certificates::trust_domain;
use crate::error::Error;
use crate::session::Session;

/// The name of a log and the keys that sign its checkpoints.
#[derive(Debug)]
pub(crate) struct LogKeys {
    origin: String,
    keys: Vec<VerifierKey>,
    witnesses: Witnesses,
}

impl LogKeys {
    /// The log of a tenant of this home, with the keys that its trust file names for receipts: also
    /// those that have been replaced, but none that was revoked.
    pub(crate) fn of_home(session: &Session, tenant: &str) -> Result<Self, Error> {
        session.home.check()?;
        let path = session.home.trust();
        let limit = u64::try_from(MAX_TRUST_BYTES).unwrap_or(MAX_PUBLIC_BYTES);
        let trust = files::load_public(&path, limit)?;
        let trust =
            TrustFile::parse(&trust).map_err(|refusal| Error::Document { path, refusal })?;
        let origin = leaf::origin(&trust_domain(session)?, tenant);
        let name = KeyName::new(&origin).ok_or(Error::TrustDomain)?;
        let keys = trust.verifying_keys(RECEIPTS, session.now());
        let keys =
            keys.map(|key| VerifierKey::new(name.clone(), Algorithm::Ed25519, *key.as_bytes()));
        Ok(Self {
            keys: keys.collect(),
            origin,
            witnesses: Witnesses::default(),
        })
    }

    /// The log that these keys are named after; none if there is no key, or one is of another log.
    pub(crate) fn of_keys(keys: &[VerifierKey]) -> Option<Self> {
        let origin = keys.first()?.name().as_str();
        let is_one = keys.iter().all(|key| key.name().as_str() == origin);
        is_one.then(|| Self {
            origin: origin.to_owned(),
            keys: keys.to_vec(),
            witnesses: Witnesses::default(),
        })
    }

    /// The same log, of which a quorum of these witnesses must have cosigned each checkpoint.
    pub(crate) fn witnessed(self, witnesses: Witnesses) -> Self {
        Self { witnesses, ..self }
    }

    /// What checks an anchor of the portable log, for each key that may have signed it.
    pub(crate) fn anchor_checks(&self) -> Vec<AnchorCheck> {
        let log_id = log_id_of_path(&self.origin);
        let keys = self.keys.iter().filter_map(|key| {
            let kid = KeyId::new("urn:cl:key:receipts:anchor")?;
            Some(PublicKey::new(kid, *key.public_key()))
        });
        keys.map(|key| AnchorCheck::new(log_id, key)).collect()
    }

    /// The name of the log.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether this is the text of one of the keys.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.keys.iter().any(|key| key.to_string() == text)
    }

    /// The key that signed this checkpoint.
    pub(crate) fn signer_of(&self, signed: &SignedCheckpoint) -> Option<&VerifierKey> {
        let is_signer = |key: &&VerifierKey| self.check(signed, &[*key]).is_ok();
        self.keys.iter().find(is_signer)
    }

    /// Reads a checkpoint of this log that one of its keys signed.
    pub(crate) fn read(&self, bytes: &[u8], place: &Place) -> Result<SignedCheckpoint, Fault> {
        let signed = SignedCheckpoint::parse(bytes);
        let signed = signed.map_err(|_| place.clone().is(Why::CheckpointMalformed))?;
        self.verify(&signed)
            .map_err(|why| place.clone().is(why))
            .map(|_| signed)
    }

    /// Checks name and signature of a checkpoint.
    pub(crate) fn verify(&self, signed: &SignedCheckpoint) -> Result<Checkpoint, Why> {
        let keys: Vec<&VerifierKey> = self.keys.iter().collect();
        self.check(signed, &keys).map_err(|error| {
            if error == TreeError::OriginMismatch {
                let expected = self.origin.clone();
                Why::OtherLog { expected }
            } else if error == TreeError::Unsigned {
                Why::Unsigned
            } else if let TreeError::QuorumNotReached { found, quorum } = error {
                Why::TooFewWitnesses { found, quorum }
            } else {
                Why::SignatureInvalid
            }
        })
    }

    fn check(
        &self,
        signed: &SignedCheckpoint,
        keys: &[&VerifierKey],
    ) -> Result<Checkpoint, TreeError> {
        let keys: Vec<&dyn Verifier> = keys.iter().map(|key| *key as &dyn Verifier).collect();
        let verified = signed.verify(&self.origin, &keys, &self.witnesses)?;
        Ok(verified.checkpoint().clone())
    }
}

/// Reads a policy of witnesses from a file (c2sp.org/tlog-policy).
pub(crate) fn witnesses(path: &Path) -> Result<Witnesses, Error> {
    let limit = u64::try_from(MAX_POLICY_BYTES).unwrap_or(MAX_PUBLIC_BYTES);
    let text = files::load_public(path, limit)?;
    // What is not text is wrong in its first line.
    let policy = Policy::parse(str::from_utf8(&text).unwrap_or("\0"));
    let policy = policy.map_err(|error| Error::WitnessPolicy {
        path: path.to_owned(),
        error,
    })?;
    Ok(policy.witnesses())
}

/// Reads a verifier key as an argument.
pub(crate) fn verifier_key(text: &str) -> Result<VerifierKey, String> {
    let key = VerifierKey::parse(text.trim()).map_err(|error| error.to_string())?;
    if key.algorithm() == Algorithm::Ed25519 {
        return Ok(key);
    }
    Err("not the key of a log".to_owned())
}
