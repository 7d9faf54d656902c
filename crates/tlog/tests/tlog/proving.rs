//! Proofs from tiles, also from those of a server that lies.

use std::collections::BTreeSet;
use std::convert::Infallible;

use cl_tlog::{Error, Hash, Prover, ReadError, Tile, verify_consistency};
use proptest::prelude::*;

use crate::naive::{Tiles, checked, consistency, edge, entries, inclusion, root, tile_bytes};

#[test]
fn proofs_are_those_of_the_definition() {
    for size in [1, 2, 3, 100, 255, 256, 257, 511, 513, 770] {
        let entries = entries(size);
        let tiles = Tiles::of(&entries);
        let mut prover = tiles.prover(size as u64, root(&entries));
        for place in (0..size).step_by(7).chain([size - 1]) {
            let index = place as u64;
            assert_eq!(prover.leaf(index), Ok(Hash::of_leaf(&entries[place])));
            assert_eq!(prover.inclusion(index), Ok(inclusion(place, &entries)));
            assert_eq!(prover.consistency(index), Ok(consistency(place, &entries)));
        }
        assert_eq!(prover.consistency(size as u64), Ok(Vec::new()));
    }
}

#[test]
fn places_beyond_the_tree_have_no_proof() {
    let tiles = Tiles::of(&entries(5));
    let mut prover = tiles.prover(5, root(&entries(5)));
    let beyond = |at| ReadError::Refused(Error::BeyondTree { at, size: 5 });
    assert_eq!(prover.leaf(5), Err(beyond(5)));
    assert_eq!(prover.inclusion(5), Err(beyond(5)));
    assert_eq!(prover.consistency(6), Err(beyond(6)));
}

#[test]
fn each_tile_is_read_once_for_many_proofs() {
    let entries = entries(70_000);
    let appended = edge(&[]).append(&checked(&entries)).unwrap();
    let tiles = Tiles {
        stored: appended.tiles().collect(),
        ..Tiles::default()
    };
    let mut prover = tiles.prover(70_000, appended.edge().root());
    tiles.asked.borrow_mut().clear();
    for index in 20_000..20_064 {
        prover.inclusion(index).unwrap();
    }
    let asked: Vec<_> = tiles.asked.take().iter().map(Tile::to_string).collect();
    assert_eq!(asked, ["tile/0/078", "tile/1/000"], "beside the edge");
    for index in (0..70_000).step_by(100) {
        prover.inclusion(index).unwrap();
        prover.consistency(index).unwrap();
    }
    let asked = tiles.asked.take();
    let different: BTreeSet<_> = asked.iter().collect();
    assert_eq!(different.len(), asked.len());
}

#[test]
fn the_prover_of_an_append_reads_nothing_for_what_was_appended() {
    for (old, new) in [
        (0, 1),
        (0, 300),
        (200, 300),
        (255, 256),
        (256, 384),
        (500, 1100),
    ] {
        let entries = entries(new);
        let appended = edge(&entries[..old])
            .append(&checked(&entries[old..]))
            .unwrap();
        let none = |_: Tile| Ok::<_, Infallible>(None);
        let mut prover = appended.prover(none);
        for place in (old..new).step_by(19).chain([new - 1]) {
            assert_eq!(
                prover.inclusion(place as u64),
                Ok(inclusion(place, &entries))
            );
        }
        assert_eq!(
            prover.consistency(old as u64),
            Ok(consistency(old, &entries))
        );
    }
}

#[test]
fn a_partial_tile_that_is_gone_is_replaced_by_the_full_one() {
    let entries = entries(600);
    let mut tiles = Tiles::of(&entries);
    let upper = Tile::new(1, 0, 1).unwrap();
    tiles.stored.insert(upper, tile_bytes(upper, &entries));
    let mut prover = tiles.prover(257, root(&entries[..257]));
    assert_eq!(prover.inclusion(256), Ok(inclusion(256, &entries[..257])));
    let asked: Vec<_> = tiles.asked.take().iter().map(Tile::to_string).collect();
    assert_eq!(asked, ["tile/0/001.p/1", "tile/0/001", "tile/1/000.p/1"]);
}

