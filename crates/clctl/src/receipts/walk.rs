//! Verifying a log from its first entry to its last.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;

use cl_model::digest::Digest;
use cl_model::log::LogState;
use cl_model::object::Receipt;
use cl_model::receipt;
use cl_model::record::{self, Record};
use cl_model::time::UnixTime;
use cl_model::urn::ReceiptId;
use cl_tlog::{
    Checkpoint, Edge, Entry, Error as TreeError, ProofFile, Prover, ReadError, SignedCheckpoint,
    TILE_WIDTH, Tile, TilePath,
};
use serde_json::Value;

use super::fault::{Fault, Place, Why};
use super::kept::Kept;
use super::keys::LogKeys;
use super::recorded::Recorded;
use super::source::{Given, Source};
use crate::error::Error;

/// An entry that verified.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) kept: Kept,
    pub(crate) proof: ProofFile,
    /// Its record and its line of the portable log, unless it was erased.
    pub(crate) portable: Option<(Record, String)>,
}

/// What verified together: the entries beside one tile, and the files that show it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) files: Vec<(TilePath, Vec<u8>)>,
    pub(crate) entries: Vec<Verified>,
}

/// A log whose checkpoint verified, and how far its entries did.
///
/// It keeps the tiles on the way to one entry, 32 bytes for the id of each receipt, and the names of
/// actor and bundle for each consumption.
#[derive(Debug)]
pub(crate) struct Walk {
    source: Source,
    signed: SignedCheckpoint,
    edge: Edge,
    /// The partial tiles of the tree.
    edge_tiles: BTreeMap<Tile, Vec<u8>>,
    /// The full tiles above the entries that are looked at, one a level.
    path: BTreeMap<u8, (Tile, Vec<u8>)>,
    checked: u64,
    ids: HashSet<Digest>,
    latest: Option<UnixTime>,
    portable: LogState,
    /// How many tombstones there are so far.
    erased: u64,
}

impl Walk {
    /// Reads the checkpoint and the tiles that lead to its root.
    pub(crate) async fn open(
        source: Source,
        checkpoint: &[u8],
        keys: &LogKeys,
    ) -> Result<Self, Error> {
        let signed = keys.read(checkpoint, &Place::Checkpoint)?;
        let (size, root) = (signed.checkpoint().size(), signed.checkpoint().root());
        let mut edge_tiles = BTreeMap::new();
        for tile in Tile::edge_of(size) {
            edge_tiles.insert(tile, source.hashes(tile).await?);
        }
        let read = |tile: Tile| Ok::<_, Infallible>(edge_tiles.get(&tile).cloned());
        let edge = match Edge::load(size, root, &read) {
            Ok(edge) => edge,
            Err(_) => return Err(other_tree(&source, size, &edge_tiles).await),
        };
        Ok(Self {
            source,
            signed,
            edge,
            edge_tiles,
            path: BTreeMap::new(),
            checked: 0,
            ids: HashSet::new(),
            latest: None,
            portable: LogState::empty(),
            erased: 0,
        })
    }

    /// The partial tiles of the tree, with their bytes.
    pub(crate) fn edge_tiles(&self) -> impl Iterator<Item = (TilePath, &Vec<u8>)> {
        let tiles = self.edge_tiles.iter();
        tiles.map(|(tile, bytes)| (TilePath::Hashes(*tile), bytes))
    }

    /// Checks that the log continues the one of an older checkpoint.
    pub(crate) async fn check_continues(&mut self, older: &Checkpoint) -> Result<(), Error> {
        let now = self.signed.checkpoint().clone();
        let (size, older_size) = (now.size(), older.size());
        if older_size > size {
            let why = Why::Rollback {
                size,
                older: older_size,
            };
            return Err(Place::OlderCheckpoint.is(why).into());
        }
        if let Some(last) = older_size.checked_sub(1) {
            self.read_path(last / u64::from(TILE_WIDTH)).await?;
        }
        let proof = self.prover().consistency(older_size).map_err(tile_fault)?;
        now.verify_consistency(older, &proof).map_err(|_| {
            let why = Why::Fork {
                size,
                older: older_size,
            };
            Place::OlderCheckpoint.is(why).into()
        })
    }

