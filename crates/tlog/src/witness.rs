//! What a log sends to a witness (c2sp.org/tlog-witness).

use std::fmt;

use crate::checkpoint::SignedCheckpoint;
use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::note::MAX_NOTE_BYTES;
use crate::text;

/// Hashes of the longest consistency proof that a witness takes.
const MAX_HASHES: usize = 63;

/// Bytes of the longest request: those of a note, and 4 KiB for the proof.
pub const MAX_ADD_CHECKPOINT_BYTES: usize = MAX_NOTE_BYTES + 4096;

/// The body of an `add-checkpoint` request: a checkpoint, and its consistency with the one that the
/// witness cosigned last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    old_size: u64,
    proof: Vec<Hash>,
    checkpoint: SignedCheckpoint,
}

impl AddCheckpoint {
    /// A request from the size that the witness cosigned last, 0 for none. The old size is at most
    /// that of the checkpoint, and the proof at most 63 hashes, and none from 0.
    pub fn new(
        old_size: u64,
        proof: Vec<Hash>,
        checkpoint: SignedCheckpoint,
    ) -> Result<Self, Error> {
        let fits = old_size <= checkpoint.checkpoint().size()
            && proof.len() <= MAX_HASHES
            && (old_size > 0 || proof.is_empty());
        fits.then_some(Self {
            old_size,
            proof,
            checkpoint,
        })
        .ok_or(Error::Malformed(Form::AddCheckpoint))
    }

    /// Parses a request of at most [`MAX_ADD_CHECKPOINT_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = Error::Malformed(Form::AddCheckpoint);
        if bytes.len() > MAX_ADD_CHECKPOINT_BYTES {
            return Err(malformed);
        }
        let mut rest = str::from_utf8(bytes).map_err(|_| malformed)?;
        let (old_size, proof) = take_head(&mut rest).ok_or(malformed)?;
        Self::new(old_size, proof, SignedCheckpoint::parse(rest.as_bytes())?)
    }

    /// The size that the witness is said to have cosigned last.
    pub const fn old_size(&self) -> u64 {
        self.old_size
    }

    /// The consistency proof from the old size.
    pub fn proof(&self) -> &[Hash] {
        &self.proof
    }

    /// The checkpoint to cosign.
    pub const fn checkpoint(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "old {}", self.old_size)?;
        for hash in &self.proof {
            writeln!(formatter, "{hash}")?;
        }
        write!(formatter, "\n{}", self.checkpoint)
    }
}

/// Takes everything in front of the checkpoint.
fn take_head(rest: &mut &str) -> Option<(u64, Vec<Hash>)> {
    let old_size = text::decimal(text::take_line(rest)?.strip_prefix("old ")?)?;
    Some((old_size, text::take_hashes(rest, MAX_HASHES)?))
}
