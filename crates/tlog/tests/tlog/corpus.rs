//! Replays the committed fuzz corpus through what the fuzz target does.

#[path = "../../../../fuzz/tlog_bodies.rs"]
mod tlog_bodies;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[test]
fn texts_and_bytes_hold_on_their_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tlog");
    let files: Vec<_> = fs::read_dir(corpus).unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        tlog_bodies::tlog(&bytes);
        for cut in 0..bytes.len() {
            tlog_bodies::tlog(&bytes[..cut]);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_hold(bytes: Vec<u8>) {
        tlog_bodies::tlog(&bytes);
    }
}
