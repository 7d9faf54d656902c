//! Timestamped cosignatures of witnesses, and their quorum (c2sp.org/tlog-cosignature).

use std::collections::BTreeSet;

use ring::signature::Ed25519KeyPair;

use crate::checkpoint::SignedCheckpoint;
use crate::error::Error;
use crate::key::{Algorithm, KeyName, Verifier, VerifierKey, pair_of};
use crate::note::Signature;

/// The last time that a cosignature can state, in seconds since 1970.
const MAX_TIMESTAMP: u64 = i64::MAX as u64;

/// A verified statement of a witness: at this time the checkpoint was the largest that it had seen of
/// the log, and consistent with those before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    witness: KeyName,
    timestamp: u64,
}

impl Cosignature {
    /// The name of the witness.
    pub const fn witness(&self) -> &KeyName {
        &self.witness
    }

    /// When it cosigned, in seconds since 1970.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }
}

/// The witnesses that are trusted, and which of them must have cosigned. The default trusts none and
/// needs none.
#[derive(Clone, Debug, Default)]
pub struct Witnesses {
    keys: Vec<VerifierKey>,
    quorum: Quorum,
}

impl Witnesses {
    /// Cosigning keys, each once, of which at least `quorum` must have cosigned. One key under two
    /// names would count twice and is refused.
    pub fn new(keys: Vec<VerifierKey>, quorum: usize) -> Result<Self, Error> {
        let different: BTreeSet<_> = keys.iter().map(VerifierKey::public_key).collect();
        let cosigning = |key: &VerifierKey| key.algorithm() == Algorithm::Cosignature;
        if different.len() < keys.len() || quorum > keys.len() || !keys.iter().all(cosigning) {
            return Err(Error::InvalidWitnesses);
        }
        let quorum = Quorum::Group {
            threshold: quorum,
            members: (0..keys.len()).map(Quorum::Witness).collect(),
        };
        Ok(Self { keys, quorum })
    }

    /// Cosigning keys, each once, and a quorum of them by their places.
    pub(crate) const fn by(keys: Vec<VerifierKey>, quorum: Quorum) -> Self {
        Self { keys, quorum }
    }

    /// The cosignatures of the trusted witnesses, all of them good and at least the quorum.
    pub(crate) fn verify(&self, signed: &SignedCheckpoint) -> Result<Vec<Cosignature>, Error> {
        let keys: Vec<&dyn Verifier> = self.keys.iter().map(|key| key as &dyn Verifier).collect();
        let good = signed.note().good(&keys)?;
        let place = |signature: &&Signature| self.keys.iter().position(|it| signature.names(it));
        let places: BTreeSet<_> = good.iter().filter_map(place).collect();
        let cosignatures: Vec<_> = good
            .into_iter()
            .filter_map(|signature| {
                let (timestamp, _) = split(signature.bytes())?;
                let witness = signature.name().clone();
                Some(Cosignature { witness, timestamp })
            })
            .collect();
        if !self.quorum.is_reached(&places) {
            return Err(Error::QuorumNotReached {
                found: cosignatures.len(),
                quorum: self.quorum.fewest(),
            });
        }
        Ok(cosignatures)
    }
}

/// Who must have cosigned: one witness, or so many members of a group.
#[derive(Clone, Debug)]
pub(crate) enum Quorum {
    /// The witness at a place.
    Witness(usize),
    /// At least `threshold` of the members.
    Group {
        /// How many; nobody is needed for 0.
        threshold: usize,
        /// Witnesses and groups.
        members: Vec<Self>,
    },
}

impl Quorum {
    fn is_reached(&self, cosigned: &BTreeSet<usize>) -> bool {
        match self {
            Self::Witness(witness) => cosigned.contains(witness),
            Self::Group { threshold, members } => {
                let reached = members.iter().filter(|member| member.is_reached(cosigned));
                reached.take(*threshold).count() == *threshold
            }
        }
    }

    /// How many witnesses can reach it.
    fn fewest(&self) -> usize {
        match self {
            Self::Witness(_) => 1,
            Self::Group { threshold, members } => {
                let mut fewest: Vec<_> = members.iter().map(Self::fewest).collect();
                fewest.sort_unstable();
                fewest.iter().take(*threshold).sum()
            }
        }
    }
}

impl Default for Quorum {
    fn default() -> Self {
        Self::Group {
            threshold: 0,
            members: Vec::new(),
        }
    }
}

/// The private key of a witness.
#[derive(Debug)]
pub struct Cosigner {
    pair: Ed25519KeyPair,
    verifier: VerifierKey,
}

impl Cosigner {
    /// The key of a 32-byte seed (RFC 8032). A key must not cosign under two names.
    pub fn from_seed(name: KeyName, seed: &[u8]) -> Result<Self, Error> {
        let (pair, public_key) = pair_of(seed)?;
        let verifier = VerifierKey::new(name, Algorithm::Cosignature, public_key);
        Ok(Self { pair, verifier })
    }

    /// The public half.
    pub const fn verifier_key(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Cosigns a checkpoint at a time in seconds since 1970. The witness has checked before that it
    /// is consistent with what it cosigned last.
    pub fn cosign(&self, signed: &SignedCheckpoint, timestamp: u64) -> Result<Signature, Error> {
        if timestamp > MAX_TIMESTAMP {
            return Err(Error::SignerFailed);
        }
        let message = message(timestamp, signed.note().text());
        let mut bytes = timestamp.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.pair.sign(message.as_bytes()).as_ref());
        let signature = Signature::new(self.verifier.name().clone(), self.verifier.id(), bytes);
        signature.ok_or(Error::SignerFailed)
    }
}

/// What a witness signs.
pub(crate) fn message(timestamp: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {timestamp}\n{text}")
}

/// Splits the bytes of a cosignature into its time and the signature proper.
pub(crate) fn split(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (timestamp, signature) = bytes.split_first_chunk()?;
    let timestamp = u64::from_be_bytes(*timestamp);
    (timestamp <= MAX_TIMESTAMP).then_some((timestamp, signature))
}
