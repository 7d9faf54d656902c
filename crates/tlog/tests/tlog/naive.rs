//! The recursive definitions of RFC 9162 section 2.1, word for word and slow, and a log in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use cl_tlog::{Edge, Entry, Hash, Prover, Tile, TileReader};
use ring::digest::{SHA256, digest};

fn sha256(bytes: &[u8]) -> Hash {
    let hash: [u8; 32] = digest(&SHA256, bytes).as_ref().try_into().unwrap();
    Hash::from(hash)
}

/// The root over entries.
pub(crate) fn root(entries: &[Vec<u8>]) -> Hash {
    match entries {
        [] => sha256(b""),
        [entry] => sha256(&[&[0], entry.as_slice()].concat()),
        _ => {
            let (left, right) = entries.split_at(split(entries.len()));
            let (left, right) = (root(left), root(right));
            sha256(&[&[1], left.as_bytes().as_slice(), right.as_bytes()].concat())
        }
    }
}

/// The largest power of two below `size`.
fn split(size: usize) -> usize {
    size.next_power_of_two() / 2
}

/// The inclusion proof of the entry at `index`.
pub(crate) fn inclusion(index: usize, entries: &[Vec<u8>]) -> Vec<Hash> {
    if entries.len() == 1 {
        return Vec::new();
    }
    let middle = split(entries.len());
    let (left, right) = entries.split_at(middle);
    let (mut proof, sibling) = if index < middle {
        (inclusion(index, left), root(right))
    } else {
        (inclusion(index - middle, right), root(left))
    };
    proof.push(sibling);
    proof
}

/// The consistency proof from the first `old` entries.
pub(crate) fn consistency(old: usize, entries: &[Vec<u8>]) -> Vec<Hash> {
    if old == 0 {
        return Vec::new();
    }
    subproof(old, entries, true)
}

fn subproof(old: usize, entries: &[Vec<u8>], known: bool) -> Vec<Hash> {
    if old == entries.len() {
        return if known {
            Vec::new()
        } else {
            vec![root(entries)]
        };
    }
    let middle = split(entries.len());
    let (left, right) = entries.split_at(middle);
    let (mut proof, other) = if old <= middle {
        (subproof(old, left, known), root(right))
    } else {
        (subproof(old - middle, right, false), root(left))
    };
    proof.push(other);
    proof
}

/// The hashes that a tile has by definition.
pub(crate) fn tile_bytes(tile: Tile, entries: &[Vec<u8>]) -> Vec<u8> {
    let span = 256_usize.pow(u32::from(tile.level()));
    let first = usize::try_from(tile.index()).unwrap() * 256 * span;
    let leaves = &entries[first..first + usize::from(tile.width()) * span];
    let hashes = leaves.chunks(span).map(root);
    hashes.flat_map(|hash| *hash.as_bytes()).collect()
}

/// Entries that differ in content and length.
pub(crate) fn entries(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| number.to_string().repeat(1 + number % 5).into_bytes())
        .collect()
}

pub(crate) fn checked(entries: &[Vec<u8>]) -> Vec<Entry<'_>> {
    entries
        .iter()
        .map(|entry| Entry::new(entry).unwrap())
        .collect()
}

/// The tiles that were ever stored, and which ones were asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiles {
    pub(crate) stored: BTreeMap<Tile, Vec<u8>>,
    pub(crate) asked: RefCell<Vec<Tile>>,
}

impl TileReader for &Tiles {
    type Error = Infallible;

    fn read(&self, tile: Tile) -> Result<Option<Vec<u8>>, Infallible> {
        self.asked.borrow_mut().push(tile);
        Ok(self.stored.get(&tile).cloned())
    }
}

impl Tiles {
    /// The tiles of the first `size` entries, by definition, without earlier partial ones.
    pub(crate) fn of(entries: &[Vec<u8>]) -> Self {
        let all = Tile::all_of(entries.len() as u64);
        Self {
            stored: all.map(|tile| (tile, tile_bytes(tile, entries))).collect(),
            asked: RefCell::default(),
        }
    }

    pub(crate) fn prover(&self, size: u64, root: Hash) -> Prover<&Self> {
        Prover::load(size, root, self).unwrap()
    }
}

/// The edge of a tree of these entries.
pub(crate) fn edge(entries: &[Vec<u8>]) -> Edge {
    Edge::default()
        .append(&checked(entries))
        .unwrap()
        .into_edge()
}
