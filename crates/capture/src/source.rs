//! Finds the messages under a path: an mbox, a Maildir, single messages, or folders of them; or the
//! calendar files.

mod maildir;
mod seen;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use cl_model::digest::Digest;
use ring::digest::{Context, SHA256};

use self::maildir::{flags, is_messages_folder};
pub use self::seen::Seen;
use crate::mbox::{self, Mbox, RawMessage};

/// How deep folders are followed; links are not.
const MAX_DEPTH: usize = 16;

/// How much of a file decides what it is.
const HEAD_BYTES: u64 = 64 * 1024;

/// The largest calendar file that is read.
const MAX_CALENDAR_BYTES: u64 = 32 * 1024 * 1024;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// Messages.
    Mail,
    /// Calendar files.
    Calendar,
}

/// A calendar file.
#[derive(Debug)]
pub struct CalendarFile {
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// Where it is.
    pub path: PathBuf,
    /// The digest of the path.
    pub path_digest: Digest,
}

/// A message in its file.
#[derive(Debug)]
pub struct Found {
    /// Its bytes, and where they stand.
    pub raw: RawMessage,
    /// Its file.
    pub path: PathBuf,
    /// The digest of the path.
    pub path_digest: Digest,
    /// Marks of the file format.
    pub marks: Vec<&'static str>,
    /// How its file says that it was deleted, if it does.
    pub deleted_as: Option<&'static str>,
    /// What its file says about it, e.g. `seen`.
    pub flags: Vec<&'static str>,
    /// The bytes differ from those in the file, so that they cannot be read again from there.
    pub is_restored: bool,
}

/// What a walk comes upon.
#[derive(Debug)]
pub enum Step {
    /// A message.
    Message(Box<Found>),
    /// A calendar file.
    Calendar(CalendarFile),
    /// A calendar file that is larger than is read.
    CalendarTooLarge(PathBuf),
    /// A file or folder that cannot be read.
    Unreadable(PathBuf),
}

/// Walks a path in a fixed order and hands each message, or calendar file, to `take`, which says
/// whether to go on. Messages beyond `max_message_bytes` come cut; files that were `seen` before are
/// passed over.
///
/// # Errors
///
/// If `path` itself cannot be opened. Anything below it is a step of its own.
pub fn walk(
    path: &Path,
    adapter: Adapter,
    max_message_bytes: u64,
    seen: &mut Seen,
    take: &mut dyn FnMut(Step) -> bool,
) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    let mut walk = Walk {
        adapter,
        max_message_bytes,
        seen,
        take,
    };
    if metadata.is_dir() {
        fs::read_dir(path)?;
        walk.folder(path, 0);
    } else {
        File::open(path)?;
        walk.file(path, true);
    }
    Ok(())
}

/// How many bytes the files under a path have, those that a walk passes over included.
pub fn size(path: &Path) -> u64 {
    size_to(path, 0)
}

fn size_to(path: &Path, depth: usize) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let within = depth < MAX_DEPTH;
    entries
        .filter(|_| within)
        .map(|entry| size_to(&entry.path(), depth + 1))
        .sum()
}