    /// Verifies the entries beside the next tile; none are left once all of them verified.
    pub(crate) async fn step(&mut self) -> Result<Option<Step>, Error> {
        let size = self.signed.checkpoint().size();
        let index = self.checked / u64::from(TILE_WIDTH);
        let Some(tile) = Tile::in_tree(size, 0, index).filter(|_| self.checked < size) else {
            return Ok(None);
        };
        let mut files = self.read_path(index).await?;
        let bundle = self.source.bundle(tile).await?;
        let bundle_path = TilePath::Entries(tile);
        let malformed = || Place::Tile(bundle_path).is(Why::TileMalformed);
        let leaves = Entry::parse_bundle(&bundle).map_err(|_| malformed())?;
        let mut given = self.source.receipts(leaves.len()).await?.into_iter();
        let mut prover = self.prover();
        let mut entries = Vec::new();
        for leaf in leaves {
            let index = self.checked;
            let sequence = index + 1;
            let place = self.source.place(sequence);
            if prover.leaf(index).map_err(tile_fault)? != leaf.leaf_hash() {
                let why = Why::EntryMismatch { sequence };
                return Err(Place::Tile(bundle_path).is(why).into());
            }
            let given = given.next();
            let given = given.ok_or_else(|| place.clone().is(Why::LineMissing { size }))?;
            let proof = prover.inclusion(index).map_err(tile_fault)?;
            let proof = ProofFile {
                extra: given.0.extra(),
                index,
                proof,
                checkpoint: self.signed.clone(),
            };
            let verified = self.check(leaf, given, proof);
            let verified = verified.map_err(|why| place.is(why))?;
            if let Some((_, line)) = &verified.portable {
                self.source.check_portable(line)?;
            }
            entries.push(verified);
            self.checked = sequence;
        }
        files.push((bundle_path, bundle));
        Ok(Some(Step { files, entries }))
    }

    /// Checks what the source has beside the entries; the signed checkpoint of a log that verified,
    /// and how many of its entries are tombstones.
    pub(crate) async fn finish(mut self, keys: &LogKeys) -> Result<(SignedCheckpoint, u64), Error> {
        while self.step().await?.is_some() {}
        self.source.finish(keys, &self.portable)?;
        Ok((self.signed, self.erased))
    }

    /// Checks what is given for an entry: that it is what the entry commits to, keeps the rules of
    /// receipts, and has its place behind the others.
    fn check(
        &mut self,
        leaf: Entry<'_>,
        (kept, given_proof): Given,
        proof: ProofFile,
    ) -> Result<Verified, Why> {
        let sequence = self.checked + 1;
        if kept.sequence() != sequence {
            let found = kept.sequence();
            return Err(Why::LineOrder { found });
        }
        if kept.leaf() != leaf.bytes() {
            return Err(Why::ReceiptMismatch);
        }
        if given_proof.is_some_and(|given| !is_same(&given, &proof)) {
            return Err(Why::ProofMismatch);
        }
        let recorded_at = kept.recorded_at();
        let checked = match &kept {
            Kept::Receipt(recorded) => Some(check_receipt(recorded)?),
            Kept::Tombstone(_) => None,
        };
        if self.latest.is_some_and(|latest| recorded_at < latest) {
            return Err(Why::TimeBackwards);
        }
        let portable = match checked {
            Some((receipt, record)) => Some(self.add(&receipt, record)?),
            None => {
                self.erased += 1;
                None
            }
        };
        self.latest = Some(recorded_at);
        Ok(Verified {
            kept,
            proof,
            portable,
        })
    }

    /// Adds a receipt to those that later ones may refer to, and to the portable log.
    fn add(&mut self, receipt: &Receipt, record: Record) -> Result<(Record, String), Why> {
        let supersedes = receipt.supersedes_ref.as_ref().and_then(|it| it.get());
        // What it supersedes may be a tombstone: nobody can say that it is not.
        let is_known = supersedes.is_none_or(|it| self.ids.contains(&short(it)));
        if !is_known && self.erased == 0 {
            return Err(Why::SupersedesUnknown);
        }
        let line = self.portable.append(&record).map_err(Why::Receipt)?;
        self.ids.insert(short(&receipt.id));
        Ok((record, line))
    }

