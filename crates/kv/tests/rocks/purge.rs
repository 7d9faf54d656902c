//! What is deleted leaves the files when asked.

use std::fs;
use std::path::Path;

use cl_kv::{Batch, Engine, RocksEngine};
use tempfile::TempDir;

use crate::stored;

/// Not compressible, so that a table holds it as it is.
fn secret() -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..64).map(|_| next()).collect()
}

fn holds(folder: &Path, secret: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, secret);
        }
        let bytes = fs::read(&path).unwrap();
        bytes.windows(secret.len()).any(|window| window == secret)
    })
}

#[test]
fn a_purge_takes_deleted_contents_out_of_the_files() {
    let folder = TempDir::new().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    let put = |key: &str| Batch::new().put(key, stored(1, secret()));
    engine.apply(put("in a table")).unwrap();
    engine.purge().unwrap();
    engine.apply(put("in the log")).unwrap();
    assert!(holds(folder.path(), &secret()));
    let delete = Batch::new().delete("in a table").delete("in the log");
    engine.apply(delete).unwrap();
    assert!(holds(folder.path(), &secret()));
    engine.purge().unwrap();
    assert!(!holds(folder.path(), &secret()));
}
