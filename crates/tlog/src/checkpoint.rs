//! Checkpoints: the signed size and root of a tree (c2sp.org/tlog-checkpoint).

use std::fmt;

use crate::cosignature::{Cosignature, Witnesses};
use crate::error::{Error, Form};
use crate::hash::Hash;
use crate::key::{Signer, Verifier};
use crate::merkle;
use crate::note::{Note, Signature};
use crate::text;

/// The text of a checkpoint: which log, its size and root, and further lines without a meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    size: u64,
    root: Hash,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// A checkpoint without extension lines. The origin is one line that is not empty; the empty tree
    /// has one root only.
    pub fn new(origin: &str, size: u64, root: Hash) -> Result<Self, Error> {
        let checkpoint = Self {
            origin: origin.to_owned(),
            size,
            root,
            extensions: Vec::new(),
        };
        let same = Self::parse(&checkpoint.to_string())? == checkpoint;
        let same = same.then_some(checkpoint);
        same.ok_or(Error::Malformed(Form::Checkpoint))
    }

    /// Parses the text of a note.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parse = |mut rest| {
            let origin = text::take_line(&mut rest)?;
            let size = text::decimal(text::take_line(&mut rest)?)?;
            let root = Hash::parse(text::take_line(&mut rest)?)?;
            let mut extensions = Vec::new();
            while !rest.is_empty() {
                extensions.push(text::take_line(&mut rest)?.to_owned());
            }
            let valid = !origin.is_empty()
                && !extensions.iter().any(String::is_empty)
                && (size > 0 || root == Hash::EMPTY);
            valid.then(|| Self {
                origin: origin.to_owned(),
                size,
                root,
                extensions,
            })
        };
        parse(text).ok_or(Error::Malformed(Form::Checkpoint))
    }

    /// The identity of the log.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How many leaves the tree has.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    pub const fn root(&self) -> Hash {
        self.root
    }

    /// The lines behind the root.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Checks that the leaf is at `index` of this tree.
    pub fn verify_inclusion(&self, leaf: Hash, index: u64, proof: &[Hash]) -> Result<(), Error> {
        merkle::verify_inclusion(leaf, index, self.size, proof, self.root)
    }

    /// Checks that this tree begins with the one of an older checkpoint of the same log.
    pub fn verify_consistency(&self, old: &Self, proof: &[Hash]) -> Result<(), Error> {
        if old.origin != self.origin {
            return Err(Error::OriginMismatch);
        }
        merkle::verify_consistency(old.size, old.root, self.size, self.root, proof)
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}\n{}\n{}", self.origin, self.size, self.root)?;
        self.extensions
            .iter()
            .try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

/// A note whose text is a checkpoint. No signature is verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    note: Note,
    checkpoint: Checkpoint,
}

impl SignedCheckpoint {
    /// Signs a checkpoint. The log answers for it being consistent with all that it signed before.
    pub fn sign(checkpoint: Checkpoint, signers: &[&dyn Signer]) -> Result<Self, Error> {
        let note = Note::sign(checkpoint.to_string(), signers)?;
        Ok(Self { note, checkpoint })
    }

    /// Parses a note with a checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let note = Note::parse(bytes)?;
        let checkpoint = Checkpoint::parse(note.text())?;
        Ok(Self { note, checkpoint })
    }

    /// The note with all signatures.
    pub const fn note(&self) -> &Note {
        &self.note
    }

    /// What the text says, unverified.
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Adds a signature, such as a cosignature, in place of an earlier one by the same key.
    pub fn add(&mut self, signature: Signature) -> Result<(), Error> {
        self.note.add(signature)
    }

    /// The good cosignatures of these witnesses, at least their quorum.
    pub fn cosignatures(&self, witnesses: &Witnesses) -> Result<Vec<Cosignature>, Error> {
        witnesses.verify(self)
    }

    /// Checks that it is a checkpoint of this log by one of the log's keys, and that a quorum of
    /// witnesses cosigned it. A wrong signature that names one of these keys is refused.
    pub fn verify(
        &self,
        origin: &str,
        keys: &[&dyn Verifier],
        witnesses: &Witnesses,
    ) -> Result<VerifiedCheckpoint, Error> {
        if self.checkpoint.origin != origin {
            return Err(Error::OriginMismatch);
        }
        self.note.verify(keys)?;
        Ok(VerifiedCheckpoint {
            cosignatures: witnesses.verify(self)?,
            checkpoint: self.checkpoint.clone(),
        })
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.note, formatter)
    }
}

/// A checkpoint that a key of the expected log signed, with the cosignatures of the trusted
/// witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCheckpoint {
    checkpoint: Checkpoint,
    cosignatures: Vec<Cosignature>,
}

impl VerifiedCheckpoint {
    /// The checkpoint.
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The cosignatures, at least the quorum. Whether they are fresh enough is for the caller to say.
    pub fn cosignatures(&self) -> &[Cosignature] {
        &self.cosignatures
    }
}
