//! Replays the committed fuzzing corpus through the fuzz target's own body.

#[path = "../../../../fuzz/policy_bodies.rs"]
mod policy_bodies;

use std::fs;
use std::path::Path;

#[test]
fn policies_hold_on_their_corpus() {
    let corpus = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/cedar_policy"
    ));
    let files: Vec<_> = fs::read_dir(corpus).unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        policy_bodies::cedar_policy(&fs::read(file.unwrap().path()).unwrap());
    }
}
