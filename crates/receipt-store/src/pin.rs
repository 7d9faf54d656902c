//! Pins: the newest checkpoint of each log, kept apart from the data, so that data that were put
//! back or copied are noticed. The port, and its implementation on a folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cl_model::digest::Digest;

/// What a probe writes: more than a checkpoint has.
const PROBE_BYTES: usize = 4096;

/// The newest checkpoint that was shown of each log.
///
/// **Durable when?** When [`advance`](Self::advance) has returned `Ok`, or a later
/// [`read`](Self::read) gives what it was to write.
///
/// **Consistent how?** One checkpoint an origin, replaced whole. An advance names the one that it
/// replaces and is refused when another is there, so that of two stores that go on from the same
/// data one finds out.
///
/// **Who retries?** The caller: after [`NotAdvanced::Moved`] once it has read again and compared,
/// after [`PinFailed`] whenever it likes.
///
/// **What if absent?** `None`: nothing of this log was shown. Nothing removes a pin.
///
/// What a pin says is not believed: the caller checks its signature.
pub trait Pin: Send + Sync {
    /// The signed checkpoint of an origin.
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed>;

    /// Replaces the checkpoint of an origin.
    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced>;

    /// The origins that have a checkpoint.
    fn origins(&self) -> Result<Vec<String>, PinFailed>;

    /// Fails while nothing can be written.
    fn probe(&self) -> Result<(), PinFailed>;
}

/// The pins cannot be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a pin cannot be read or written")]
pub struct PinFailed(#[from] Arc<io::Error>);

impl From<io::Error> for PinFailed {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

/// Why an advance was not acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotAdvanced {
    /// Nothing was written: another checkpoint is there.
    #[error("the pin has moved")]
    Moved,
    /// Written whole or not at all.
    #[error(transparent)]
    Failed(#[from] PinFailed),
}

/// Pins in a folder, one file an origin, named by the origin's digest. Several processes may share
/// it.
#[derive(Debug)]
pub struct FolderPin {
    folder: PathBuf,
    /// A file has its new name, but perhaps not yet on the disk.
    is_unsynced: AtomicBool,
}

impl FolderPin {
    /// Takes a folder, and makes it when it is not there.
    pub fn open(folder: PathBuf) -> Result<Self, PinFailed> {
        fs::create_dir_all(&folder)?;
        let pin = Self {
            folder,
            // Another process may have stopped between a rename and its sync.
            is_unsynced: AtomicBool::new(true),
        };
        pin.sync()?;
        Ok(pin)
    }

    fn path(&self, origin: &str) -> PathBuf {
        let digest = Digest::of_bytes(origin.as_bytes());
        self.folder.join(format!("{}.pin", digest.to_hex()))
    }

    /// Held while a pin is compared and replaced; dropped with the file.
    fn lock(&self) -> io::Result<File> {
        let file = File::create(self.folder.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Writes a file that has no pin's name yet.
    fn draft(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.folder.join("draft");
        let mut file = File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(path)
    }

    /// Makes names durable: what is read afterwards stays.
    fn sync(&self) -> io::Result<()> {
        if self.is_unsynced.load(Ordering::SeqCst) {
            File::open(&self.folder)?.sync_all()?;
            self.is_unsynced.store(false, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Pin for FolderPin {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        self.sync()?;
        match fs::read(self.path(origin)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Without its folder, that a file is not there says nothing.
                fs::metadata(&self.folder)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced> {
        let _lock = self.lock().map_err(PinFailed::from)?;
        if self.read(origin)?.as_deref() != from {
            return Err(NotAdvanced::Moved);
        }
        // A crash before the rename leaves the old pin, and after it the new one.
        let draft = self.draft(to).map_err(PinFailed::from)?;
        self.is_unsynced.store(true, Ordering::SeqCst);
        let renamed = fs::rename(draft, self.path(origin)).and_then(|()| self.sync());
        Ok(renamed.map_err(PinFailed::from)?)
    }

    fn origins(&self) -> Result<Vec<String>, PinFailed> {
        let mut origins = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "pin") {
                continue;
            }
            let text = fs::read(&path)?;
            let text = String::from_utf8_lossy(&text);
            let origin = text.lines().next().unwrap_or_default();
            if self.path(origin) != path {
                let misplaced = "a pin's name is not that of its origin";
                return Err(io::Error::new(ErrorKind::InvalidData, misplaced).into());
            }
            origins.push(origin.to_owned());
        }
        Ok(origins)
    }

    fn probe(&self) -> Result<(), PinFailed> {
        let _lock = self.lock()?;
        Ok(fs::remove_file(self.draft(&"x".repeat(PROBE_BYTES))?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "example.org/receipts/acme";

    #[test]
    fn replaces_only_what_the_caller_has_seen() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| FolderPin::open(folder.path().join("pins")).unwrap());
        let new = |size| format!("{ORIGIN}\n{size}\n");
        assert_eq!(one.read(ORIGIN).unwrap(), None);
        one.advance(ORIGIN, None, &new(1)).unwrap();
        assert_eq!(two.read(ORIGIN).unwrap(), Some(new(1)));
        let refused = two.advance(ORIGIN, None, &new(2));
        assert!(matches!(refused, Err(NotAdvanced::Moved)));
        two.advance(ORIGIN, Some(&new(1)), &new(2)).unwrap();
        assert_eq!(one.read(ORIGIN).unwrap(), Some(new(2)));
        assert_eq!(one.origins().unwrap(), [ORIGIN]);
        one.probe().unwrap();
    }

    #[test]
    fn a_missing_folder_is_no_missing_pin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins");
        let pin = FolderPin::open(path.clone()).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(pin.read(ORIGIN).is_err());
        assert!(pin.origins().is_err());
        assert!(pin.probe().is_err());
        let refused = pin.advance(ORIGIN, None, "x");
        assert!(matches!(refused, Err(NotAdvanced::Failed(_))));
    }

    #[test]
    fn a_pin_under_another_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pin = FolderPin::open(folder.path().to_owned()).unwrap();
        pin.advance(ORIGIN, None, "other\n1\n").unwrap();
        assert!(pin.origins().is_err());
    }
}
