//! Proofs for one size of a tree, from its tiles (RFC 9162 sections 2.1.3.1 and 2.1.4.1).

use std::collections::HashMap;

use crate::edge::Edge;
use crate::error::{Error, ReadError};
use crate::hash::Hash;
use crate::reader::{TileReader, read};
use crate::subtree::Subtree;
use crate::tile::{TILE_HEIGHT, TILE_WIDTH, Tile, full_tiles};

/// Makes proofs for one size of a tree. Every hash that it gives is proven to be in the tree whose
/// root the edge has, so that tiles of an untrusted server can be read.
///
/// It reads and hashes each tile at most once and keeps it, 16 KiB each: a prover is for one group of
/// proofs.
#[derive(Debug)]
pub struct Prover<R> {
    edge: Edge,
    full: HashMap<(u8, u64), Subtree>,
    reader: R,
}

impl<R: TileReader> Prover<R> {
    /// A prover for the tree with this edge.
    pub fn new(edge: Edge, reader: R) -> Self {
        Self {
            edge,
            full: HashMap::new(),
            reader,
        }
    }

    /// A prover for the tree of this size and root, as a checkpoint states them.
    pub fn load(size: u64, root: Hash, reader: R) -> Result<Self, ReadError<R::Error>> {
        Ok(Self::new(Edge::load(size, root, &reader)?, reader))
    }

    /// The hash of the leaf at this index.
    pub fn leaf(&mut self, index: u64) -> Result<Hash, ReadError<R::Error>> {
        let size = self.edge.size();
        if index >= size {
            return Err(Error::BeyondTree { at: index, size }.into());
        }
        self.node(0, index)
    }

    /// The inclusion proof of the leaf at this index, from its sibling upwards.
    pub fn inclusion(&mut self, index: u64) -> Result<Vec<Hash>, ReadError<R::Error>> {
        let size = self.edge.size();
        if index >= size {
            return Err(Error::BeyondTree { at: index, size }.into());
        }
        self.path(0, index)
    }

    /// The consistency proof from the tree of `old_size` leaves. It is empty for the sizes 0 and the
    /// prover's own.
    pub fn consistency(&mut self, old_size: u64) -> Result<Vec<Hash>, ReadError<R::Error>> {
        let size = self.edge.size();
        if old_size > size {
            return Err(Error::BeyondTree { at: old_size, size }.into());
        }
        if old_size == 0 || old_size == size {
            return Ok(Vec::new());
        }
        let height = old_size.trailing_zeros();
        let index = (old_size >> height) - 1;
        let mut proof = self.path(height, index)?;
        if index > 0 {
            proof.insert(0, self.node(height, index)?);
        }
        Ok(proof)
    }

    /// Takes over full tiles of the tree, proven elsewhere.
    pub(crate) fn know(&mut self, full: &[(Tile, Subtree)]) {
        for (tile, subtree) in full {
            let place = (tile.level(), tile.index());
            self.full.insert(place, subtree.clone());
        }
    }

    /// The siblings of a node and of its ancestors, where there are any.
    fn path(&mut self, height: u32, index: u64) -> Result<Vec<Hash>, ReadError<R::Error>> {
        let size = self.edge.size();
        let mut path = Vec::new();
        let (mut height, mut index) = (height, index);
        while (size - 1).checked_shr(height).is_some_and(|last| last > 0) {
            let sibling = index ^ 1;
            if sibling < size >> height {
                path.push(self.node(height, sibling)?);
            } else if sibling << height < size {
                path.push(self.rest(sibling << height)?);
            }
            height += 1;
            index >>= 1;
        }
        Ok(path)
    }

    /// The hash over all leaves from `start` on, where a whole subtree could begin.
    fn rest(&mut self, start: u64) -> Result<Hash, ReadError<R::Error>> {
        let mut end = self.edge.size();
        let mut hash = None;
        while end > start {
            let height = end.trailing_zeros();
            let left = self.node(height, (end >> height) - 1)?;
            hash = Some(hash.map_or(left, |right| Hash::of_node(left, right)));
            end -= 1 << height;
        }
        Ok(hash.unwrap_or(Hash::EMPTY))
    }

    /// A whole node of the tree: the root of `2^height` leaves.
    fn node(&mut self, height: u32, index: u64) -> Result<Hash, ReadError<R::Error>> {
        let size = self.edge.size();
        let beyond = Error::BeyondTree { at: index, size };
        let level = u8::try_from(height / TILE_HEIGHT).map_err(|_| beyond)?;
        let above = height % TILE_HEIGHT;
        let in_tile = u64::from(TILE_WIDTH) >> above;
        let tile = index / in_tile;
        let within = usize::try_from(index % in_tile).map_err(|_| beyond)?;
        let subtree = if tile == full_tiles(size, level) {
            self.edge.level(level)
        } else {
            self.load_full(level, tile)?;
            self.full.get(&(level, tile))
        };
        let node = subtree.and_then(|subtree| subtree.node(above, within));
        Ok(node.ok_or(beyond)?)
    }

    /// Reads a full tile and holds its root to the hash that the level above has for it.
    fn load_full(&mut self, level: u8, index: u64) -> Result<(), ReadError<R::Error>> {
        if self.full.contains_key(&(level, index)) {
            return Ok(());
        }
        let size = self.edge.size();
        let tile = Tile::in_tree(size, level, index);
        let tile = tile.ok_or(Error::BeyondTree { at: index, size })?;
        let subtree = read(&self.reader, tile)?;
        let root = self.node(TILE_HEIGHT * (u32::from(level) + 1), index)?;
        if subtree.root() != Some(root) {
            return Err(Error::TileMismatch(tile).into());
        }
        self.full.insert((level, index), subtree);
        Ok(())
    }
}
