//! Exported logs: verified whole, and refused in each way that one can be damaged.

use std::fs;
use std::path::{Path, PathBuf};

use cl_tlog::{Checkpoint, Hash, SignedCheckpoint};
use serde_json::{Value, json};

use crate::forged::{self, LogKey};
use crate::support::{TestHome, mode};

const LINES: &str = "receipts.jsonl";

/// A home whose log was exported, and whose processes are gone.
pub(crate) struct Exported {
    pub(crate) home: TestHome,
    /// Counts the copies.
    copies: std::cell::Cell<u32>,
}

impl Exported {
    pub(crate) fn new() -> Self {
        let home = TestHome::new();
        let up = home.up();
        let folder = home.beside("export");
        let exported = home.json(&["receipts", "export", &folder]);
        assert_eq!(exported["entries"], 2, "{exported}");
        drop(up);
        let copies = std::cell::Cell::new(0);
        Self { home, copies }
    }

    /// A copy to be damaged.
    fn copy(&self) -> PathBuf {
        self.copies.set(self.copies.get() + 1);
        let copy = self.home.beside(&format!("copy-{}", self.copies.get()));
        copy_folder(Path::new(&self.home.beside("export")), Path::new(&copy));
        copy.into()
    }

    /// What is found wrong with a copy after a change: the code, and where.
    pub(crate) fn fault(&self, change: impl FnOnce(&Path)) -> (String, String) {
        let copy = self.copy();
        change(&copy);
        self.fault_of(&["--export", &copy.display().to_string()])
    }

    fn fault_of(&self, args: &[&str]) -> (String, String) {
        fault(&self.home, &[&["receipts", "verify"], args].concat())
    }
}

/// The code and the place of a log that does not verify.
pub(crate) fn fault(home: &TestHome, args: &[&str]) -> (String, String) {
    let answer = home.run(&[&["--json"], args].concat());
    assert_eq!(
        answer.code,
        Some(5),
        "{args:?}: {}{}",
        answer.stdout,
        answer.stderr
    );
    let error: Value = serde_json::from_str(&answer.stderr).unwrap();
    let text = |member: &str| error["error"][member].as_str().unwrap().to_owned();
    (text("code"), text("place"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Flips the lowest bit of a byte, counted from the end of the file.
fn flip(file: &Path, from_end: usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.len() - from_end;
    bytes[at] ^= 1;
    fs::write(file, bytes).unwrap();
}

/// Puts another letter of base64 in the place of one, counted from the end of the file.
fn respell(file: &Path, from_end: usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.len() - from_end;
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    fs::write(file, bytes).unwrap();
}

/// Replaces text that is there exactly once.
pub(crate) fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from}");
    fs::write(file, text.replace(from, to)).unwrap();
}

pub(crate) fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn write_lines(file: &Path, lines: &[String]) {
    fs::write(file, lines.join("\n") + "\n").unwrap();
}

pub(crate) fn is(code: &str, place: &str) -> (String, String) {
    (code.to_owned(), place.to_owned())
}

#[test]
fn an_export_stands_for_itself() {
    let exported = Exported::new();
    let folder = exported.home.beside("export");
    let path = |name: &str| Path::new(&folder).join(name);
    assert_eq!(mode(Path::new(&folder)), 0o700);
    let verified = exported
        .home
        .json(&["receipts", "verify", "--export", &folder]);
    assert_eq!(
        (&verified["verified"], &verified["entries"]),
        (&json!(true), &json!(2))
    );
    let text = exported
        .home
        .ok(&["receipts", "verify", "--export", &folder]);
    assert!(text.contains("verified  yes\n"), "{text}");

    // The same without anything of the home, by the key alone.
    let key = fs::read_to_string(path("key")).unwrap();
    assert!(
        key.starts_with("context-layer.local/receipts/default+"),
        "{key}"
    );
    let stranger = TestHome::missing();
    let by_key = [
        "receipts",
        "verify",
        "--export",
        &folder,
        "--key",
        key.trim(),
    ];
    assert_eq!(
        stranger.json(&by_key)["origin"],
        "context-layer.local/receipts/default"
    );
    let offline = path(LINES).display().to_string();
    let by_lines = [
        "receipts",
        "verify",
        "--offline",
        &offline,
        "--key",
        key.trim(),
    ];
    assert_eq!(stranger.json(&by_lines)["entries"], 2);

    // Any single line, too.
    let all = lines(&path(LINES));
    let one = exported.home.write("one.jsonl", &format!("{}\n", all[1]));
    let verified = exported
        .home
        .json(&["receipts", "verify", "--offline", &one]);
    assert_eq!(verified["entries"], 1);
    let line: Value = serde_json::from_str(&all[1]).unwrap();
    let members: Vec<_> = line
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        members,
        [
            "attestation",
            "proof",
            "receipt",
            "recorded_at",
            "sequence",
            "writer"
        ]
    );
    let portable = fs::read(path("portable/receipts.log")).unwrap();
    let state = cl_model::log::LogState::verify(&portable).unwrap();
    assert_eq!(state.entries(), 2);
}

