//! Pins: the newest checkpoint of each log, kept apart from the data, so that data that were put
//! back or copied are noticed. The port, and its implementation on a folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Whether a file has its new name, but perhaps not yet on the disk. Locked until it has.
    is_unsynced: Mutex<bool>,
}

impl FolderPin {
    /// Takes a folder, and makes it when it is not there.
    pub fn open(folder: PathBuf) -> Result<Self, PinFailed> {
        fs::create_dir_all(&folder)?;
        let pin = Self {
            folder,
            // Another process may have stopped between a rename and its sync.
            is_unsynced: Mutex::new(true),
        };
        drop(pin.names()?);
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

    /// Makes names durable, and keeps them as they are: what is read under this lock stays.
    fn names(&self) -> io::Result<MutexGuard<'_, bool>> {
        let is_unsynced = self.is_unsynced.lock();
        let mut is_unsynced = is_unsynced.unwrap_or_else(PoisonError::into_inner);
        if *is_unsynced {
            self.sync(&mut is_unsynced)?;
        }
        Ok(is_unsynced)
    }

    fn sync(&self, is_unsynced: &mut bool) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()?;
        *is_unsynced = false;
        Ok(())
    }

    /// Gives a draft the name of a pin, for good.
    fn rename(&self, draft: &Path, origin: &str) -> io::Result<()> {
        let mut is_unsynced = self.names()?;
        *is_unsynced = true;
        fs::rename(draft, self.path(origin))?;
        self.sync(&mut is_unsynced)
    }
}

impl Pin for FolderPin {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        let _names = self.names()?;
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
        Ok(self.rename(&draft, origin).map_err(PinFailed::from)?)
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
