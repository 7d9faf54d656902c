//! Checks inclusion and consistency proofs (RFC 9162 sections 2.1.3.2 and 2.1.4.2).
//!
//! A proof alone does not fix the size of the tree: some proofs lead to the same root for several
//! sizes. Sizes and roots therefore come from signed checkpoints, in pairs.

use crate::error::Error;
use crate::hash::Hash;

/// Checks that the leaf is at `index` of the tree of `size` leaves with this root.
pub fn verify_inclusion(
    leaf: Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: Hash,
) -> Result<(), Error> {
    if index >= size {
        return Err(Error::BeyondTree { at: index, size });
    }
    let mut walk = Walk::new(index, size);
    let mut hash = leaf;
    for sibling in proof {
        hash = match walk.step()? {
            Side::Left => Hash::of_node(*sibling, hash),
            Side::Right => Hash::of_node(hash, *sibling),
        };
    }
    walk.finish()?;
    same(hash, root)
}

/// Checks that the tree of `new_size` leaves begins with the tree of `old_size` leaves. Equal sizes
/// and an old size of 0 need an empty proof.
pub fn verify_consistency(
    old_size: u64,
    old_root: Hash,
    new_size: u64,
    new_root: Hash,
    proof: &[Hash],
) -> Result<(), Error> {
    if old_size > new_size {
        let (at, size) = (old_size, new_size);
        return Err(Error::BeyondTree { at, size });
    }
    if old_size == 0 || old_size == new_size {
        if !proof.is_empty() {
            return Err(Error::ProofLength);
        }
        let expected = if old_size == 0 { Hash::EMPTY } else { new_root };
        return same(old_root, expected);
    }
    // The walk begins at the last whole subtree of the old tree. It is the old root itself when the
    // old size is a power of two, and else the first hash of the proof.
    let (first, rest) = if old_size.is_power_of_two() {
        (old_root, proof)
    } else {
        let (first, rest) = proof.split_first().ok_or(Error::ProofLength)?;
        (*first, rest)
    };
    let mut walk = Walk::new(old_size - 1, new_size);
    walk.climb_while(|node| node & 1 == 1);
    let (mut old, mut new) = (first, first);
    for sibling in rest {
        match walk.step()? {
            Side::Left => {
                old = Hash::of_node(*sibling, old);
                new = Hash::of_node(*sibling, new);
            }
            Side::Right => new = Hash::of_node(new, *sibling),
        }
    }
    walk.finish()?;
    same(old, old_root)?;
    same(new, new_root)
}

fn same(found: Hash, expected: Hash) -> Result<(), Error> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::RootMismatch)
    }
}

/// On which side of the walked node its sibling is.
enum Side {
    Left,
    Right,
}

/// The way from a node up to the root: the node and the last node of its level.
struct Walk {
    node: u64,
    last: u64,
}

impl Walk {
    fn new(index: u64, size: u64) -> Self {
        let last = size - 1;
        Self { node: index, last }
    }

    fn climb(&mut self) {
        self.node >>= 1;
        self.last >>= 1;
    }

    fn climb_while(&mut self, condition: impl Fn(u64) -> bool) {
        while condition(self.node) {
            self.climb();
        }
    }

    /// Goes one hash of the proof up, over the levels where the node has no sibling.
    fn step(&mut self) -> Result<Side, Error> {
        if self.last == 0 {
            return Err(Error::ProofLength);
        }
        let left = self.node & 1 == 1 || self.node == self.last;
        if left {
            self.climb_while(|node| node & 1 == 0 && node != 0);
        }
        self.climb();
        Ok(if left { Side::Left } else { Side::Right })
    }

    fn finish(self) -> Result<(), Error> {
        if self.last == 0 {
            Ok(())
        } else {
            Err(Error::ProofLength)
        }
    }
}
