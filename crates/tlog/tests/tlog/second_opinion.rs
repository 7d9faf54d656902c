//! Another implementation accepts what this one writes, and the other way round.

use cl_tlog::{
    Checkpoint, Entry, Hash, Note, Prover, Tile, VerifierKey, verify_consistency, verify_inclusion,
};
use data_encoding::BASE64;
use signed_note::{Note as OtherNote, StandardSigner, StandardVerifier, VerifierList};
use tlog_tiles::{
    Checkpoint as OtherCheckpoint, Error as OtherError, Hash as OtherHash, HashReader,
    Tile as OtherTile, TileHashReader, TileReader, check_record, check_tree, prove_record,
    prove_tree, record_hash, stored_hashes, tree_hash,
};

use crate::naive::{Tiles, checked, edge, entries};
use crate::signing::signer;

const SIZES: [usize; 7] = [1, 2, 3, 255, 256, 257, 700];

fn theirs(hash: Hash) -> OtherHash {
    OtherHash(*hash.as_bytes())
}

fn ours(hash: &OtherHash) -> Hash {
    Hash::from(hash.0)
}

/// Their store of every whole node.
#[derive(Default)]
struct Stored(Vec<OtherHash>);

impl HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<OtherHash>, OtherError> {
        let hash = |index: &u64| self.0[usize::try_from(*index).unwrap()];
        Ok(indexes.iter().map(hash).collect())
    }
}

fn stored(entries: &[Vec<u8>]) -> Stored {
    let mut stored = Stored::default();
    for (number, entry) in (0..).zip(entries) {
        let hashes = stored_hashes(number, entry, &stored).unwrap();
        stored.0.extend(hashes);
    }
    stored
}

/// Our tiles behind their reader.
struct OurTiles(Tiles);

impl TileReader for OurTiles {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[OtherTile]) -> Result<Vec<Vec<u8>>, OtherError> {
        let ours = |tile: &OtherTile| {
            let width = u16::try_from(tile.width()).unwrap();
            self.0.stored[&Tile::new(tile.level(), tile.level_index(), width).unwrap()].clone()
        };
        Ok(tiles.iter().map(ours).collect())
    }

    fn save_tiles(&self, _: &[OtherTile], _: &[Vec<u8>]) {}
}

fn our_tiles(entries: &[Vec<u8>]) -> (Tiles, Hash) {
    let appended = edge(&[]).append(&checked(entries)).unwrap();
    let tiles = Tiles {
        stored: appended.tiles().collect(),
        ..Tiles::default()
    };
    (tiles, appended.edge().root())
}

#[test]
fn both_make_and_accept_the_same_roots_and_proofs() {
    for count in SIZES {
        let entries = entries(count);
        let (stored, size) = (stored(&entries), count as u64);
        let (tiles, root) = our_tiles(&entries);
        assert_eq!(ours(&tree_hash(size, &stored).unwrap()), root);
        let mut prover = tiles.prover(size, root);
        for index in (0..size).step_by(13).chain([size - 1]) {
            let leaf = Entry::new(&entries[index as usize]).unwrap().leaf_hash();
            assert_eq!(theirs(leaf), record_hash(&entries[index as usize]));
            let proof = prover.inclusion(index).unwrap();
            let other: Vec<_> = proof.iter().copied().map(theirs).collect();
            check_record(&other, size, theirs(root), index, theirs(leaf)).unwrap();
            let other = prove_record(size, index, &stored).unwrap();
            let other: Vec<_> = other.iter().map(ours).collect();
            assert_eq!(verify_inclusion(leaf, index, size, &other, root), Ok(()));
            assert_eq!(other, proof);

            let old_size = index + 1;
            let old = edge(&entries[..=index as usize]).root();
            let proof = prover.consistency(old_size).unwrap();
            let other: Vec<_> = proof.iter().copied().map(theirs).collect();
            check_tree(&other, size, theirs(root), old_size, theirs(old)).unwrap();
            let other = prove_tree(size, old_size, &stored).unwrap();
            let other: Vec<_> = other.iter().map(ours).collect();
            assert_eq!(
                verify_consistency(old_size, old, size, root, &other),
                Ok(())
            );
        }
    }
}