/// A walk under way.
struct Walk<'a> {
    adapter: Adapter,
    max_message_bytes: u64,
    seen: &'a mut Seen,
    take: &'a mut dyn FnMut(Step) -> bool,
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path, depth: usize) -> bool {
        let Ok(entries) = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>)
        else {
            return (self.take)(Step::Unreadable(path.to_owned()));
        };
        let is_maildir = path.join("cur").is_dir() && path.join("new").is_dir();
        let is_messages = is_messages_folder(path);
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().as_bytes();
            let goes_on = if metadata.is_dir() {
                let is_skipped = depth >= MAX_DEPTH || (is_maildir && name == b"tmp");
                is_skipped || self.folder(&path, depth + 1)
            } else if metadata.is_file() {
                // Beside its messages, a Maildir holds the files of its server; names with a dot in
                // front are no messages.
                let is_skipped = is_maildir || name.starts_with(b".");
                is_skipped
                    || self.seen.has(&path, &metadata, is_messages)
                    || self.file(&path, is_messages)
            } else {
                true
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Reads one file. Unless `is_meant`, a file that is no mbox and has no mail suffix is passed over.
    fn file(&mut self, path: &Path, is_meant: bool) -> bool {
        if self.adapter == Adapter::Calendar {
            let is_calendar = is_meant || has_suffix(path, &["ics", "ical", "icalendar", "ifb"]);
            return !is_calendar || self.calendar(path);
        }
        let read = || -> io::Result<Option<(File, bool)>> {
            let mut head = Vec::new();
            File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
            let is_mbox = mbox::begins_like_mbox(&head);
            let is_mail = is_meant || is_mbox || has_suffix(path, &["eml", "msg822"]);
            Ok(if is_mail {
                Some((File::open(path)?, is_mbox))
            } else {
                None
            })
        };
        match read() {
            Ok(None) => true,
            Ok(Some((file, true))) => {
                let reader = BufReader::with_capacity(256 * 1024, file);
                mbox(reader, path, self.max_message_bytes, self.take)
            }
            Ok(Some((file, false))) => self.single(path, file),
            Err(_) => (self.take)(Step::Unreadable(path.to_owned())),
        }
    }

    fn single(&mut self, path: &Path, mut file: File) -> bool {
        let Ok(raw) = read_single(&mut file, self.max_message_bytes) else {
            return (self.take)(Step::Unreadable(path.to_owned()));
        };
        let flags = flags(path);
        let mut marks: Vec<&'static str> = maildir::folder_mark(path).into_iter().collect();
        if flags.contains(&"draft") && !marks.contains(&"mail.draft") {
            marks.push("mail.draft");
        }
        (self.take)(Step::Message(Box::new(Found {
            raw,
            path: path.to_owned(),
            path_digest: digest_of(path),
            marks,
            deleted_as: flags.contains(&"trashed").then_some("maildir.trashed"),
            flags,
            is_restored: false,
        })))
    }

    fn calendar(&mut self, path: &Path) -> bool {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let file = File::open(path)?;
            file.take(MAX_CALENDAR_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        (self.take)(match read() {
            Err(_) => Step::Unreadable(path.to_owned()),
            Ok(bytes) if bytes.len() as u64 > MAX_CALENDAR_BYTES => {
                Step::CalendarTooLarge(path.to_owned())
            }
            Ok(bytes) => Step::Calendar(CalendarFile {
                bytes,
                path: path.to_owned(),
                path_digest: digest_of(path),
            }),
        })
    }
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let suffix = path.extension().and_then(|it| it.to_str());
    suffix.is_some_and(|suffix| suffixes.iter().any(|it| it.eq_ignore_ascii_case(suffix)))
}

/// Hands each message of an mbox to `take`, which says whether to go on.
pub(crate) fn mbox(
    reader: impl BufRead,
    path: &Path,
    max_message_bytes: u64,
    take: &mut dyn FnMut(Step) -> bool,
) -> bool {
    let path_digest = digest_of(path);
    let mut mbox = Mbox::new(reader, max_message_bytes);
    loop {
        let mut raw = match mbox.next_message() {
            Ok(Some(raw)) => raw,
            Ok(None) => return true,
            Err(_) => return take(Step::Unreadable(path.to_owned())),
        };
        let mut marks: Vec<&'static str> = maildir::folder_mark(path).into_iter().collect();
        let mut is_restored = false;
        if raw.cut.is_none() {
            let length = raw.bytes.len();
            let (bytes, is_in_doubt) = mbox::unquote(std::mem::take(&mut raw.bytes));
            is_restored = bytes.len() != length;
            raw.length = bytes.len() as u64;
            raw.bytes = bytes;
            if is_in_doubt {
                marks.push("mbox.quoting_ambiguous");
            }
        }
        let found = Found {
            raw,
            path: path.to_owned(),
            path_digest,
            marks,
            deleted_as: None,
            flags: Vec::new(),
            is_restored,
        };
        if !take(Step::Message(Box::new(found))) {
            return false;
        }
    }
}

/// The whole file, or its first bytes and the digest of all.
fn read_single(file: &mut File, max_bytes: u64) -> io::Result<RawMessage> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    let mut raw = RawMessage {
        length: bytes.len() as u64,
        bytes,
        start: 0,
        cut: None,
    };
    if raw.length > max_bytes {
        let mut digest = Context::new(&SHA256);
        digest.update(&raw.bytes);
        raw.bytes.truncate(256 * 1024);
        raw.bytes.shrink_to_fit();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                length => {
                    digest.update(&piece[..length]);
                    raw.length += length as u64;
                }
            }
        }
        raw.cut = Some(mbox::finished(digest));
    }
    Ok(raw)
}

fn digest_of(path: &Path) -> Digest {
    let whole = fs::canonicalize(path);
    let whole = whole.as_deref().unwrap_or(path);
    Digest::of_bytes(whole.as_os_str().as_bytes())
}
