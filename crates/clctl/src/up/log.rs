//! Where a process's log goes, and how it ended.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::error::Error;
use crate::home::{make_folder, write_error};

/// How much of a log's end is looked at.
const TAIL_BYTES: u64 = 16 * 1024;

const TAIL_LINES: usize = 3;
const MAX_LINE_CHARS: usize = 300;

/// A log that a process appends to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// Where this start's part begins.
    start: u64,
}

impl Log {
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        make_folder(path.parent().unwrap_or(Path::new(".")))?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(write_error(&path))?;
        let start = file.metadata().map_err(write_error(&path))?.len();
        Ok(Self { path, file, start })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The output of a process.
    pub(super) fn stdio(&self) -> Result<Stdio, Error> {
        let file = self.file.try_clone().map_err(write_error(&self.path))?;
        Ok(file.into())
    }

    /// The last lines that were written since the start; empty if there are none.
    pub(super) fn tail(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.path)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(
                self.start.max(end.saturating_sub(TAIL_BYTES)),
            ))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        // The log is still where the error says.
        let text = read().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.len().saturating_sub(TAIL_LINES);
        let shorten = |line: &&str| line.chars().take(MAX_LINE_CHARS).collect::<String>();
        let last = lines[last..].iter().map(shorten);
        last.map(|line| format!("  {line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_tail_is_of_this_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let mut first = Log::open(path.clone()).unwrap();
        assert_eq!(first.tail(), "");
        writeln!(first.file, "before").unwrap();
        let mut log = Log::open(path).unwrap();
        assert_eq!(log.tail(), "");
        for line in 1..=5 {
            writeln!(log.file, "{line}").unwrap();
        }
        assert_eq!(log.tail(), "  3\n  4\n  5\n");
        let long = "é".repeat(2 * MAX_LINE_CHARS);
        writeln!(log.file, "{long}").unwrap();
        assert!(log.tail().chars().count() < 2 * MAX_LINE_CHARS);
    }
}
