//! What a log and a witness say to each other (c2sp.org/tlog-witness).

use std::fmt;

use crate::checkpoint::SignedCheckpoint;
use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::key::VerifierKey;
use crate::note::{MAX_NOTE_BYTES, MAX_SIGNATURES, Note, Signature};
use crate::text;

/// Hashes of the longest consistency proof that a witness takes.
const MAX_HASHES: usize = 63;

/// Bytes of the longest request: those of a note, and 4 KiB for the proof.
pub const MAX_ADD_CHECKPOINT_BYTES: usize = MAX_NOTE_BYTES + 4096;

/// Bytes of the longest answer of a witness that is read.
pub const MAX_ANSWER_BYTES: usize = 1 << 16;

/// The HTTP status of an answer that the old size is not the witness's.
const CONFLICT: u16 = 409;

/// The HTTP status of an answer with cosignatures.
const OK: u16 = 200;

/// The HTTP status of an answer that the proof does not fit what was cosigned before.
const UNPROCESSABLE: u16 = 422;

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

/// What a witness answered to an `add-checkpoint` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessAnswer {
    /// Its cosignature, which verifies.
    Cosigned(Signature),
    /// The old size is not its own, which is this one.
    OldSize(u64),
    /// The checkpoint is not consistent with the one that it cosigned last.
    Inconsistent,
    /// Another refusal, by its HTTP status.
    Refused(u16),
}

impl WitnessAnswer {
    /// Reads the status and body of an answer about a checkpoint, of at most [`MAX_ANSWER_BYTES`]. Of
    /// several signatures the one by `key` counts, and it must be good.
    pub fn parse(
        status: u16,
        body: &[u8],
        checkpoint: &SignedCheckpoint,
        key: &VerifierKey,
    ) -> Result<Self, Error> {
        let malformed = Error::Malformed(Form::WitnessAnswer);
        let body = str::from_utf8(body).map_err(|_| malformed)?;
        if body.len() > MAX_ANSWER_BYTES {
            return Err(malformed);
        }
        match status {
            OK => {
                let signatures = body.lines().take(MAX_SIGNATURES).map(Signature::parse);
                let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
                let own = signatures.into_iter().find(|it| it.names(key));
                let own = own.ok_or(Error::Unsigned)?;
                let mut cosigned: Note = checkpoint.note().clone();
                cosigned.add(own.clone())?;
                cosigned.verify(&[key])?;
                Ok(Self::Cosigned(own))
            }
            CONFLICT => {
                let size = body.strip_suffix('\n').and_then(text::decimal);
                Ok(Self::OldSize(size.ok_or(malformed)?))
            }
            UNPROCESSABLE => Ok(Self::Inconsistent),
            status => Ok(Self::Refused(status)),
        }
    }
}

/// Takes everything in front of the checkpoint.
fn take_head(rest: &mut &str) -> Option<(u64, Vec<Hash>)> {
    let old_size = text::decimal(text::take_line(rest)?.strip_prefix("old ")?)?;
    Some((old_size, text::take_hashes(rest, MAX_HASHES)?))
}
