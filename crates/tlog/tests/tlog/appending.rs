//! Appending to the right edge, and loading it again.

use std::collections::BTreeMap;

use cl_tlog::{Edge, Error, Hash, ReadError, Tile};
use proptest::prelude::*;

use crate::naive::{Tiles, checked, edge, entries, root, tile_bytes};

/// Appends in groups; returns the edge and every tile that there was to store, each once.
fn append(groups: &[usize], entries: &[Vec<u8>]) -> (Edge, BTreeMap<Tile, Vec<u8>>) {
    let mut edge = Edge::default();
    let mut stored = BTreeMap::new();
    let mut rest = entries;
    for group in groups {
        let (now, later) = rest.split_at(*group);
        let appended = edge.append(&checked(now)).unwrap();
        for (tile, bytes) in appended.tiles() {
            assert_eq!(stored.insert(tile, bytes), None, "{tile} is stored once");
        }
        edge = appended.into_edge();
        rest = later;
        for tile in Tile::edge_of(edge.size()) {
            assert!(
                stored.contains_key(&tile),
                "{tile} is there for this checkpoint"
            );
        }
    }
    (edge, stored)
}

#[test]
fn roots_are_those_of_the_definition() {
    let entries = entries(1030);
    let mut edge = Edge::default();
    for size in 0..=entries.len() {
        assert_eq!(edge.size(), size as u64);
        if size < 70 || size % 256 < 3 || size % 256 > 253 {
            assert_eq!(edge.root(), root(&entries[..size]), "{size}");
        }
        if let Some(entry) = entries.get(size..=size) {
            edge = edge.append(&checked(entry)).unwrap().into_edge();
        }
    }
}

#[test]
fn appending_leaves_the_old_edge_as_it_is() {
    let entries = entries(300);
    let before = edge(&entries[..200]);
    let appended = before.append(&checked(&entries[200..])).unwrap();
    assert_eq!((before.size(), before.root()), (200, root(&entries[..200])));
    assert_eq!(appended.edge().root(), root(&entries));
}

#[test]
fn appending_nothing_stores_nothing() {
    let edge = edge(&entries(300));
    let appended = edge.append(&[]).unwrap();
    assert_eq!(appended.tiles().count(), 0);
    assert_eq!(appended.edge().root(), edge.root());
}

#[test]
fn only_tiles_that_changed_are_stored() {
    let entries = entries(258);
    let appended = edge(&entries[..257])
        .append(&checked(&entries[257..]))
        .unwrap();
    let tiles: Vec<_> = appended.tiles().map(|(tile, _)| tile.to_string()).collect();
    assert_eq!(tiles, ["tile/0/001.p/2"]);
}

#[test]
fn a_third_level_begins_after_65536_entries() {
    let entries = entries(65_537);
    let (edge, stored) = append(&[65_536, 1], &entries);
    assert_eq!(edge.root(), root(&entries));
    let upper: Vec<_> = stored.keys().filter(|tile| tile.level() > 0).collect();
    let upper: Vec<_> = upper.iter().map(ToString::to_string).collect();
    assert_eq!(upper, ["tile/1/000", "tile/2/000.p/1"]);
    assert_eq!(stored.len(), 256 + 1 + 2);
}

#[test]
fn a_restart_finds_the_edge_of_the_stored_root() {
    for size in [0, 1, 255, 256, 257, 513, 700] {
        let entries = entries(size);
        let (root, tiles) = (root(&entries), Tiles::of(&entries));
        let loaded = Edge::load(size as u64, root, &&tiles).unwrap();
        assert_eq!(loaded.root(), root);
        let more = checked(&entries[..size.min(100)]);
        let (before, after) = (edge(&entries), loaded);
        let tiles = |edge: &Edge| edge.append(&more).unwrap().tiles().collect::<Vec<_>>();
        assert_eq!(tiles(&before), tiles(&after));
    }
}

#[test]
fn a_restart_refuses_tiles_that_do_not_give_the_stored_root() {
    let entries = entries(700);
    let (whole, tiles) = (root(&entries), Tiles::of(&entries));
    let other = root(&entries[..699]);
    let loaded = Edge::load(700, other, &&tiles).unwrap_err();
    assert_eq!(loaded, ReadError::Refused(Error::RootMismatch));
    assert!(Edge::load(0, other, &&tiles).is_err());
    for tile in Tile::edge_of(700) {
        let mut changed = tiles.clone();
        changed.stored.get_mut(&tile).unwrap()[5] ^= 4;
        let loaded = Edge::load(700, whole, &&changed).unwrap_err();
        assert_eq!(loaded, ReadError::Refused(Error::RootMismatch));
        changed.stored.get_mut(&tile).unwrap().pop();
        assert!(Edge::load(700, whole, &&changed).is_err());
        changed.stored.remove(&tile);
        let loaded = Edge::load(700, whole, &&changed).unwrap_err();
        assert_eq!(loaded, ReadError::Refused(Error::TileMissing(tile)));
    }
}

#[test]
fn an_error_of_the_reader_is_told_apart() {
    let failing = |_: Tile| Err::<Option<Vec<u8>>, _>("disk");
    let loaded = Edge::load(1, Hash::EMPTY, &failing).unwrap_err();
    assert_eq!(loaded, ReadError::Read("disk"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_grouping_gives_the_same_tiles_and_root(
        groups in prop::collection::vec(0_usize..300, 1..8),
    ) {
        let entries = entries(groups.iter().sum());
        let (edge, stored) = append(&groups, &entries);
        prop_assert_eq!(edge.root(), root(&entries));
        for (tile, bytes) in &stored {
            prop_assert_eq!(bytes, &tile_bytes(*tile, &entries), "{}", tile);
        }
        for tile in Tile::all_of(entries.len() as u64) {
            prop_assert!(stored.contains_key(&tile), "{} is stored", tile);
        }
    }
}
