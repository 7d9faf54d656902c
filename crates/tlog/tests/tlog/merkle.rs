//! Verification of inclusion and consistency proofs.

use cl_tlog::{Error, Hash, verify_consistency, verify_inclusion};
use proptest::prelude::*;

use crate::naive::{consistency, entries, inclusion, root};

fn flip(hash: Hash, bit: usize) -> Hash {
    let mut bytes = *hash.as_bytes();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Hash::from(bytes)
}

/// The proof with one bit of one hash changed, for every bit.
fn changed(proof: &[Hash]) -> impl Iterator<Item = Vec<Hash>> {
    (0..proof.len() * 256).map(|bit| {
        let mut changed = proof.to_vec();
        changed[bit / 256] = flip(changed[bit / 256], bit % 256);
        changed
    })
}

/// The proof with one hash fewer, and with one more, at each place.
fn lengthened_and_shortened(proof: &[Hash]) -> Vec<Vec<Hash>> {
    let mut others = Vec::new();
    for at in 0..=proof.len() {
        let mut longer = proof.to_vec();
        longer.insert(at, Hash::EMPTY);
        others.push(longer);
        if at < proof.len() {
            let mut shorter = proof.to_vec();
            shorter.remove(at);
            others.push(shorter);
        }
    }
    others
}

#[test]
fn hashes_have_their_published_values() {
    let leaf = Hash::of_leaf(b"");
    assert_eq!(Hash::EMPTY, root(&[]));
    assert_eq!(
        leaf.to_string(),
        "bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0="
    );
    let node = Hash::of_node(Hash::of_leaf(b"a"), Hash::of_leaf(b"b"));
    assert_eq!(node, root(&[b"a".to_vec(), b"b".to_vec()]));
}

#[test]
fn every_inclusion_proof_by_definition_verifies_at_its_index_alone() {
    for size in 1..=33 {
        let entries = entries(size);
        let root = root(&entries);
        for index in 0..size {
            let leaf = Hash::of_leaf(&entries[index]);
            let proof = inclusion(index, &entries);
            for other in lengthened_and_shortened(&proof) {
                let verified = verify_inclusion(leaf, index as u64, size as u64, &other, root);
                assert_eq!(verified, Err(Error::ProofLength));
            }
            for other in 0..=size {
                let verified = verify_inclusion(leaf, other as u64, size as u64, &proof, root);
                assert_eq!(
                    verified.is_ok(),
                    other == index,
                    "{index} at {other} of {size}"
                );
            }
        }
    }
}

#[test]
fn every_consistency_proof_by_definition_verifies() {
    let entries = entries(33);
    for size in 0..=entries.len() {
        let new = root(&entries[..size]);
        for old_size in 0..=size {
            let old = root(&entries[..old_size]);
            let proof = consistency(old_size, &entries[..size]);
            let (from, to) = (old_size as u64, size as u64);
            assert_eq!(verify_consistency(from, old, to, new, &proof), Ok(()));
            if old_size > 0 {
                let wrong = Hash::of_node(old, old);
                assert!(verify_consistency(from, wrong, to, new, &proof).is_err());
                assert!(verify_consistency(from, old, to, wrong, &proof).is_err());
            }
            for other in lengthened_and_shortened(&proof) {
                let verified = verify_consistency(from, old, to, new, &other);
                assert_eq!(verified, Err(Error::ProofLength));
            }
        }
    }
}

#[test]
fn places_beyond_the_tree_are_refused() {
    let root = root(&entries(3));
    let beyond = |at, size| Err(Error::BeyondTree { at, size });
    assert_eq!(verify_inclusion(root, 0, 0, &[], root), beyond(0, 0));
    assert_eq!(verify_inclusion(root, 3, 3, &[], root), beyond(3, 3));
    assert_eq!(verify_consistency(4, root, 3, root, &[]), beyond(4, 3));
}

#[test]
fn equal_sizes_and_the_empty_tree_need_an_empty_proof_and_the_right_root() {
    let some = root(&entries(3));
    let other = root(&entries(2));
    assert_eq!(verify_consistency(3, some, 3, some, &[]), Ok(()));
    assert_eq!(
        verify_consistency(3, other, 3, some, &[]),
        Err(Error::RootMismatch)
    );
    assert_eq!(
        verify_consistency(3, some, 3, some, &[some]),
        Err(Error::ProofLength)
    );
    assert_eq!(verify_consistency(0, Hash::EMPTY, 3, some, &[]), Ok(()));
    assert_eq!(
        verify_consistency(0, other, 3, some, &[]),
        Err(Error::RootMismatch)
    );
    assert_eq!(
        verify_consistency(0, Hash::EMPTY, 3, some, &[some]),
        Err(Error::ProofLength)
    );
    assert_eq!(
        verify_consistency(2, other, 3, some, &[]),
        Err(Error::ProofLength)
    );
}

#[test]
fn the_largest_sizes_do_not_overflow() {
    let hash = Hash::EMPTY;
    for count in 0..70 {
        let proof = vec![hash; count];
        for place in [0, 1, 1 << 63, u64::MAX - 2, u64::MAX - 1] {
            assert!(verify_inclusion(hash, place, u64::MAX, &proof, hash).is_err());
            assert!(verify_consistency(place.max(1), hash, u64::MAX, hash, &proof).is_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_changed_inclusion_proof_fails(size in 1_usize..400, place: prop::sample::Index) {
        let entries = entries(size);
        let (root, index) = (root(&entries), place.index(size));
        let (leaf, proof) = (Hash::of_leaf(&entries[index]), inclusion(index, &entries));
        let verify = |leaf, index: usize, proof: &[Hash], root| {
            verify_inclusion(leaf, index as u64, size as u64, proof, root)
        };
        prop_assert_eq!(verify(leaf, index, &proof, root), Ok(()));
        for changed in changed(&proof) {
            prop_assert_eq!(verify(leaf, index, &changed, root), Err(Error::RootMismatch));
        }
        for bit in 0..256 {
            prop_assert!(verify(flip(leaf, bit), index, &proof, root).is_err());
            prop_assert!(verify(leaf, index, &proof, flip(root, bit)).is_err());
        }
        for bit in 0..63 {
            prop_assert!(verify(leaf, index ^ (1 << bit), &proof, root).is_err());
        }
        for other in lengthened_and_shortened(&proof) {
            prop_assert_eq!(verify(leaf, index, &other, root), Err(Error::ProofLength));
        }
    }

    #[test]
    fn a_changed_consistency_proof_fails(size in 2_usize..400, place: prop::sample::Index) {
        let entries = entries(size);
        let old_size = 1 + place.index(size - 1);
        let (old, new) = (root(&entries[..old_size]), root(&entries));
        let proof = consistency(old_size, &entries);
        let verify = |old, new, proof: &[Hash]| {
            verify_consistency(old_size as u64, old, size as u64, new, proof)
        };
        prop_assert_eq!(verify(old, new, &proof), Ok(()));
        for changed in changed(&proof) {
            prop_assert_eq!(verify(old, new, &changed), Err(Error::RootMismatch));
        }
        for bit in 0..256 {
            prop_assert!(verify(flip(old, bit), new, &proof).is_err());
            prop_assert!(verify(old, flip(new, bit), &proof).is_err());
        }
    }
}