#[test]
fn each_damage_of_an_export_is_named_with_its_place() {
    let exported = Exported::new();
    let fault = |change: &dyn Fn(&Path)| exported.fault(change);
    let (tile, bundle) = ("tile/0/000.p/2", "tile/entries/000.p/2");

    // The checkpoint.
    let found = fault(&|it| respell(&it.join("checkpoint"), 8));
    assert_eq!(found, is("RECEIPT_LOG_SIGNATURE_INVALID", "checkpoint"));
    let found = fault(&|it| replace(&it.join("checkpoint"), "\n2\n", "\n3\n"));
    assert_eq!(found, is("RECEIPT_LOG_SIGNATURE_INVALID", "checkpoint"));
    let found = fault(&|it| replace(&it.join("checkpoint"), "\n2\n", "\n02\n"));
    assert_eq!(found, is("RECEIPT_LOG_CHECKPOINT_MALFORMED", "checkpoint"));
    let found = fault(&|it| fs::remove_file(it.join("checkpoint")).unwrap());
    assert_eq!(found, is("RECEIPT_LOG_FILE_MISSING", "checkpoint"));

    // Tiles and entries.
    let found = fault(&|it| flip(&it.join(tile), 40));
    assert_eq!(found, is("RECEIPT_LOG_TILE_MISMATCH", tile));
    let found = fault(&|it| fs::write(it.join(tile), [0; 63]).unwrap());
    assert_eq!(found, is("RECEIPT_LOG_TILE_MALFORMED", tile));
    let found = fault(&|it| fs::remove_file(it.join(tile)).unwrap());
    assert_eq!(found, is("RECEIPT_LOG_FILE_MISSING", tile));
    let found = fault(&|it| flip(&it.join(bundle), 1));
    assert_eq!(found, is("RECEIPT_LOG_ENTRY_MISMATCH", bundle));
    let found = fault(&|it| {
        let bytes = fs::read(it.join(bundle)).unwrap();
        fs::write(it.join(bundle), &bytes[..bytes.len() - 1]).unwrap();
    });
    assert_eq!(found, is("RECEIPT_LOG_TILE_MALFORMED", bundle));
    let found = fault(&|it| fs::remove_file(it.join(bundle)).unwrap());
    assert_eq!(found, is("RECEIPT_LOG_FILE_MISSING", bundle));

    // Receipts and proofs.
    let (first, second) = ("receipts.jsonl line 1", "receipts.jsonl line 2");
    let receipts = |it: &Path| it.join(LINES);
    let activated = "A policy snapshot was made active.";
    let found = fault(&|it| replace(&receipts(it), activated, "Nothing was made active."));
    assert_eq!(found, is("RECEIPT_LOG_RECEIPT_MISMATCH", second));
    let found = fault(&|it| flip(&receipts(it), 2));
    assert_eq!(found, is("RECEIPT_LOG_LINE_MALFORMED", second));
    let found = fault(&|it| replace(&receipts(it), "\"sequence\":2", "\"sequence\": 2"));
    assert_eq!(found, is("RECEIPT_LOG_LINE_MALFORMED", second));
    let found = fault(&|it| replace(&receipts(it), "\"sequence\":2", "\"sequence\":3"));
    assert_eq!(found, is("RECEIPT_LOG_LINE_ORDER", second));
    let found = fault(&|it| replace(&receipts(it), "\\nindex 1\\n", "\\nindex 0\\n"));
    assert_eq!(found, is("RECEIPT_LOG_PROOF_MISMATCH", second));
    let found = fault(&|it| replace(&receipts(it), "\\nindex 1\\n", "\\nindex x\\n"));
    assert_eq!(found, is("RECEIPT_LOG_PROOF_MALFORMED", second));
    let found = fault(&|it| {
        let mut all = lines(&receipts(it));
        all.swap(0, 1);
        write_lines(&receipts(it), &all);
    });
    assert_eq!(found, is("RECEIPT_LOG_LINE_ORDER", first));
    let found = fault(&|it| write_lines(&receipts(it), &lines(&receipts(it))[..1]));
    assert_eq!(found, is("RECEIPT_LOG_TRUNCATED", second));
    let found = fault(&|it| {
        let bytes = fs::read(receipts(it)).unwrap();
        fs::write(receipts(it), &bytes[..bytes.len() - 20]).unwrap();
    });
    assert_eq!(found, is("RECEIPT_LOG_TRUNCATED", second));
    let found = fault(&|it| {
        let mut all = lines(&receipts(it));
        all.push(all[1].clone());
        write_lines(&receipts(it), &all);
    });
    assert_eq!(
        found,
        is("RECEIPT_LOG_LINE_SURPLUS", "receipts.jsonl line 3")
    );
    let found = fault(&|it| fs::remove_file(receipts(it)).unwrap());
    assert_eq!(found, is("RECEIPT_LOG_FILE_MISSING", LINES));

    // What is beside the log.
    let found = fault(&|it| replace(&it.join("portable/receipts.log"), activated, "Nothing."));
    assert_eq!(
        found,
        is(
            "RECEIPT_LOG_PORTABLE_MISMATCH",
            "portable/receipts.log line 2"
        )
    );
    let found = fault(&|it| respell(&it.join("key"), 8));
    assert_eq!(found, is("RECEIPT_LOG_KEY_UNTRUSTED", "key"));
}

