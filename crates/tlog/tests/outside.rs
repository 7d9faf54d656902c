//! A log in a folder, verified by packages of other people, and not verified once it was tampered
//! with. `CL_TLOG_PYTHON` names a Python interpreter that has them (`conformance/tlog`).

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cl_tlog::{
    AddCheckpoint, Appended, Checkpoint, Cosigner, Ed25519Signer, Edge, Entry, KeyName, ProofFile,
    Signature, SignedCheckpoint, Tile, TilePath, VerifierKey, Witnesses,
};
use tempfile::TempDir;

const ORIGIN: &str = "log.example/outside";
const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../conformance/tlog/verify.py"
);

/// The sizes at which the log signed a checkpoint.
const SIZES: [usize; 4] = [1, 100, 356, 600];

fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

fn log_key(seed: u8) -> Ed25519Signer {
    Ed25519Signer::from_seed(name(ORIGIN), &[seed; 32]).unwrap()
}

fn witness() -> Cosigner {
    Cosigner::from_seed(name("witness.example"), &[2; 32]).unwrap()
}

fn write(folder: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes what one commit adds to the folder.
fn write_commit(folder: &Path, entries: &[Entry<'_>], old_size: usize, appended: &Appended) {
    for (tile, bytes) in appended.tiles() {
        write(folder, &tile.to_string(), bytes);
        if tile.level() == 0 {
            let first = usize::try_from(tile.index()).unwrap() * 256;
            let bundle = &entries[first..first + usize::from(tile.width())];
            let path = TilePath::Entries(tile).to_string();
            write(folder, &path, Entry::write_bundle(bundle).unwrap());
        }
    }
    let edge = appended.edge();
    let checkpoint = Checkpoint::new(ORIGIN, edge.size(), edge.root()).unwrap();
    let mut signed = SignedCheckpoint::sign(checkpoint, &[&log_key(1)]).unwrap();
    signed
        .add(witness().cosign(&signed, 1_700_000_000).unwrap())
        .unwrap();
    write(folder, "checkpoint", signed.to_string());
    let read = |tile: Tile| match fs::read(folder.join(tile.to_string())) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => Err(error),
    };
    let mut prover = appended.prover(read);
    for index in (old_size as u64..edge.size()).step_by(37) {
        let file = ProofFile {
            extra: index.to_be_bytes().to_vec(),
            index,
            proof: prover.inclusion(index).unwrap(),
            checkpoint: signed.clone(),
        };
        write(
            folder,
            &format!("proofs/{index}.tlog-proof"),
            file.to_string(),
        );
    }
    let consistency = prover.consistency(old_size as u64).unwrap();
    let request = AddCheckpoint::new(old_size as u64, consistency, signed).unwrap();
    write(
        folder,
        &format!("requests/{:03}", edge.size()),
        request.to_string(),
    );
}

/// A log of 600 entries with four checkpoints.
fn export() -> TempDir {
    let folder = TempDir::new().unwrap();
    let texts: Vec<_> = (0..600).map(|number| format!("entry {number}")).collect();
    let entries: Vec<_> = texts
        .iter()
        .map(|text| Entry::new(text.as_bytes()).unwrap())
        .collect();
    let mut edge = Edge::default();
    let mut old_size = 0;
    for size in SIZES {
        let appended = edge.append(&entries[old_size..size]).unwrap();
        write_commit(folder.path(), &entries, old_size, &appended);
        edge = appended.into_edge();
        old_size = size;
    }
    folder
}

#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "whoever runs the tests has the packages, or not"
)]
fn python() -> Option<OsString> {
    let python = std::env::var_os("CL_TLOG_PYTHON");
    if python.is_none() {
        println!("skipped: CL_TLOG_PYTHON names no interpreter");
    }
    python
}

fn verify(python: &OsString, folder: &Path) -> Output {
    Command::new(python)
        .arg(SCRIPT)
        .arg(folder)
        .arg(log_key(1).verifier_key().to_string())
        .args(["--witness-key", &witness().verifier_key().to_string()])
        .output()
        .unwrap()
}

#[test]
fn other_packages_verify_the_log_and_their_witness_cosigns_it() {
    let Some(python) = python() else { return };
    let folder = export();
    let output = verify(&python, folder.path());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let answers = String::from_utf8(output.stdout).unwrap();
    let (key, lines) = answers.split_once('\n').unwrap();
    let key = VerifierKey::parse(key).unwrap();
    let trusted = Witnesses::new(vec![key], 1).unwrap();
    assert_eq!(lines.lines().count(), SIZES.len());
    for (size, line) in SIZES.iter().zip(lines.lines()) {
        let request = fs::read(folder.path().join(format!("requests/{size:03}"))).unwrap();
        let mut signed = AddCheckpoint::parse(&request).unwrap().checkpoint().clone();
        signed.add(Signature::parse(line).unwrap()).unwrap();
        let verified = signed
            .verify(ORIGIN, &[log_key(1).verifier_key()], &trusted)
            .unwrap();
        assert_eq!(verified.cosignatures().len(), 1);
    }
}

/// A change to the file of this path in an exported folder.
type Change = (&'static str, &'static str, fn(&mut Vec<u8>));

