//! Proof files: one entry's inclusion, verifiable offline (c2sp.org/tlog-proof).

use std::fmt;

use data_encoding::BASE64;

use crate::checkpoint::{SignedCheckpoint, VerifiedCheckpoint};
use crate::cosignature::Witnesses;
use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::key::Verifier;
use crate::note::MAX_NOTE_BYTES;
use crate::text;

const HEADER: &str = "c2sp.org/tlog-proof@v1";

/// Hashes of the longest inclusion proof.
const MAX_HASHES: usize = 64;

/// Bytes of the longest proof file: those of a note, and as many for the extra data.
pub const MAX_PROOF_FILE_BYTES: usize = 2 * MAX_NOTE_BYTES;

/// The proof that an entry is in a log: its index, the inclusion proof and a checkpoint. It does not
/// print its extra data.
#[derive(Clone, PartialEq, Eq)]
pub struct ProofFile {
    /// Data for the application, without any meaning here and not authenticated; empty where the file
    /// has no `extra` line.
    pub extra: Vec<u8>,
    /// The index of the entry.
    pub index: u64,
    /// The inclusion proof, from the leaf's sibling upwards.
    pub proof: Vec<Hash>,
    /// The checkpoint of the tree, with its signatures.
    pub checkpoint: SignedCheckpoint,
}

impl ProofFile {
    /// Parses a proof file of at most [`MAX_PROOF_FILE_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = Error::Malformed(Form::ProofFile);
        if bytes.len() > MAX_PROOF_FILE_BYTES {
            return Err(malformed);
        }
        let mut rest = str::from_utf8(bytes).map_err(|_| malformed)?;
        let (extra, index, proof) = take_head(&mut rest).ok_or(malformed)?;
        Ok(Self {
            extra,
            index,
            proof,
            checkpoint: SignedCheckpoint::parse(rest.as_bytes())?,
        })
    }

    /// Checks, without any other source, that the leaf is in the log of this origin: a key of the log
    /// signed the checkpoint, a quorum of witnesses cosigned it, and the leaf leads to its root.
    pub fn verify(
        &self,
        leaf: Hash,
        origin: &str,
        keys: &[&dyn Verifier],
        witnesses: &Witnesses,
    ) -> Result<VerifiedCheckpoint, Error> {
        let verified = self.checkpoint.verify(origin, keys, witnesses)?;
        let checkpoint = verified.checkpoint();
        checkpoint.verify_inclusion(leaf, self.index, &self.proof)?;
        Ok(verified)
    }
}

impl fmt::Display for ProofFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEADER}")?;
        if !self.extra.is_empty() {
            writeln!(formatter, "extra {}", BASE64.encode(&self.extra))?;
        }
        writeln!(formatter, "index {}", self.index)?;
        for hash in &self.proof {
            writeln!(formatter, "{hash}")?;
        }
        write!(formatter, "\n{}", self.checkpoint)
    }
}

impl fmt::Debug for ProofFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProofFile")
            .field("index", &self.index)
            .field("proof", &self.proof)
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

/// Takes everything in front of the checkpoint.
fn take_head(rest: &mut &str) -> Option<(Vec<u8>, u64, Vec<Hash>)> {
    if text::take_line(rest)? != HEADER {
        return None;
    }
    let mut line = text::take_line(rest)?;
    let mut extra = Vec::new();
    if let Some(encoded) = line.strip_prefix("extra ") {
        extra = text::base64(encoded).filter(|extra| !extra.is_empty())?;
        line = text::take_line(rest)?;
    }
    let index = text::decimal(line.strip_prefix("index ")?)?;
    Some((extra, index, text::take_hashes(rest, MAX_HASHES)?))
}