#[test]
fn a_log_of_another_key_or_name_is_refused() {
    let exported = Exported::new();
    let folder = exported.home.beside("export");
    let other = LogKey::fresh("context-layer.local/receipts/default");
    let found = exported.fault_of(&["--export", &folder, "--key", &other.text()]);
    assert_eq!(found, is("RECEIPT_LOG_UNSIGNED", "checkpoint"));
    let renamed = LogKey::of_home(&exported.home, "elsewhere/receipts/default");
    let found = exported.fault_of(&["--export", &folder, "--key", &renamed.text()]);
    assert_eq!(found, is("RECEIPT_LOG_ORIGIN_MISMATCH", "checkpoint"));
    let found = exported.fault_of(&["--export", &folder, "--tenant=other"]);
    assert_eq!(found, is("RECEIPT_LOG_ORIGIN_MISMATCH", "checkpoint"));
    let stranger = TestHome::new();
    let found = fault(&stranger, &["receipts", "verify", "--export", &folder]);
    assert_eq!(found, is("RECEIPT_LOG_UNSIGNED", "checkpoint"));
    let wrong = exported.home.run(&["receipts", "verify", "--key=nonsense"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[test]
fn lines_are_held_to_their_proofs_alone() {
    let exported = Exported::new();
    let file = Path::new(&exported.home.beside("export")).join(LINES);
    let all = lines(&file);
    let verify = |name: &str, text: &str| {
        let path = exported.home.write(name, text);
        let (code, place) = exported.fault_of(&["--offline", &path]);
        (code, place.replace(&path, "file"))
    };
    let changed = all[0].replace("A policy snapshot was stored.", "Nothing was stored.");
    let found = verify("changed", &format!("{}\n{changed}\n", all[1]));
    assert_eq!(found, is("RECEIPT_LOG_PROOF_MISMATCH", "file line 2"));
    let moved = all[0].replace("\"sequence\":1", "\"sequence\":2");
    let found = verify("moved", &format!("{moved}\n"));
    assert_eq!(found, is("RECEIPT_LOG_PROOF_MISMATCH", "file line 1"));
    let found = verify("cut", &all[0]);
    assert_eq!(found, is("RECEIPT_LOG_TRUNCATED", "file line 1"));
    assert_eq!(verify("empty", ""), is("RECEIPT_LOG_TRUNCATED", "file"));

    // Two trees of one size, both signed.
    let key = LogKey::of_home(&exported.home, "context-layer.local/receipts/default");
    let forged = forged::write(&exported.home, "forged", &key, &forged::receipts(2));
    let others = lines(&Path::new(&forged).join(LINES));
    let found = verify("two", &format!("{}\n{}\n", all[0], others[1]));
    assert_eq!(found, is("RECEIPT_LOG_FORK", "file line 2"));
}

#[test]
fn a_fork_and_a_rollback_are_told_apart() {
    let exported = Exported::new();
    let folder = exported.home.beside("export");
    let since = |name: &str, text: &str| exported.home.write(name, text);
    let checkpoint = fs::read_to_string(Path::new(&folder).join("checkpoint")).unwrap();
    let same = since("same", &checkpoint);
    let args = ["receipts", "verify", "--export", &folder, "--since", &same];
    assert_eq!(exported.home.json(&args)["continues"], 2);

    let key = LogKey::of_home(&exported.home, "context-layer.local/receipts/default");
    let sign = |size, root| {
        let checkpoint = Checkpoint::new(key.origin(), size, root).unwrap();
        SignedCheckpoint::sign(checkpoint, &[&key])
            .unwrap()
            .to_string()
    };
    let verify = |file: &str| exported.fault_of(&["--export", &folder, "--since", file]);
    for (size, code) in [
        (1, "RECEIPT_LOG_FORK"),
        (2, "RECEIPT_LOG_FORK"),
        (3, "RECEIPT_LOG_ROLLBACK"),
    ] {
        let older = since("older", &sign(size, Hash::of_leaf(b"another")));
        assert_eq!(verify(&older), is(code, "older checkpoint"), "{size}");
    }
    let first = fs::read(Path::new(&folder).join("tile/0/000.p/2")).unwrap();
    let first: [u8; 32] = first[..32].try_into().unwrap();
    let true_one = since("true", &sign(1, Hash::from(first)));
    let args = [
        "receipts", "verify", "--export", &folder, "--since", &true_one,
    ];
    assert_eq!(exported.home.json(&args)["continues"], 1);
    let unsigned = since("unsigned", &checkpoint.replace("\n2\n", "\n1\n"));
    assert_eq!(
        verify(&unsigned),
        is("RECEIPT_LOG_SIGNATURE_INVALID", "older checkpoint")
    );
    let shown = exported.home.run(&[
        "receipts",
        "verify",
        "--export",
        &folder,
        "--since",
        &since("older", &sign(3, Hash::of_leaf(b"another"))),
    ]);
    assert!(
        shown
            .stderr
            .contains("rollback: the log has 2 entries and had 3"),
        "{}",
        shown.stderr
    );
}

#[test]
fn cosignatures_of_an_exported_checkpoint_change_nothing() {
    let exported = Exported::new();
    let copy = exported.copy();
    let path = copy.join("checkpoint");
    let text = fs::read_to_string(&path).unwrap();
    let signed = SignedCheckpoint::parse(text.as_bytes()).unwrap();
    let witness = LogKey::fresh("witness.example/w1");
    let cosigned = SignedCheckpoint::sign(signed.checkpoint().clone(), &[&witness]).unwrap();
    let cosigned = cosigned.to_string();
    let line = cosigned.lines().last().unwrap();
    assert!(line.starts_with("\u{2014} witness.example/w1 "), "{line}");
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    let folder = copy.display().to_string();
    let verified = exported
        .home
        .json(&["receipts", "verify", "--export", &folder]);
    assert_eq!(verified["verified"], true);
    assert_eq!(verified["checkpoint"], format!("{text}{line}\n"));
}
