//! A log as a folder that stands for itself.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::folder::{KEY, LINES, PORTABLE};
use super::keys::LogKeys;
use super::source::Source;
use super::store::StoreLog;
use super::verify::no_log;
use super::walk::Walk;
use crate::error::Error;
use crate::home::{make_folder, write_error};
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
    let entries = write(unfinished.path(), walk, &keys).await?;
    fs::rename(unfinished.path(), folder).map_err(write_error(folder))?;
    let document = json!({
        "folder": folder.display().to_string(),
        "origin": keys.origin(),
        "entries": entries,
    });
    session.output.answer(&document, || {
        output::fields(&[
            ("folder", folder.display().to_string()),
            ("log", keys.origin().to_owned()),
            ("entries", entries.to_string()),
        ])
    })
}

/// Writes what verifies, as it verifies; how many entries that was.
async fn write(root: &Path, mut walk: Walk, keys: &LogKeys) -> Result<u64, Error> {
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
            receipts.write(&entry.recorded.to_line(&entry.proof))?;
            portable.write(&entry.portable)?;
        }
    }
    receipts.finish()?;
    portable.finish()?;
    let signed = walk.finish(keys).await?;
    if let Some(key) = keys.signer_of(&signed) {
        put(root, KEY, format!("{key}\n").as_bytes())?;
    }
    put(root, "checkpoint", signed.to_string().as_bytes())?;
    Ok(signed.checkpoint().size())
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
        self.writer.flush().map_err(write_error(&self.path))
    }
}
