//! Coordinates, paths and bundles.

use cl_tlog::{Entry, Error, Form, MAX_ENTRY_BYTES, Tile, TilePath};
use proptest::prelude::*;

/// For sizes of a tree: full tiles and the width of the partial one, by level.
const LEVELS: &[(u64, &[(u64, u16)])] = &[
    (0, &[]),
    (1, &[(0, 1)]),
    (255, &[(0, 255)]),
    (256, &[(1, 0), (0, 1)]),
    (257, &[(1, 1), (0, 1)]),
    (511, &[(1, 255), (0, 1)]),
    (768, &[(3, 0), (0, 3)]),
    (65_535, &[(255, 255), (0, 255)]),
    (65_536, &[(256, 0), (1, 0), (0, 1)]),
    (65_537, &[(256, 1), (1, 0), (0, 1)]),
    (131_333, &[(513, 5), (2, 1), (0, 2)]),
];

#[test]
fn a_tree_has_these_tiles_and_no_empty_ones() {
    for (size, levels) in LEVELS {
        let mut expected = Vec::new();
        for (level, (full, partial)) in (0..).zip(*levels) {
            let full = (0..*full).map(|index| Tile::new(level, index, 256).unwrap());
            expected.extend(full.clone());
            expected.extend(Tile::new(level, full.count() as u64, *partial));
        }
        assert_eq!(Tile::all_of(*size).collect::<Vec<_>>(), expected, "{size}");
        for tile in &expected {
            assert_eq!(
                Tile::in_tree(*size, tile.level(), tile.index()),
                Some(*tile)
            );
        }
    }
}

#[test]
fn a_tree_of_the_largest_size_has_eight_levels() {
    let top = Tile::in_tree(u64::MAX, 7, 0);
    assert_eq!(top, Tile::new(7, 0, 255));
    assert_eq!(Tile::in_tree(u64::MAX, 8, 0), None);
    assert_eq!(Tile::in_tree(u64::MAX, 0, u64::MAX), None);
    assert_eq!(
        Tile::in_tree(u64::MAX, 0, u64::MAX >> 8),
        Tile::new(0, u64::MAX >> 8, 255)
    );
}

#[test]
fn paths_are_written_in_groups_of_three_digits() {
    for (level, index, width, path) in [
        (0, 0, 256, "tile/0/000"),
        (0, 7, 19, "tile/0/007.p/19"),
        (1, 999, 1, "tile/1/999.p/1"),
        (2, 1000, 255, "tile/2/x001/000.p/255"),
        (9, 20_000_345, 256, "tile/9/x020/x000/345"),
        (
            63,
            5_004_003_002_001,
            256,
            "tile/63/x005/x004/x003/x002/001",
        ),
        (0, (1 << 56) - 1, 256, "tile/0/x072/x057/x594/x037/x927/935"),
    ] {
        let tile = Tile::new(level, index, width).unwrap();
        assert_eq!(tile.to_string(), path);
        assert_eq!(TilePath::parse(path), Some(TilePath::Hashes(tile)));
    }
    let entries = TilePath::Entries(Tile::new(0, 1234, 56).unwrap());
    assert_eq!(entries.to_string(), "tile/entries/x001/234.p/56");
    assert_eq!(TilePath::parse("tile/entries/x001/234.p/56"), Some(entries));
}