fn flip(bytes: &mut [u8], at: usize) {
    bytes[at] ^= 1;
}

/// Replaces a line of a text by what a closure makes of it.
fn edit_line(bytes: &mut Vec<u8>, number: usize, edit: impl Fn(&str) -> String) {
    let text = String::from_utf8(bytes.clone()).unwrap();
    let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    lines[number] = edit(&lines[number]);
    *bytes = lines.join("\n").into_bytes();
}

/// The text with its third base64 character behind `from` changed.
fn other_base64(line: &str, from: usize) -> String {
    let mut line = line.to_owned();
    let at = from + 2;
    let other = if line[at..].starts_with('A') {
        "B"
    } else {
        "A"
    };
    line.replace_range(at..=at, other);
    line
}

const CHANGES: &[Change] = &[
    ("a bit of an entry", "tile/entries/000", |bytes| {
        flip(bytes, 5)
    }),
    ("a length prefix", "tile/entries/001", |bytes| {
        flip(bytes, 1)
    }),
    ("a cut bundle", "tile/entries/002.p/88", |bytes| {
        bytes.truncate(bytes.len() - 9)
    }),
    ("a longer bundle", "tile/entries/002.p/88", |bytes| {
        bytes.extend([0, 0])
    }),
    ("a bit of a full tile", "tile/0/000", |bytes| {
        flip(bytes, 8191)
    }),
    ("a bit of a partial tile", "tile/0/002.p/88", |bytes| {
        flip(bytes, 0)
    }),
    ("a bit of an upper tile", "tile/1/000.p/2", |bytes| {
        flip(bytes, 40)
    }),
    ("a cut tile", "tile/0/001", |bytes| bytes.truncate(8160)),
    ("the origin", "checkpoint", |bytes| {
        edit_line(bytes, 0, |line| format!("{line}s"))
    }),
    ("the size", "checkpoint", |bytes| {
        edit_line(bytes, 1, |_| "599".to_owned())
    }),
    ("the root", "checkpoint", |bytes| {
        edit_line(bytes, 2, |line| other_base64(line, 0))
    }),
    ("the signature", "checkpoint", |bytes| {
        edit_line(bytes, 4, |line| other_base64(line, line.len() - 20));
    }),
    ("a cosignature", "checkpoint", |bytes| {
        edit_line(bytes, 5, |line| other_base64(line, line.len() - 20));
    }),
    ("a missing cosignature", "checkpoint", |bytes| {
        edit_line(bytes, 5, |_| String::new())
    }),
    ("an index", "proofs/137.tlog-proof", |bytes| {
        edit_line(bytes, 2, |_| "index 138".to_owned())
    }),
    ("a hash", "proofs/137.tlog-proof", |bytes| {
        edit_line(bytes, 3, |line| other_base64(line, 0));
    }),
    ("a repeated hash", "proofs/137.tlog-proof", |bytes| {
        edit_line(bytes, 3, |line| format!("{line}\n{line}"));
    }),
    ("a root in a proof", "proofs/137.tlog-proof", |bytes| {
        let root = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
        flip(bytes, root + 2 + ORIGIN.len() + 1 + "356\n".len() + 3);
    }),
    ("a hash for the witness", "requests/356", |bytes| {
        edit_line(bytes, 2, |line| other_base64(line, 0));
    }),
];

fn assert_refused(python: &OsString, folder: &Path, what: &str) {
    let output = verify(python, folder);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{what}: {problem}");
    let refused = problem.lines().any(|line| line.starts_with("refused: "));
    assert!(refused, "{what}: {problem}");
}

#[test]
fn other_packages_refuse_whatever_was_tampered_with() {
    let Some(python) = python() else { return };
    let folder = export();
    for (what, path, change) in CHANGES {
        let path = folder.path().join(path);
        let good = fs::read(&path).unwrap();
        let mut changed = good.clone();
        change(&mut changed);
        assert_ne!(changed, good, "{what}");
        fs::write(&path, changed).unwrap();
        assert_refused(&python, folder.path(), what);
        fs::write(&path, good).unwrap();
    }
    assert!(verify(&python, folder.path()).status.success());
}

#[test]
fn other_packages_refuse_swapped_missing_and_foreign_files() {
    let Some(python) = python() else { return };
    let folder = export();
    let path = |path: &str| folder.path().join(path);
    let (one, other) = (path("proofs/100.tlog-proof"), path("proofs/137.tlog-proof"));
    let (first, second) = (fs::read(&one).unwrap(), fs::read(&other).unwrap());
    fs::write(&one, &second).unwrap();
    fs::write(&other, &first).unwrap();
    assert_refused(&python, folder.path(), "swapped proofs");
    fs::write(&one, &first).unwrap();

    let mut foreign = ProofFile::parse(&second).unwrap();
    let checkpoint = foreign.checkpoint.checkpoint().clone();
    foreign.checkpoint = SignedCheckpoint::sign(checkpoint, &[&log_key(3)]).unwrap();
    fs::write(&other, foreign.to_string()).unwrap();
    assert_refused(&python, folder.path(), "a proof signed by another key");
    fs::write(&other, &second).unwrap();

    fs::remove_file(path("tile/entries/001")).unwrap();
    assert_refused(&python, folder.path(), "a missing bundle");
}
