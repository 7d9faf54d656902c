//! Verifying lines of an export by nothing but their own proofs.

use std::collections::BTreeMap;
use std::path::Path;

use cl_model::leaf;
use cl_model::time::UnixTime;
use cl_tlog::{Hash, ProofFile, SignedCheckpoint};

use super::fault::{Place, Why};
use super::folder::Lines;
use super::keys::LogKeys;
use super::recorded::Recorded;
use super::walk::check_receipt;
use crate::error::Error;

/// Lines that all verified.
#[derive(Debug)]
pub(crate) struct VerifiedLines {
    pub(crate) lines: u64,
    /// The largest checkpoint among their proofs.
    pub(crate) newest: SignedCheckpoint,
}

/// Verifies each line of a file, and that they can be of one log.
pub(crate) fn verify(file: &Path, keys: &LogKeys) -> Result<VerifiedLines, Error> {
    let name = file.display().to_string();
    let mut lines = Lines::open(file, &name)?;
    let mut seen = Seen::default();
    let mut count = 0;
    while let Some(line) = lines.next()? {
        let verified = Recorded::of_line(&line).and_then(|(recorded, proof)| {
            check_proof(&recorded, &proof, keys)?;
            check_receipt(&recorded)?;
            seen.check(&recorded, proof)
        });
        verified.map_err(|why| lines.place().is(why))?;
        count += 1;
    }
    let newest = seen.checkpoints.into_values().next_back();
    let newest = newest.ok_or_else(|| Place::File(name).is(Why::LineMissing { size: 1 }))?;
    Ok(VerifiedLines {
        lines: count,
        newest,
    })
}

/// Checks that a receipt is the entry of a log, by its proof alone.
pub(crate) fn check_proof(
    recorded: &Recorded,
    proof: &ProofFile,
    keys: &LogKeys,
) -> Result<(), Why> {
    let checkpoint = keys.verify(&proof.checkpoint)?;
    if proof.index.checked_add(1) != Some(recorded.sequence) {
        return Err(Why::ProofMismatch);
    }
    let entry = leaf::entry(&recorded.salt, &recorded.text);
    checkpoint
        .verify_inclusion(Hash::of_leaf(&entry), proof.index, &proof.proof)
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
    fn check(&mut self, recorded: &Recorded, proof: ProofFile) -> Result<(), Why> {
        let size = proof.checkpoint.checkpoint().size();
        let known = self.checkpoints.entry(size);
        let root = proof.checkpoint.checkpoint().root();
        if known.or_insert(proof.checkpoint).checkpoint().root() != root {
            return Err(Why::Fork { size, older: size });
        }
        let now = (recorded.sequence, recorded.recorded_at);
        let is_behind = |(sequence, _): (u64, _)| recorded.sequence > sequence;
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
