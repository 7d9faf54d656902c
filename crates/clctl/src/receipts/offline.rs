//! Verifying lines of an export by nothing but their own proofs.

use std::collections::BTreeMap;
use std::path::Path;

use cl_model::time::UnixTime;
use cl_tlog::{Hash, ProofFile, SignedCheckpoint};

use super::fault::{Place, Why};
use super::folder::Lines;
use super::kept::Kept;
use super::keys::LogKeys;
use super::walk::check_receipt;
use crate::error::Error;

/// Lines that all verified.
#[derive(Debug)]
pub(crate) struct VerifiedLines {
    pub(crate) lines: u64,
    /// How many of them are tombstones.
    pub(crate) erased: u64,
    /// The largest checkpoint among their proofs.
    pub(crate) newest: SignedCheckpoint,
}

/// Verifies each line of a file, and that they can be of one log.
pub(crate) fn verify(file: &Path, keys: &LogKeys) -> Result<VerifiedLines, Error> {
    let name = file.display().to_string();
    let mut lines = Lines::open(file, &name)?;
    let mut seen = Seen::default();
    let (mut count, mut erased) = (0, 0);
    while let Some(line) = lines.next()? {
        let verified = Kept::of_line(&line).and_then(|(kept, proof)| {
            check_proof(kept.sequence(), &kept.leaf(), &proof, keys)?;
            match &kept {
                Kept::Receipt(recorded) => drop(check_receipt(recorded)?),
                Kept::Tombstone(_) => erased += 1,
            }
            seen.check(&kept, proof)
        });
        verified.map_err(|why| lines.place().is(why))?;
        count += 1;
    }
    let newest = seen.checkpoints.into_values().next_back();
    let newest = newest.ok_or_else(|| Place::File(name).is(Why::LineMissing { size: 1 }))?;
    Ok(VerifiedLines {
        lines: count,
        erased,
        newest,
    })
}

/// Checks that an entry is in a log, by its proof alone.
pub(crate) fn check_proof(
    sequence: u64,
    leaf: &[u8],
    proof: &ProofFile,
    keys: &LogKeys,
) -> Result<(), Why> {
    let checkpoint = keys.verify(&proof.checkpoint)?;
    if proof.index.checked_add(1) != Some(sequence) {
        return Err(Why::ProofMismatch);
    }
    checkpoint
        .verify_inclusion(Hash::of_leaf(leaf), proof.index, &proof.proof)
        .map_err(|_| Why::ProofMismatch)
}

/// What the lines so far say about the log.
#[derive(Debug, Default)]
struct Seen {
    /// By size.
    checkpoints: BTreeMap<u64, SignedCheckpoint>,
    latest: Option<(u64, UnixTime)>,
}

impl Seen {
    fn check(&mut self, kept: &Kept, proof: ProofFile) -> Result<(), Why> {
        let size = proof.checkpoint.checkpoint().size();
        let known = self.checkpoints.entry(size);
        let root = proof.checkpoint.checkpoint().root();
        if known.or_insert(proof.checkpoint).checkpoint().root() != root {
            return Err(Why::Fork { size, older: size });
        }
        let now = (kept.sequence(), kept.recorded_at());
        let is_behind = |(sequence, _): (u64, _)| now.0 > sequence;
        if self
            .latest
            .filter(|it| is_behind(*it))
            .is_some_and(|it| now.1 < it.1)
        {
            return Err(Why::TimeBackwards);
        }
        self.latest = Some(now);
        Ok(())
    }
}
