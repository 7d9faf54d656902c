//! Which files a walk came upon before, so that a repeated one reads only what is new.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cl_model::digest::Digest;

use super::maildir;

/// Files that were read, by what changes when they do.
#[derive(Debug, Default)]
pub struct Seen {
    keys: Option<HashSet<Digest>>,
}

impl Seen {
    /// Remembers nothing: each file is read each time.
    pub const fn nothing() -> Self {
        Self { keys: None }
    }

    /// Remembers each file that was read.
    pub fn remembering() -> Self {
        Self {
            keys: Some(HashSet::new()),
        }
    }

    /// Whether a file was there before as it is now; from now on it was.
    pub(super) fn has(&mut self, path: &Path, metadata: &Metadata, is_maildir: bool) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let mut key = Vec::new();
        if is_maildir {
            // A message stays the same when it moves from `new` to `cur`, and when its flags change.
            let maildir = path.parent().and_then(Path::parent).unwrap_or(path);
            key.extend_from_slice(maildir.as_os_str().as_bytes());
            key.push(0);
            key.extend_from_slice(maildir::parts(path).0.as_bytes());
        } else {
            key.extend_from_slice(path.as_os_str().as_bytes());
            key.push(0);
            for number in [metadata.len(), metadata.ino()] {
                key.extend_from_slice(&number.to_be_bytes());
            }
            for number in [metadata.mtime(), metadata.mtime_nsec()] {
                key.extend_from_slice(&number.to_be_bytes());
            }
        }
        !keys.insert(Digest::of_bytes(&key))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_message_that_moves_and_a_file_that_does_not_change_were_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eml");
        fs::write(&path, "one").unwrap();
        let metadata = || fs::metadata(&path).unwrap();
        let mut seen = Seen::remembering();
        let (new, cur) = (Path::new("/m/new/1.a"), Path::new("/m/cur/1.a:2,S"));
        assert!(!seen.has(new, &metadata(), true));
        assert!(seen.has(cur, &metadata(), true));
        assert!(!seen.has(Path::new("/n/new/1.a"), &metadata(), true));
        assert!(!seen.has(&path, &metadata(), false));
        assert!(seen.has(&path, &metadata(), false));
        fs::write(&path, "other").unwrap();
        assert!(!seen.has(&path, &metadata(), false));
        let mut nothing = Seen::nothing();
        assert!(!nothing.has(new, &metadata(), true) && !nothing.has(new, &metadata(), true));
    }
}
