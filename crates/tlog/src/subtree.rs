//! The subtree above the hashes of one tile, each node hashed once.

use crate::error::{Error, Form};
use crate::hash::{HASH_BYTES, Hash};
use crate::tile::{TILE_HEIGHT, TILE_WIDTH, Tile};

/// Up to 256 hashes of a tile and every whole node above them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subtree {
    /// By height above the tile's hashes.
    layers: [Vec<Hash>; TILE_HEIGHT as usize + 1],
}

impl Subtree {
    /// Reads a tile as wide as `tile`, or wider: a partial tile is the beginning of the full one.
    pub(crate) fn parse(tile: Tile, bytes: &[u8]) -> Result<Self, Error> {
        let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
        let width = usize::from(tile.width());
        if !rest.is_empty() || !(width..=TILE_WIDTH.into()).contains(&hashes.len()) {
            return Err(Error::Malformed(Form::Tile));
        }
        let mut subtree = Self::default();
        for hash in hashes.iter().take(width) {
            subtree.push(Hash::from(*hash));
        }
        Ok(subtree)
    }

    /// Adds a hash to a tile that is not full, and the nodes that it completes.
    pub(crate) fn push(&mut self, hash: Hash) {
        let mut node = hash;
        for layer in &mut self.layers {
            layer.push(node);
            match layer.as_slice() {
                [.., left, right] if layer.len().is_multiple_of(2) => {
                    node = Hash::of_node(*left, *right);
                }
                _ => return,
            }
        }
    }

    /// The node of this height above the tile's hashes, if it is whole.
    pub(crate) fn node(&self, height: u32, index: usize) -> Option<Hash> {
        self.layers.get(height as usize)?.get(index).copied()
    }

    /// The root of a full tile.
    pub(crate) fn root(&self) -> Option<Hash> {
        self.node(TILE_HEIGHT, 0)
    }

    /// The roots of the largest whole subtrees that make up a partial tile, from the right.
    pub(crate) fn peaks(&self) -> impl Iterator<Item = Hash> {
        let odd = |layer: &&Vec<Hash>| !layer.len().is_multiple_of(2);
        self.layers
            .iter()
            .filter(odd)
            .filter_map(|layer| layer.last().copied())
    }

    /// The bytes of the tile: its hashes in a row.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let [hashes, ..] = &self.layers;
        hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
    }
}
