//! What an entry, a tile, a proof or a text is refused for.

use std::fmt;

use thiserror::Error as ThisError;

use crate::tile::Tile;

/// A form of bytes or text that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The hashes of one tile.
    Tile,
    /// The entries beside one tile of level 0.
    EntryBundle,
    /// A signed note or a signature line.
    Note,
    /// A verifier key.
    VerifierKey,
    /// The text of a checkpoint.
    Checkpoint,
    /// A proof file.
    ProofFile,
    /// The body of an `add-checkpoint` request.
    AddCheckpoint,
    /// The answer of a witness.
    WitnessAnswer,
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tile => "tile",
            Self::EntryBundle => "entry bundle",
            Self::Note => "signed note",
            Self::VerifierKey => "verifier key",
            Self::Checkpoint => "checkpoint",
            Self::ProofFile => "proof file",
            Self::AddCheckpoint => "add-checkpoint request",
            Self::WitnessAnswer => "witness answer",
        })
    }
}

/// Why something was refused. No variant carries an entry, a name or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// The entry does not fit the length prefix of an entry bundle.
    #[error("the entry has {bytes} bytes, more than 65535")]
    EntryTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The size of the tree does not fit 64 bits.
    #[error("the tree cannot grow that far")]
    TreeFull,
    /// An index, or the older of two sizes, is not in the tree.
    #[error("{at} is beyond the tree of size {size}")]
    BeyondTree {
        /// The index or the older size.
        at: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The proof has more or fewer hashes than the place in the tree needs.
    #[error("the proof has the wrong number of hashes")]
    ProofLength,
    /// The hashes do not lead to the root.
    #[error("the hashes do not lead to the root")]
    RootMismatch,
    /// A tile is neither there as it was at this size nor full.
    #[error("{0} is missing")]
    TileMissing(Tile),
    /// A tile is of another tree.
    #[error("{0} is not of this tree")]
    TileMismatch(Tile),
    /// The form is not followed, or its limits are exceeded.
    #[error("malformed {0}")]
    Malformed(Form),
    /// The verifier key is for an algorithm that is not supported.
    #[error("signature algorithm {0:#04x} is not supported")]
    UnknownAlgorithm(u8),
    /// The checkpoint is of another log.
    #[error("the checkpoint is of another origin")]
    OriginMismatch,
    /// None of the keys signed.
    #[error("none of the keys signed")]
    Unsigned,
    /// A signature that names a known key is not by that key.
    #[error("a signature by a known key does not verify")]
    BadSignature,
    /// A known key signed twice.
    #[error("a known key signed twice")]
    DuplicateSignature,
    /// The witnesses cannot reach the quorum, are not cosigning keys, or one key is there twice.
    #[error("the witnesses and their quorum do not fit")]
    InvalidWitnesses,
    /// The policy is too long, or one of its lines is wrong.
    #[error("line {line} of the policy is wrong")]
    Policy {
        /// The line, from 1; the one behind the last if something is missing.
        line: usize,
    },
    /// Fewer witnesses cosigned than the quorum.
    #[error("{found} witnesses cosigned, and no quorum of {quorum}")]
    QuorumNotReached {
        /// How many did.
        found: usize,
        /// How many can be enough.
        quorum: usize,
    },
    /// The signer made no signature.
    #[error("the signer failed")]
    SignerFailed,
}

impl Error {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::EntryTooLong { .. } => "entry_too_long",
            Self::TreeFull => "tree_full",
            Self::BeyondTree { .. } => "beyond_tree",
            Self::ProofLength => "proof_length",
            Self::RootMismatch => "root_mismatch",
            Self::TileMissing(_) => "tile_missing",
            Self::TileMismatch(_) => "tile_mismatch",
            Self::Malformed(Form::Tile) => "malformed_tile",
            Self::Malformed(Form::EntryBundle) => "malformed_entry_bundle",
            Self::Malformed(Form::Note) => "malformed_note",
            Self::Malformed(Form::VerifierKey) => "malformed_verifier_key",
            Self::Malformed(Form::Checkpoint) => "malformed_checkpoint",
            Self::Malformed(Form::ProofFile) => "malformed_proof_file",
            Self::Malformed(Form::AddCheckpoint) => "malformed_add_checkpoint",
            Self::Malformed(Form::WitnessAnswer) => "malformed_witness_answer",
            Self::Policy { .. } => "malformed_policy",
            Self::UnknownAlgorithm(_) => "unknown_algorithm",
            Self::OriginMismatch => "origin_mismatch",
            Self::Unsigned => "unsigned",
            Self::BadSignature => "bad_signature",
            Self::DuplicateSignature => "duplicate_signature",
            Self::InvalidWitnesses => "invalid_witnesses",
            Self::QuorumNotReached { .. } => "quorum_not_reached",
            Self::SignerFailed => "signer_failed",
        }
    }
}

/// Why tiles gave no answer: the reader failed, or what it read is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum ReadError<E> {
    /// The reader's own error.
    #[error("a tile could not be read")]
    Read(#[source] E),
    /// What was asked for or read is refused.
    #[error(transparent)]
    Refused(#[from] Error),
}
