//! A log as a folder that stands for itself.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cl_model::anchor::{AnchorFile, AnchoredLog, log_id_of_path};
use cl_model::key::SigningKey;
use cl_model::record::Record;
use cl_model::refusal::Refusal;
use serde_json::json;

use super::fault::{Place, Why};
use super::folder::{ANCHOR, KEY, LINES, PORTABLE};
use super::keys::LogKeys;
use super::source::Source;
use super::store::StoreLog;
use super::verify::no_log;
use super::walk::Walk;
use crate::error::Error;
use crate::home::{make_folder, write_error};
use crate::keys::{self, Purpose};
use crate::output;
use crate::session::Session;

pub(crate) async fn run(folder: &Path, tenant: &str, session: &Session) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok() {
        return Err(Error::FolderExists {
            path: folder.to_owned(),
        });
    }
    let keys = LogKeys::of_home(session, tenant)?;
    let source = Source::Store(Box::new(StoreLog::open(session, tenant)?));
    let checkpoint = source.checkpoint().await?;
    let checkpoint = checkpoint.ok_or_else(|| no_log(tenant))?;
    let walk = Walk::open(source, &checkpoint, &keys).await?;
    let parent = folder.parent().filter(|it| !it.as_os_str().is_empty());
    // The folder appears whole, under a name of its own until then; only its owner may enter it.
    let unfinished = tempfile::Builder::new()
        .prefix(".receipts-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent.unwrap_or(Path::new(".")))
        .map_err(write_error(folder))?;
    let written = write(unfinished.path(), walk, &keys, session).await?;
    // What has the name is on the disk, whole: files, then their folders, then the name.
    sync_folders(unfinished.path())?;
    fs::rename(unfinished.path(), folder).map_err(write_error(folder))?;
    sync(parent.unwrap_or(Path::new(".")))?;
    let document = json!({
        "folder": folder.display().to_string(),
        "origin": keys.origin(),
        "entries": written.entries,
        "erased": written.erased,
        "anchored": written.is_anchored,
    });
    session.output.answer(&document, || {
        output::fields(&[
            ("folder", folder.display().to_string()),
            ("log", keys.origin().to_owned()),
            ("entries", written.entries.to_string()),
            ("erased", written.erased.to_string()),
            (
                "anchored",
                if written.is_anchored { "yes" } else { "no" }.to_owned(),
            ),
        ])
    })
}

/// What an export has.
struct Written {
    entries: u64,
    erased: u64,
    is_anchored: bool,
}

/// Writes what verifies, as it verifies.
async fn write(
    root: &Path,
    mut walk: Walk,
    keys: &LogKeys,
    session: &Session,
) -> Result<Written, Error> {
    let signer = anchor_key(session)?;
    let mut anchor = match &signer {
        Some(signer) => Some(Anchor::create(root, keys, signer)?),
        None => None,
    };
    let mut receipts = Output::create(root, LINES)?;
    let mut portable = Output::create(root, PORTABLE)?;
    for (path, bytes) in walk.edge_tiles() {
        put(root, &path.to_string(), bytes)?;
    }
    while let Some(step) = walk.step().await? {
        for (path, bytes) in &step.files {
            put(root, &path.to_string(), bytes)?;
        }
        for entry in &step.entries {
            receipts.write(&entry.kept.to_line(&entry.proof))?;
            let Some((record, line)) = &entry.portable else {
                continue;
            };
            portable.write(line)?;
            if let Some(anchor) = &mut anchor {
                anchor.append(record)?;
            }
        }
    }
    receipts.finish()?;
    portable.finish()?;
    let is_anchored = anchor.is_some();
    if let Some(anchor) = anchor {
        anchor.output.finish()?;
    }
    let (signed, erased) = walk.finish(keys).await?;
    if let Some(key) = keys.signer_of(&signed) {
        put(root, KEY, format!("{key}\n").as_bytes())?;
    }
    put(root, "checkpoint", signed.to_string().as_bytes())?;
    Ok(Written {
        entries: signed.checkpoint().size(),
        erased,
        is_anchored,
    })
}

/// The key that signs anchors: that of the logs, where this home has it.
fn anchor_key(session: &Session) -> Result<Option<SigningKey>, Error> {
    let path = session.home.key(&Purpose::Receipts.file());
    if !path.exists() {
        return Ok(None);
    }
    keys::load(&session.home, Purpose::Receipts).map(Some)
}

/// The anchor of the portable log, as it is written.
struct Anchor<'a> {
    log: AnchoredLog<'a>,
    output: Output,
}

impl<'a> Anchor<'a> {
    fn create(root: &Path, keys: &LogKeys, signer: &'a SigningKey) -> Result<Self, Error> {
        let mut output = Output::create(root, ANCHOR)?;
        let log_id = log_id_of_path(keys.origin());
        let opened = AnchoredLog::open(&[], &AnchorFile::Absent, log_id, signer);
        let (log, first) = opened.map_err(unanchored)?;
        output.write(&first.unwrap_or_default())?;
        Ok(Self { log, output })
    }

    fn append(&mut self, record: &Record) -> Result<(), Error> {
        let appended = self.log.append(record).map_err(unanchored)?;
        self.output.write(&appended.anchor_line)
    }
}

fn unanchored(refusal: Refusal) -> Error {
    Place::File(ANCHOR.to_owned())
        .is(Why::Anchor(refusal))
        .into()
}

/// Makes the names in a folder and in those below it durable.
fn sync_folders(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(write_error(folder))? {
        let path = entry.map_err(write_error(folder))?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    sync(folder)
}

fn sync(path: &Path) -> Result<(), Error> {
    let opened = File::open(path).and_then(|file| file.sync_all());
    opened.map_err(write_error(path))
}

fn put(root: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut file = Output::create(root, name)?;
    file.write_bytes(bytes)?;
    file.finish()
}

/// A file that is being written.
struct Output {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Output {
    fn create(root: &Path, name: &str) -> Result<Self, Error> {
        let path = root.join(name);
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = File::create_new(&path).map_err(write_error(&path))?;
        Ok(Self {
            writer: BufWriter::new(file),
            path,
        })
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer
            .write_all(bytes)
            .map_err(write_error(&self.path))
    }

    fn finish(mut self) -> Result<(), Error> {
        let flushed = self.writer.flush();
        let synced = flushed.and_then(|()| self.writer.get_ref().sync_all());
        synced.map_err(write_error(&self.path))
    }
}