#[test]
fn the_other_one_authenticates_our_tiles_and_we_its() {
    for count in SIZES {
        let entries = entries(count);
        let (tiles, root) = our_tiles(&entries);
        let (stored, size) = (stored(&entries), count as u64);
        let read = |tile: Tile| {
            let width = u32::from(tile.width());
            let other = OtherTile::new(8, tile.level(), tile.index(), width, false);
            other.read_data(&stored).map(Some)
        };
        let mut prover = Prover::load(size, root, read).unwrap();
        let ours = OurTiles(tiles);
        let reader = TileHashReader::new(size, theirs(root), &ours);
        for index in (0..size).step_by(13).chain([size - 1]) {
            let proof = prove_record(size, index, &reader).unwrap();
            let own: Vec<_> = prover
                .inclusion(index)
                .unwrap()
                .into_iter()
                .map(theirs)
                .collect();
            assert_eq!(proof, own);
        }
    }
}

#[test]
fn paths_agree_beside_the_height() {
    for (level, index, width) in [
        (0, 0, 256),
        (1, 999, 7),
        (5, 1000, 255),
        (2, 98_765_432, 256),
    ] {
        let tile = Tile::new(level, index, width).unwrap();
        let other = OtherTile::new(8, level, index, width.into(), false);
        assert_eq!(
            other.path().replacen("tile/8/", "tile/", 1),
            tile.to_string()
        );
    }
}

#[test]
fn the_other_one_accepts_our_notes() {
    let signer = signer("log.example");
    let note = Note::sign("a\n\nb\n".to_owned(), &[&signer]).unwrap();
    let verifier = StandardVerifier::new(&signer.verifier_key().to_string()).unwrap();
    let known = VerifierList::new(vec![Box::new(verifier)]);
    let other = OtherNote::from_bytes(note.to_string().as_bytes()).unwrap();
    assert_eq!(other.verify(&known).unwrap().0.len(), 1);
    assert_eq!(other.to_bytes(), note.to_string().into_bytes());
}

#[test]
fn we_accept_the_notes_of_the_other_one() {
    let key = signer("log.example").verifier_key().clone();
    let seed = [&[1][..], &[11; 32]].concat();
    let id = key.to_string();
    let id = id.split('+').nth(1).unwrap();
    let text = format!("PRIVATE+KEY+log.example+{id}+{}", BASE64.encode(&seed));
    let other = StandardSigner::new(&text).unwrap();
    let mut note = OtherNote::new(b"some\ntext\n", &[]).unwrap();
    note.add_sigs(&[&other]).unwrap();
    let note = Note::parse(&note.to_bytes()).unwrap();
    assert_eq!(
        note.verify(&[&VerifierKey::parse(&key.to_string()).unwrap()])
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn checkpoints_have_the_same_text() {
    let (_, root) = our_tiles(&entries(300));
    let checkpoint = Checkpoint::new("log.example", 300, root).unwrap();
    let other = OtherCheckpoint::from_bytes(checkpoint.to_string().as_bytes()).unwrap();
    assert_eq!(
        (other.origin(), other.size(), ours(other.hash())),
        ("log.example", 300, root)
    );
    let other = OtherCheckpoint::new("log.example", 300, theirs(root), "more\n").unwrap();
    let text = String::from_utf8(other.to_bytes()).unwrap();
    let parsed = Checkpoint::parse(&text).unwrap();
    assert_eq!(
        (parsed.root(), parsed.extensions()),
        (root, &["more".to_owned()][..])
    );
    assert_eq!(parsed.to_string(), text);
}
