//! The portable receipt log on a real file, with its anchor beside it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use cl_model::anchor::{AnchorFile, AnchoredLog, log_id_of_path};
use cl_model::digest::Digest;
use cl_model::key::{Seed, SigningKey};
use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::scalar::KeyId;
use serde_json::{Value, json};

use super::{Answer, Failure, Input};

pub(super) fn receipt_log(input: &Input) -> Answer {
    let now = input.clock()?;
    let seed = Seed::from_hex(input.text("synthetic_seed_hex")?)?;
    let kid = KeyId::new("urn:cl:key:receipt-anchor").ok_or(Failure::INPUT)?;
    let key = SigningKey::from_seed(kid, &seed)?;
    let operations = input.any("operations").as_array();
    let operations = operations
        .filter(|operations| operations.len() == 2)
        .ok_or(Failure::INPUT)?;
    let folder = tempfile::tempdir().map_err(storage)?;
    let root = folder.path().canonicalize().map_err(storage)?;
    let files = Files {
        log: &root.join("receipts.jsonl"),
        anchor: &root.join("anchor.jsonl"),
        key: &key,
    };
    for operation in operations {
        let draft = Draft::new(
            operation.as_str().ok_or(Failure::INPUT)?,
            "urn:agent:synthetic-receipt-vector",
            "urn:cl:alias:synthetic-receipt-vector",
            Outcome::Success,
            "Synthetic test-only receipt vector.",
            now,
        );
        let (mut log, anchor_line) = files.open()?;
        append(files.anchor, anchor_line.as_deref().unwrap_or_default())?;
        let appended = log.append(&draft.finish()?)?;
        append(files.log, &appended.log_line)?;
        append(files.anchor, &appended.anchor_line)?;
    }
    let log_jsonl = fs::read_to_string(files.log).map_err(storage)?;
    let anchor_jsonl = fs::read_to_string(files.anchor).map_err(storage)?;
    let missing = AnchoredLog::open(b"", &AnchorFile::NotConfigured, files.log_id()?, &key);
    let first_line = log_jsonl.split_inclusive('\n').next().unwrap_or_default();
    fs::write(files.log, first_line).map_err(storage)?;
    Ok(json!({
        "log_path": path_text(files.log)?,
        "log_jsonl": log_jsonl,
        "anchor_jsonl": anchor_jsonl,
        "missing_anchor_error": code(missing.err().map(Failure::from)),
        "rollback_error": code(files.open().err()),
    }))
}

/// A log and its anchor on disk.
struct Files<'a> {
    log: &'a Path,
    anchor: &'a Path,
    key: &'a SigningKey,
}

impl<'a> Files<'a> {
    fn open(&self) -> Result<(AnchoredLog<'a>, Option<String>), Failure> {
        let log = read(self.log)?.unwrap_or_default();
        let anchor = read(self.anchor)?;
        let anchor = anchor
            .as_deref()
            .map_or(AnchorFile::Absent, AnchorFile::Bytes);
        Ok(AnchoredLog::open(&log, &anchor, self.log_id()?, self.key)?)
    }

    fn log_id(&self) -> Result<Digest, Failure> {
        Ok(log_id_of_path(path_text(self.log)?))
    }
}

fn path_text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or(Failure::INPUT)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(storage(error)),
    }
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(storage)
}

fn storage(_: io::Error) -> Failure {
    Failure::Adapter("ADAPTER_STORAGE_FAILED")
}

fn code(failure: Option<Failure>) -> Value {
    failure.map_or(Value::Null, |failure| failure.code().into())
}