    /// Reads the full tiles above the entries of a tile; those that are new.
    async fn read_path(&mut self, index: u64) -> Result<Vec<(TilePath, Vec<u8>)>, Error> {
        let size = self.signed.checkpoint().size();
        let mut new = Vec::new();
        let mut index = index;
        for level in 0.. {
            let Some(tile) = Tile::in_tree(size, level, index).filter(|tile| tile.is_full()) else {
                break;
            };
            if self
                .path
                .get(&level)
                .is_none_or(|(known, _)| *known != tile)
            {
                let bytes = self.source.hashes(tile).await?;
                new.push((TilePath::Hashes(tile), bytes.clone()));
                self.path.insert(level, (tile, bytes));
            }
            index /= u64::from(TILE_WIDTH);
        }
        Ok(new)
    }

    /// What makes proofs for the entries below the tiles that are known now.
    fn prover(&self) -> Prover<impl Fn(Tile) -> Result<Option<Vec<u8>>, Infallible> + use<>> {
        let path = self.path.clone();
        let read = move |tile: Tile| {
            let known = path.get(&tile.level()).filter(|(known, _)| *known == tile);
            Ok(known.map(|(_, bytes)| bytes.clone()))
        };
        Prover::new(self.edge.clone(), read)
    }
}

/// Whether two proofs are of one entry in one tree. Cosignatures are no part of the tree: a checkpoint
/// may have gained some since the proof was made.
fn is_same(given: &ProofFile, made: &ProofFile) -> bool {
    given.index == made.index
        && given.proof == made.proof
        && given.extra == made.extra
        && given.checkpoint.checkpoint() == made.checkpoint.checkpoint()
}

/// Checks a receipt by every rule of the specification.
pub(crate) fn check_receipt(recorded: &Recorded) -> Result<(Receipt, Record), Why> {
    let receipt = receipt::check(&recorded.receipt).map_err(Why::Receipt)?;
    let mut contents = recorded.receipt.clone();
    if let Some(members) = contents.as_object_mut() {
        members.retain(|name, _: &mut Value| !matches!(name.as_str(), "id" | "integrity"));
    }
    let record = record::finalize(contents, ReceiptId::PREFIX).map_err(Why::Receipt)?;
    Ok((receipt, record))
}

/// An id in 32 bytes.
fn short(id: &ReceiptId) -> Digest {
    Digest::of_bytes(id.as_str().as_bytes())
}

fn tile_fault(error: ReadError<Infallible>) -> Fault {
    match error {
        ReadError::Refused(TreeError::TileMismatch(tile)) => {
            Place::Tile(TilePath::Hashes(tile)).is(Why::TileMismatch)
        }
        ReadError::Refused(_) | ReadError::Read(_) => Place::Checkpoint.is(Why::RootMismatch),
    }
}

/// Finds out why partial tiles do not lead to the root: the first that is not made of the entries, if
/// there is one.
async fn other_tree(source: &Source, size: u64, edge_tiles: &BTreeMap<Tile, Vec<u8>>) -> Error {
    match first_other_tile(source, size, edge_tiles).await {
        Ok(Some(tile)) => Place::Tile(TilePath::Hashes(tile))
            .is(Why::TileMismatch)
            .into(),
        Ok(None) => Place::Checkpoint.is(Why::RootMismatch).into(),
        Err(error) => error,
    }
}

async fn first_other_tile(
    source: &Source,
    size: u64,
    edge_tiles: &BTreeMap<Tile, Vec<u8>>,
) -> Result<Option<Tile>, Error> {
    let mut edge = Edge::default();
    for tile in Tile::all_of(size).take_while(|tile| tile.level() == 0) {
        let bundle = source.bundle(tile).await?;
        let malformed = |_| Place::Tile(TilePath::Entries(tile)).is(Why::TileMalformed);
        let entries = Entry::parse_bundle(&bundle).map_err(malformed)?;
        let appended = edge.append(&entries).map_err(malformed)?;
        let is_other = |(tile, bytes): &(Tile, Vec<u8>)| {
            edge_tiles.get(tile).is_some_and(|found| found != bytes)
        };
        if let Some((tile, _)) = appended.tiles().find(is_other) {
            return Ok(Some(tile));
        }
        edge = appended.into_edge();
    }
    Ok(None)
}