#[test]
fn paths_in_another_spelling_are_refused() {
    for path in [
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "/tile/0/000",
        "tile/0/000/",
        "tile//000",
        "tile/0//000",
        "tile/0/00",
        "tile/0/0000",
        "tile/0/1000",
        "tile/0/x000/007",
        "tile/0/x001/x000",
        "tile/0/001/000",
        "tile/0/x1/000",
        "tile/0/X001/000",
        "tile/0/+01",
        "tile/0/0x1",
        "tile/0/ 01",
        "tile/0/٠٠٠",
        "tile/00/000",
        "tile/+0/000",
        "tile/-0/000",
        "tile/64/000",
        "tile/256/000",
        "tile/0/000.p/0",
        "tile/0/000.p/00",
        "tile/0/000.p/010",
        "tile/0/000.p/+10",
        "tile/0/000.p/256",
        "tile/0/000.p/65537",
        "tile/0/000.p/",
        "tile/0/000.p",
        "tile/0/000.P/10",
        "tile/0/000.p/10/",
        "tile/0/000.p/10.p/10",
        "tile/0/000%2Ep/10",
        "tile/0/../0/000",
        "tile/0/./000",
        "tile/0/x072/x057/x594/x037/x927/936",
        "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
        "tile/8/0/000",
        "tile/data/000",
        "tile/entries/0/000",
        "tile/Entries/000",
        "checkpoint",
    ] {
        assert_eq!(TilePath::parse(path), None, "{path}");
    }
}

#[test]
fn an_entry_that_would_overflow_its_length_prefix_is_refused() {
    let longest = vec![7; MAX_ENTRY_BYTES];
    let entries = [Entry::new(&longest).unwrap(), Entry::new(b"").unwrap()];
    let bundle = Entry::write_bundle(&entries).unwrap();
    assert_eq!(bundle.len(), 2 + MAX_ENTRY_BYTES + 2);
    assert_eq!(Entry::parse_bundle(&bundle).unwrap(), entries);
    for bytes in [65_536, 65_537, 131_072] {
        let refused = Entry::new(&vec![7; bytes]).map(Entry::bytes).unwrap_err();
        assert_eq!(refused, Error::EntryTooLong { bytes });
        assert_eq!(refused.code(), "entry_too_long");
    }
}

#[test]
fn an_entry_does_not_print() {
    assert_eq!(
        format!("{:?}", Entry::new(b"canary").unwrap()),
        "Entry { .. }"
    );
}

#[test]
fn a_bundle_that_is_cut_or_too_wide_is_refused() {
    let malformed = Error::Malformed(Form::EntryBundle);
    let bundle = b"\0\x03abc\0\0\0\x01d";
    assert_eq!(Entry::parse_bundle(bundle).unwrap().len(), 3);
    for cut in [0, 1, 2, 3, 4, 6, 8, 9] {
        assert_eq!(Entry::parse_bundle(&bundle[..cut]), Err(malformed), "{cut}");
    }
    assert_eq!(Entry::parse_bundle(&[0; 2 * 256]).unwrap().len(), 256);
    assert_eq!(Entry::parse_bundle(&[0; 2 * 257]), Err(malformed));
    let empty = Entry::new(b"").unwrap();
    assert_eq!(Entry::write_bundle(&[]), Err(malformed));
    assert_eq!(Entry::write_bundle(&[empty; 257]), Err(malformed));
}

proptest! {
    #[test]
    fn every_tile_has_one_path(level in 0_u8..64, index in 0_u64..1 << 56, width in 1_u16..=256) {
        let tile = Tile::new(level, index, width).unwrap();
        let path = TilePath::Hashes(tile);
        prop_assert_eq!(TilePath::parse(&path.to_string()), Some(path));
        let path = TilePath::Entries(Tile::new(0, index, width).unwrap());
        prop_assert_eq!(TilePath::parse(&path.to_string()), Some(path));
    }

    #[test]
    fn what_is_accepted_as_a_path_is_its_one_spelling(
        path in "tile/([0-9+]{1,3}|entries)(/x?[0-9]{1,4}){1,3}(\\.p/[0-9]{1,3})?",
    ) {
        if let Some(parsed) = TilePath::parse(&path) {
            prop_assert_eq!(parsed.to_string(), path);
        }
    }

    #[test]
    fn what_is_accepted_as_a_bundle_is_written_the_same(bytes: Vec<u8>) {
        if let Ok(entries) = Entry::parse_bundle(&bytes) {
            prop_assert_eq!(Entry::write_bundle(&entries), Ok(bytes.clone()));
        }
    }
}
