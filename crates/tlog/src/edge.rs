//! The right edge of a tree, to which entries are appended.

use std::mem;

use crate::entry::Entry;
use crate::error::{Error, ReadError};
use crate::hash::Hash;
use crate::prover::Prover;
use crate::reader::{TileReader, read};
use crate::subtree::Subtree;
use crate::tile::{Tile, full_tiles};

/// Levels of tiles in the largest tree of a 64-bit size.
const LEVELS: usize = 8;

/// The right edge of a tree: its size and the partial tile of each level, with the nodes above their
/// hashes; about 16 KiB a level. The default is the edge of the empty tree.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    size: u64,
    levels: [Subtree; LEVELS],
}

impl Edge {
    /// The edge of the tree of `size` leaves, from its partial tiles; [`Error::RootMismatch`] when
    /// they do not lead to this root.
    pub fn load<R: TileReader>(
        size: u64,
        root: Hash,
        reader: &R,
    ) -> Result<Self, ReadError<R::Error>> {
        let mut edge = Self {
            size,
            ..Self::default()
        };
        for tile in Tile::edge_of(size) {
            if let Some(subtree) = edge.levels.get_mut(usize::from(tile.level())) {
                *subtree = read(reader, tile)?;
            }
        }
        if edge.root() == root {
            Ok(edge)
        } else {
            Err(Error::RootMismatch.into())
        }
    }

    /// How many leaves the tree has.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        let peaks = self.levels.iter().flat_map(Subtree::peaks);
        let root = peaks.reduce(|right, left| Hash::of_node(left, right));
        root.unwrap_or(Hash::EMPTY)
    }

    /// Puts entries behind the others. This edge stays as it is, for a caller that then fails to
    /// store the new one.
    pub fn append(&self, entries: &[Entry<'_>]) -> Result<Appended, Error> {
        let added = u64::try_from(entries.len()).map_err(|_| Error::TreeFull)?;
        self.size.checked_add(added).ok_or(Error::TreeFull)?;
        let mut edge = self.clone();
        let mut full = Vec::new();
        for entry in entries {
            edge.push(entry.leaf_hash(), &mut full);
        }
        Ok(Appended {
            old_size: self.size,
            full,
            edge,
        })
    }

    /// The partial tile of a level.
    pub(crate) fn level(&self, level: u8) -> Option<&Subtree> {
        self.levels.get(usize::from(level))
    }

    fn push(&mut self, leaf: Hash, full: &mut Vec<(Tile, Subtree)>) {
        self.size += 1;
        let mut hash = leaf;
        for (level, subtree) in (0..).zip(&mut self.levels) {
            subtree.push(hash);
            let Some(root) = subtree.root() else { return };
            let index = full_tiles(self.size, level).saturating_sub(1);
            full.extend(Tile::in_tree(self.size, level, index).zip(Some(mem::take(subtree))));
            hash = root;
        }
    }
}

/// A tree after entries were appended, and what there is to store of it.
#[derive(Clone, Debug)]
pub struct Appended {
    old_size: u64,
    full: Vec<(Tile, Subtree)>,
    edge: Edge,
}

impl Appended {
    /// The new edge, with the new size and root.
    pub const fn edge(&self) -> &Edge {
        &self.edge
    }

    /// The new edge alone, to append to it.
    pub fn into_edge(self) -> Edge {
        self.edge
    }

    /// The tiles that are new or wider, with their bytes: each full one once, then the partial ones.
    /// The bundles to store are those of the tiles of level 0.
    pub fn tiles(&self) -> impl Iterator<Item = (Tile, Vec<u8>)> {
        let full = self.full.iter().map(|(tile, subtree)| (*tile, subtree));
        let partial = Tile::edge_of(self.edge.size)
            .filter_map(|tile| Some((tile, self.edge.level(tile.level())?)));
        full.chain(partial)
            .filter(|(tile, _)| {
                Tile::in_tree(self.old_size, tile.level(), tile.index()) != Some(*tile)
            })
            .map(|(tile, subtree)| (tile, subtree.to_bytes()))
    }

    /// A prover for the new tree. It reads no tile for inclusion proofs of the appended entries, nor
    /// for the consistency proof from the size before them.
    pub fn prover<R: TileReader>(&self, reader: R) -> Prover<R> {
        let mut prover = Prover::new(self.edge.clone(), reader);
        prover.know(&self.full);
        prover
    }
}
