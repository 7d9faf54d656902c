//! What is wrong with a log, and where.

use std::fmt;

use cl_model::refusal::Refusal;
use cl_tlog::TilePath;

/// Something in a log that does not verify.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) why: Why,
}

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The checkpoint of the log.
    Checkpoint,
    /// The checkpoint that the log is compared with.
    OlderCheckpoint,
    /// Another file of an exported log.
    File(String),
    /// A tile, or the entries beside one.
    Tile(TilePath),
    /// An entry as the store gives it, by its sequence.
    Entry(u64),
    /// A line of a file; the first is 1.
    Line(String, u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint => formatter.write_str("checkpoint"),
            Self::OlderCheckpoint => formatter.write_str("older checkpoint"),
            Self::File(name) => formatter.write_str(name),
            Self::Tile(path) => path.fmt(formatter),
            Self::Entry(sequence) => write!(formatter, "entry {sequence}"),
            Self::Line(file, line) => write!(formatter, "{file} line {line}"),
        }
    }
}

impl Place {
    pub(crate) const fn is(self, why: Why) -> Fault {
        Fault { place: self, why }
    }
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    #[error("it is not a signed checkpoint")]
    CheckpointMalformed,
    #[error("it is of another log, not of {expected}")]
    OtherLog { expected: String },
    #[error("none of the trusted keys signed it")]
    Unsigned,
    #[error("a signature under the name of a trusted key does not verify")]
    SignatureInvalid,
    #[error("{found} of the trusted witnesses cosigned it, and no quorum, which takes {quorum}")]
    TooFewWitnesses { found: usize, quorum: usize },
    #[error("it is none of the trusted keys")]
    KeyUntrusted,
    #[error("it is missing")]
    FileMissing,
    #[error("it does not have the form of a tile of this size")]
    TileMalformed,
    #[error("its hashes are not those of the tree that the checkpoint signs")]
    TileMismatch,
    #[error("the tiles and entries make another tree than the one it signs")]
    RootMismatch,
    #[error("entry {sequence} is not the one in the tree")]
    EntryMismatch { sequence: u64 },
    #[error("it cannot be read, or does not have its canonical form")]
    LineMalformed,
    #[error("it is cut off")]
    LineTruncated,
    #[error("it is missing: the checkpoint covers {size} entries")]
    LineMissing { size: u64 },
    #[error("it follows behind the last entry that the checkpoint covers")]
    LineSurplus,
    #[error("it is the one of entry {found}")]
    LineOrder { found: u64 },
    #[error("receipt and salt are not what the entry commits to")]
    ReceiptMismatch,
    #[error("the receipt breaks a rule: {0}")]
    Receipt(Refusal),
    #[error("the anchor of the portable log does not hold: {0}")]
    Anchor(Refusal),
    #[error("its proof is not a proof file")]
    ProofMalformed,
    #[error("its proof is not the one of this entry under the checkpoint")]
    ProofMismatch,
    #[error("it was recorded before the entry in front of it")]
    TimeBackwards,
    #[error("it supersedes a receipt that no earlier entry has")]
    SupersedesUnknown,
    #[error("it is not the portable form of this entry")]
    PortableMismatch,
    #[error(
        "rollback: the log has {size} entries and had {older}; entries that were signed are gone"
    )]
    Rollback { size: u64, older: u64 },
    #[error(
        "fork: the checkpoint of {size} entries does not continue the one of {older}; \
         two histories were signed"
    )]
    Fork { size: u64, older: u64 },
}

impl Why {
    /// The stable code. Those of the receipt log's services have the same meaning.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::CheckpointMalformed => "RECEIPT_LOG_CHECKPOINT_MALFORMED",
            Self::OtherLog { .. } => "RECEIPT_LOG_ORIGIN_MISMATCH",
            Self::Unsigned => "RECEIPT_LOG_UNSIGNED",
            Self::SignatureInvalid => "RECEIPT_LOG_SIGNATURE_INVALID",
            Self::TooFewWitnesses { .. } => "RECEIPT_LOG_QUORUM_NOT_REACHED",
            Self::KeyUntrusted => "RECEIPT_LOG_KEY_UNTRUSTED",
            Self::FileMissing => "RECEIPT_LOG_FILE_MISSING",
            Self::TileMalformed => "RECEIPT_LOG_TILE_MALFORMED",
            Self::TileMismatch => "RECEIPT_LOG_TILE_MISMATCH",
            Self::RootMismatch => "RECEIPT_LOG_ROOT_MISMATCH",
            Self::EntryMismatch { .. } => "RECEIPT_LOG_ENTRY_MISMATCH",
            Self::LineMalformed => "RECEIPT_LOG_LINE_MALFORMED",
            Self::LineTruncated | Self::LineMissing { .. } => "RECEIPT_LOG_TRUNCATED",
            Self::LineSurplus => "RECEIPT_LOG_LINE_SURPLUS",
            Self::LineOrder { .. } => "RECEIPT_LOG_LINE_ORDER",
            Self::ReceiptMismatch => "RECEIPT_LOG_RECEIPT_MISMATCH",
            Self::Receipt(refusal) | Self::Anchor(refusal) => refusal.code().as_str(),
            Self::ProofMalformed => "RECEIPT_LOG_PROOF_MALFORMED",
            Self::ProofMismatch => "RECEIPT_LOG_PROOF_MISMATCH",
            Self::TimeBackwards => "RECEIPT_LOG_TIME_BACKWARDS",
            Self::SupersedesUnknown => "RECEIPT_LOG_SUPERSEDES_UNKNOWN",
            Self::PortableMismatch => "RECEIPT_LOG_PORTABLE_MISMATCH",
            Self::Rollback { .. } => "RECEIPT_LOG_ROLLBACK",
            Self::Fork { .. } => "RECEIPT_LOG_FORK",
        }
    }

    /// What to do next, where that is known.
    pub(crate) const fn next(&self) -> Option<&'static str> {
        match self {
            Self::Fork { .. } => {
                Some("keep both checkpoints: together they prove that two histories were signed")
            }
            Self::Rollback { .. } => Some("keep both checkpoints, and look for what is gone"),
            Self::Unsigned | Self::KeyUntrusted => {
                Some("name the key of the log with --key if it is no longer in trust.json")
            }
            Self::CheckpointMalformed
            | Self::OtherLog { .. }
            | Self::SignatureInvalid
            | Self::TooFewWitnesses { .. }
            | Self::FileMissing
            | Self::TileMalformed
            | Self::TileMismatch
            | Self::RootMismatch
            | Self::EntryMismatch { .. }
            | Self::LineMalformed
            | Self::LineTruncated
            | Self::LineMissing { .. }
            | Self::LineSurplus
            | Self::LineOrder { .. }
            | Self::ReceiptMismatch
            | Self::Receipt(_)
            | Self::Anchor(_)
            | Self::ProofMalformed
            | Self::ProofMismatch
            | Self::TimeBackwards
            | Self::SupersedesUnknown
            | Self::PortableMismatch => None,
        }
    }
}