#[test]
fn a_wider_partial_tile_serves_for_a_narrower_one() {
    let entries = entries(200);
    let wide = Tiles::of(&entries);
    let wider = |tile: Tile| {
        let stored = Tile::in_tree(200, tile.level(), tile.index());
        Ok::<_, Infallible>(stored.and_then(|stored| wide.stored.get(&stored).cloned()))
    };
    let narrow = &entries[..77];
    let mut prover = Prover::load(77, root(narrow), wider).unwrap();
    assert_eq!(prover.inclusion(5), Ok(inclusion(5, narrow)));
}

#[test]
fn the_tile_to_fetch_next_is_named() {
    let entries = entries(600);
    let (all, mut fetched) = (Tiles::of(&entries), Tiles::default());
    let mut rounds = 0;
    let proof = loop {
        let ask = || Prover::load(600, root(&entries), &fetched)?.inclusion(7);
        match ask() {
            Err(ReadError::Refused(Error::TileMissing(tile))) => {
                fetched.stored.insert(tile, all.stored[&tile].clone());
                rounds += 1;
            }
            proof => break proof,
        }
    };
    assert_eq!(proof, Ok(inclusion(7, &entries)));
    assert_eq!(rounds, 3);
}

#[test]
fn a_full_tile_of_another_tree_is_refused() {
    let entries = entries(600);
    let mut tiles = Tiles::of(&entries);
    let first = Tile::new(0, 0, 256).unwrap();
    let second = Tile::new(0, 1, 256).unwrap();
    let bytes = tiles.stored[&second].clone();
    tiles.stored.insert(first, bytes);
    let mut prover = tiles.prover(600, root(&entries));
    let mismatch = ReadError::Refused(Error::TileMismatch(first));
    assert_eq!(prover.leaf(3), Err(mismatch));
    assert_eq!(prover.inclusion(3), Err(mismatch));
    assert_eq!(prover.inclusion(300), Ok(inclusion(300, &entries)));
}

#[test]
fn tiles_of_another_length_are_refused() {
    let entries = entries(300);
    let full = Tile::new(0, 0, 256).unwrap();
    for bytes in [0, 31, 32, 8191, 8193, 8224] {
        let mut tiles = Tiles::of(&entries);
        tiles.stored.insert(full, vec![0; bytes]);
        let mut prover = tiles.prover(300, root(&entries));
        let refused = prover.inclusion(3).unwrap_err();
        assert_eq!(refused.to_string(), "malformed tile", "{bytes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_false_comes_out_of_changed_tiles(
        size in 1_usize..1200,
        place: prop::sample::Index,
        tile: prop::sample::Index,
        byte: prop::sample::Index,
        bit in 0_u8..8,
    ) {
        let entries = entries(size);
        let (root, place) = (edge(&entries).root(), place.index(size));
        let appended = edge(&[]).append(&checked(&entries)).unwrap();
        let mut tiles = Tiles { stored: appended.tiles().collect(), ..Tiles::default() };
        let bytes = tile.index(tiles.stored.len());
        let bytes = tiles.stored.values_mut().nth(bytes).unwrap();
        let byte = byte.index(bytes.len());
        bytes[byte] ^= 1 << bit;
        if let Ok(mut prover) = Prover::load(size as u64, root, &tiles) {
            if let Ok(leaf) = prover.leaf(place as u64) {
                prop_assert_eq!(leaf, Hash::of_leaf(&entries[place]));
            }
            if let Ok(proof) = prover.inclusion(place as u64) {
                prop_assert_eq!(proof, inclusion(place, &entries));
            }
            if let Ok(proof) = prover.consistency(place as u64) {
                let old = edge(&entries[..place]).root();
                let verified = verify_consistency(place as u64, old, size as u64, root, &proof);
                prop_assert_eq!(verified, Ok(()));
            }
        }
    }
}
