//! Whether a receipt is the entry of a log that a trusted key signed.

use std::sync::Arc;

use cl_host::trust::Trust;
use cl_model::leaf;
use cl_model::time::UnixTime;
use cl_model::trust::RECEIPTS;
use cl_tlog::{
    Algorithm, Error as TreeError, Hash, KeyName, ProofFile, Verifier, VerifierKey, Witnesses,
};

use super::Recorded;

/// The keys that sign the receipt logs of a trust domain.
#[derive(Clone, Debug)]
pub struct Log {
    trust: Arc<Trust>,
    trust_domain: String,
}

/// A proof that holds.
pub(super) struct Proven {
    /// The number of entries that the signed checkpoint covers.
    pub(super) size: u64,
    /// The name of the log.
    pub(super) origin: String,
}

/// Why a proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Why {
    #[error("it is not a proof file")]
    Malformed,
    #[error("it is of another log")]
    OtherLog,
    #[error("none of the trusted keys signed its checkpoint")]
    Unsigned,
    #[error("it is not the proof of this receipt at this place")]
    Mismatch,
}

impl Why {
    /// The stable code, as for a log that is verified offline.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "RECEIPT_LOG_PROOF_MALFORMED",
            Self::OtherLog => "RECEIPT_LOG_ORIGIN_MISMATCH",
            Self::Unsigned => "RECEIPT_LOG_UNSIGNED",
            Self::Mismatch => "RECEIPT_LOG_PROOF_MISMATCH",
        }
    }
}

impl Log {
    /// The logs that are named after a trust domain, with the keys that the trust file names.
    pub fn new(trust: Arc<Trust>, trust_domain: String) -> Self {
        Self {
            trust,
            trust_domain,
        }
    }

    pub(super) fn prove(
        &self,
        tenant: &str,
        recorded: &Recorded,
        proof: &str,
        now: UnixTime,
    ) -> Result<Proven, Why> {
        let proof = ProofFile::parse(proof.as_bytes()).map_err(|_| Why::Malformed)?;
        let origin = leaf::origin(&self.trust_domain, tenant);
        let name = KeyName::new(&origin).ok_or(Why::OtherLog)?;
        let keys = self.trust.public_keys(RECEIPTS, now);
        let keys: Vec<_> = keys
            .iter()
            .map(|key| VerifierKey::new(name.clone(), Algorithm::Ed25519, *key.as_bytes()))
            .collect();
        let keys: Vec<&dyn Verifier> = keys.iter().map(|key| key as &dyn Verifier).collect();
        if proof.index.checked_add(1) != Some(recorded.sequence) {
            return Err(Why::Mismatch);
        }
        let entry = leaf::entry(&recorded.salt, &recorded.text);
        let verified = proof.verify(Hash::of_leaf(&entry), &origin, &keys, &Witnesses::default());
        let verified = verified.map_err(|error| {
            if error == TreeError::OriginMismatch {
                Why::OtherLog
            } else if error == TreeError::Unsigned || error == TreeError::BadSignature {
                Why::Unsigned
            } else {
                Why::Mismatch
            }
        })?;
        let size = verified.checkpoint().size();
        Ok(Proven { size, origin })
    }
}
