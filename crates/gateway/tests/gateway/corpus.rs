//! Replays the committed fuzzing corpus through the fuzz targets' own bodies.

#[path = "../../../../fuzz/token_bodies.rs"]
mod token_bodies;

use std::fs;
use std::path::Path;

fn replay(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus")).join(target);
    let files: Vec<_> = fs::read_dir(corpus).unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        body(&fs::read(file.unwrap().path()).unwrap());
    }
}

#[test]
fn tokens_hold_on_their_corpus() {
    replay("token", token_bodies::token);
}

#[test]
fn key_sets_hold_on_their_corpus() {
    replay("jwks", token_bodies::jwks);
}
