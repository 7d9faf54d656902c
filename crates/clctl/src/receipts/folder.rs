//! An exported log: a folder that stands for itself.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use cl_host::files::FileError;
use cl_model::log::LogState;

use super::fault::{Place, Why};
use super::kept::Kept;
use super::keys::LogKeys;
use super::recorded::MAX_LINE_BYTES;
use super::source::{Given, MAX_FILE_BYTES};
use crate::error::Error;

/// The receipts, one a line.
pub(crate) const LINES: &str = "receipts.jsonl";

/// The text of the key that signed the checkpoint.
pub(crate) const KEY: &str = "key";

/// The same receipts as a log of the portable form.
pub(crate) const PORTABLE: &str = "portable/receipts.log";

/// The anchor of that log.
pub(crate) const ANCHOR: &str = "portable/receipts.anchor";

/// A folder that `clctl receipts export` wrote, or somebody since.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    receipts: Lines,
    portable: Lines,
}

impl Folder {
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        let lines = |name: &str| match root.join(name) {
            path if root.is_dir() && !path.exists() => {
                Err(Place::File(name.to_owned()).is(Why::FileMissing).into())
            }
            path => Lines::open(&path, name),
        };
        Ok(Self {
            receipts: lines(LINES)?,
            portable: lines(PORTABLE)?,
            root: root.to_owned(),
        })
    }

    pub(crate) fn file(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.root.join(path);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unread(&path))?,
        };
        let mut bytes = Vec::new();
        // What is longer is cut, and then is not what it should be.
        let mut file = file.take(MAX_FILE_BYTES as u64);
        file.read_to_end(&mut bytes).map_err(unread(&path))?;
        Ok(Some(bytes))
    }

    pub(crate) fn receipts(&mut self, count: usize) -> Result<Vec<Given>, Error> {
        let mut given = Vec::new();
        while given.len() < count {
            let Some(line) = self.receipts.next()? else {
                break;
            };
            let read = Kept::of_line(&line);
            let (kept, proof) = read.map_err(|why| self.receipts.place().is(why))?;
            given.push((kept, Some(proof)));
        }
        Ok(given)
    }

    pub(crate) fn check_portable(&mut self, line: &str) -> Result<(), Error> {
        let found = self.portable.next()?;
        if found.as_deref() == Some(line.trim_end_matches('\n').as_bytes()) {
            return Ok(());
        }
        self.portable.number += u64::from(found.is_none());
        Err(self.portable.place().is(Why::PortableMismatch).into())
    }

    pub(crate) fn finish(&mut self, keys: &LogKeys, portable: &LogState) -> Result<(), Error> {
        for lines in [&mut self.receipts, &mut self.portable] {
            if lines.next()?.is_some() {
                return Err(lines.place().is(Why::LineSurplus).into());
            }
        }
        let key = self.file(KEY)?;
        let key = key.ok_or_else(|| Place::File(KEY.to_owned()).is(Why::FileMissing))?;
        let key = str::from_utf8(&key).ok();
        if key
            .and_then(|key| key.strip_suffix('\n'))
            .is_some_and(|key| keys.has(key))
        {
            return self.check_anchor(keys, portable);
        }
        Err(Place::File(KEY.to_owned()).is(Why::KeyUntrusted).into())
    }

    /// Checks the anchor of the portable log, where there is one.
    fn check_anchor(&self, keys: &LogKeys, portable: &LogState) -> Result<(), Error> {
        let path = self.root.join(ANCHOR);
        if !path.exists() {
            return Ok(());
        }
        let mut checks = keys.anchor_checks();
        let mut lines = Lines::open(&path, ANCHOR)?;
        while let Some(line) = lines.next()? {
            // The key that signed the first line has to have signed all.
            let mut refused = None;
            checks.retain_mut(|check| match check.line(&line) {
                Ok(()) => true,
                Err(refusal) => {
                    refused = Some(refusal);
                    false
                }
            });
            if let Some(refusal) = refused.filter(|_| checks.is_empty()) {
                return Err(lines.place().is(Why::Anchor(refusal)).into());
            }
        }
        let finished = checks.first().map(|check| check.finish(portable));
        let refused = finished.and_then(Result::err);
        refused.map_or(Ok(()), |refusal| {
            Err(Place::File(ANCHOR.to_owned())
                .is(Why::Anchor(refusal))
                .into())
        })
    }
}

/// The lines of a file, each up to a limit.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    name: String,
    reader: BufReader<File>,
    /// The line that was read last.
    number: u64,
}

impl Lines {
    /// Opens a file; in what is said about its lines it has this name.
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, Error> {
        Ok(Self {
            reader: BufReader::new(File::open(path).map_err(unread(path))?),
            path: path.to_owned(),
            name: name.to_owned(),
            number: 0,
        })
    }

    /// The next line without its line feed.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES as u64);
        let read = limited.read_until(b'\n', &mut line);
        if read.map_err(unread(&self.path))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.pop() == Some(b'\n') {
            return Ok(Some(line));
        }
        Err(self.place().is(Why::LineTruncated).into())
    }

    /// The line that was read last.
    pub(crate) fn place(&self) -> Place {
        Place::Line(self.name.clone(), self.number)
    }
}

fn unread(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| {
        let path = path.to_owned();
        Error::File(FileError::Io { path, source })
    }
}
