//! Pins: the newest checkpoint of each log, kept apart from the data, so that data that were put
//! back or copied are noticed. The port, and its implementation on a folder.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl_model::digest::Digest;

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
///
/// A file has two places of 4,096 bytes; an advance overwrites the older one where it is, which
/// takes one sync and no change of names or lengths. A place that a crash left half written does not
/// verify, and the other one still counts.
#[derive(Debug)]
pub struct FolderPin {
    folder: PathBuf,
    /// The newest place of each file that is known to be on the disk. Held while one is written.
    durable: Mutex<BTreeMap<PathBuf, u64>>,
}

impl FolderPin {
    /// Takes a folder, and makes it when it is not there.
    pub fn open(folder: PathBuf) -> Result<Self, PinFailed> {
        fs::create_dir_all(&folder)?;
        File::open(&folder)?.sync_all()?;
        Ok(Self {
            folder,
            durable: Mutex::default(),
        })
    }

    fn path(&self, origin: &str) -> PathBuf {
        let digest = Digest::of_bytes(origin.as_bytes());
        self.folder.join(format!("{}.pin", digest.to_hex()))
    }

    /// Held by one process at a time while a file is written, under any name; dropped with the file.
    fn lock(&self) -> io::Result<File> {
        let file = File::create(self.folder.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn durable(&self) -> MutexGuard<'_, BTreeMap<PathBuf, u64>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file that has no pin's name yet.
    fn draft(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join("draft");
        let mut file = File::create(&path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(path)
    }

    /// Makes a pin's file anew, durable under its name.
    fn create(&self, path: &Path, newest: &Place) -> io::Result<()> {
        let mut bytes = vec![0; 2 * PLACE_BYTES];
        // Where it belongs: the next one must not overwrite it.
        let places = bytes.chunks_mut(PLACE_BYTES);
        for (place, half) in places.zip([false, true]) {
            if half == newest.is_second() {
                place.copy_from_slice(&newest.encode()?);
            }
        }
        fs::rename(self.draft(&bytes)?, path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The newest place of a file, durable.
    fn newest(&self, path: &Path) -> io::Result<Option<Place>> {
        let Some(newest) = self.seen(path)? else {
            return Ok(None);
        };
        if self.durable().get(path) == Some(&newest.number) {
            return Ok(Some(newest));
        }
        let lock = self.lock()?;
        let newest = self.newest_locked(path);
        drop(lock);
        newest
    }

    /// The same for one who holds the lock.
    ///
    /// What another process wrote, or this one in vain, can perhaps be read and be lost: what this one
    /// has not made durable itself is made anew. So it is after a failure, since a failed sync may leave
    /// nothing that a second one would write.
    fn newest_locked(&self, path: &Path) -> io::Result<Option<Place>> {
        let mut durable = self.durable();
        let Some(newest) = self.seen(path)? else {
            return Ok(None);
        };
        if durable.get(path) != Some(&newest.number) {
            self.create(path, &newest)?;
            durable.insert(path.to_owned(), newest.number);
        }
        Ok(Some(newest))
    }

    /// The newest place of a file, whether or not it is durable.
    fn seen(&self, path: &Path) -> io::Result<Option<Place>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(Place::newest(&bytes).ok_or_else(damaged)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Without its folder, that a file is not there says nothing.
                fs::metadata(&self.folder)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Overwrites the older place.
    fn overwrite(&self, path: &Path, next: &Place) -> io::Result<()> {
        let bytes = next.encode()?;
        let mut durable = self.durable();
        durable.remove(path);
        let file = OpenOptions::new().write(true).open(path)?;
        file.write_all_at(&bytes, next.offset())?;
        file.sync_data()?;
        durable.insert(path.to_owned(), next.number);
        Ok(())
    }

    fn write(&self, origin: &str, from: Option<Place>, to: &str) -> io::Result<()> {
        let path = self.path(origin);
        let checkpoint = to.to_owned();
        let Some(from) = from else {
            let first = Place {
                number: 0,
                checkpoint,
            };
            // Held, so that nobody looks before it is durable.
            let mut durable = self.durable();
            self.create(&path, &first)?;
            durable.insert(path, first.number);
            return Ok(());
        };
        let next = Place {
            number: from.number + 1,
            checkpoint,
        };
        self.overwrite(&path, &next)
    }
}

impl Pin for FolderPin {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        let newest = self.newest(&self.path(origin))?;
        Ok(newest.map(|newest| newest.checkpoint))
    }

    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced> {
        let _lock = self.lock().map_err(PinFailed::from)?;
        let newest = self.newest_locked(&self.path(origin));
        let newest = newest.map_err(PinFailed::from)?;
        if newest.as_ref().map(|newest| newest.checkpoint.as_str()) != from {
            return Err(NotAdvanced::Moved);
        }
        // A crash leaves the old pin or the new one.
        Ok(self.write(origin, newest, to).map_err(PinFailed::from)?)
    }

    fn origins(&self) -> Result<Vec<String>, PinFailed> {
        let mut origins = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "pin") {
                continue;
            }
            let newest = Place::newest(&fs::read(&path)?).ok_or_else(damaged)?;
            let origin = newest.checkpoint.lines().next().unwrap_or_default();
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
        Ok(fs::remove_file(self.draft(&[b'x'; PLACE_BYTES])?)?)
    }
}

/// Bytes of a place: more than a checkpoint has, and what a disk writes at once.
const PLACE_BYTES: usize = 4096;

/// One of the two places of a pin's file, as a text: the checkpoint, a line with the number of the
/// writing and a line with the digest of all before it; zeros up to its end.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    number: u64,
    checkpoint: String,
}

impl Place {
    /// The place that was written last; none if neither verifies.
    fn newest(bytes: &[u8]) -> Option<Self> {
        let places = bytes.chunks(PLACE_BYTES).take(2).filter_map(Self::parse);
        places.max_by_key(|place| place.number)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().rposition(|byte| *byte != 0)?;
        let text = str::from_utf8(&bytes[..=end]).ok()?;
        let (signed, digest) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        if Digest::of_bytes(signed.as_bytes()).to_hex() != digest {
            return None;
        }
        let (checkpoint, number) = signed.rsplit_once('\n')?;
        Some(Self {
            number: number.parse().ok()?,
            checkpoint: checkpoint.to_owned(),
        })
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let signed = format!("{}\n{}", self.checkpoint, self.number);
        let digest = Digest::of_bytes(signed.as_bytes()).to_hex();
        let mut bytes = format!("{signed}\n{digest}\n").into_bytes();
        if bytes.len() > PLACE_BYTES {
            let too_long = "a checkpoint is too long to be pinned";
            return Err(io::Error::new(ErrorKind::InvalidInput, too_long));
        }
        bytes.resize(PLACE_BYTES, 0);
        Ok(bytes)
    }

    fn is_second(&self) -> bool {
        !self.number.is_multiple_of(2)
    }

    /// Where it is in the file.
    fn offset(&self) -> u64 {
        if self.is_second() {
            return PLACE_BYTES as u64;
        }
        0
    }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a pin does not verify")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "example.org/receipts/acme";

    fn text(size: usize) -> String {
        format!("{ORIGIN}\n{size}\n")
    }

    fn pinned(folder: &Path, count: usize) -> FolderPin {
        let pin = FolderPin::open(folder.to_owned()).unwrap();
        pin.advance(ORIGIN, None, &text(0)).unwrap();
        for size in 1..count {
            let from = text(size - 1);
            pin.advance(ORIGIN, Some(&from), &text(size)).unwrap();
        }
        pin
    }

    #[test]
    fn a_half_written_place_leaves_the_pin_before_it() {
        for count in 1..6 {
            for keep in [0, 1, 30, 80] {
                let folder = tempfile::tempdir().unwrap();
                drop(pinned(folder.path(), count));
                // Another process goes on: the first look makes the file anew.
                let pin = FolderPin::open(folder.path().to_owned()).unwrap();
                assert_eq!(pin.read(ORIGIN).unwrap(), Some(text(count - 1)));
                let path = pin.path(ORIGIN);
                let mut bytes = fs::read(&path).unwrap();
                let next = Place {
                    number: count as u64,
                    checkpoint: text(count),
                };
                let written = next.encode().unwrap();
                let offset = usize::try_from(next.offset()).unwrap();
                bytes[offset..offset + keep].copy_from_slice(&written[..keep]);
                // What is torn may also be the other way round.
                for torn in [bytes.clone(), {
                    bytes[offset + keep..offset + PLACE_BYTES].fill(b'x');
                    bytes
                }] {
                    fs::write(&path, torn).unwrap();
                    for pin in [&pin, &FolderPin::open(folder.path().to_owned()).unwrap()] {
                        let read = pin.read(ORIGIN).unwrap();
                        assert_eq!(read, Some(text(count - 1)), "{count} {keep}");
                    }
                }
                pin.advance(ORIGIN, Some(&text(count - 1)), &text(count))
                    .unwrap();
                assert_eq!(pin.read(ORIGIN).unwrap(), Some(text(count)));
            }
        }
    }

    #[test]
    fn two_processes_that_take_turns_leave_the_newest_pin() {
        const TURNS: usize = 200;
        let folder = tempfile::tempdir().unwrap();
        drop(pinned(folder.path(), 1));
        let advanced = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let pin = FolderPin::open(folder.path().to_owned()).unwrap();
                    for _ in 0..TURNS {
                        let from = pin.read(ORIGIN).unwrap().unwrap();
                        let size: usize = from.lines().nth(1).unwrap().parse().unwrap();
                        pin.probe().unwrap();
                        match pin.advance(ORIGIN, Some(&from), &text(size + 1)) {
                            Ok(()) => {
                                advanced.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            }
                            Err(NotAdvanced::Moved) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        let pin = FolderPin::open(folder.path().to_owned()).unwrap();
        let advanced = advanced.into_inner();
        assert!(advanced >= TURNS);
        assert_eq!(pin.read(ORIGIN).unwrap(), Some(text(advanced)));
    }

    #[test]
    fn a_file_without_a_good_place_is_no_missing_pin() {
        let folder = tempfile::tempdir().unwrap();
        let pin = pinned(folder.path(), 3);
        let whole = fs::read(pin.path(ORIGIN)).unwrap();
        let other = String::from_utf8(whole.clone()).unwrap();
        let other = other
            .replace(ORIGIN, "example.org/receipts/beta")
            .into_bytes();
        for bytes in [
            Vec::new(),
            vec![0; 2 * PLACE_BYTES],
            b"text".to_vec(),
            other,
        ] {
            fs::write(pin.path(ORIGIN), bytes).unwrap();
            assert!(pin.read(ORIGIN).is_err());
            assert!(pin.origins().is_err());
            let advanced = pin.advance(ORIGIN, Some(&text(2)), &text(3));
            assert!(matches!(advanced, Err(NotAdvanced::Failed(_))));
        }
        fs::write(pin.path(ORIGIN), whole).unwrap();
        assert_eq!(pin.read(ORIGIN).unwrap(), Some(text(2)));
    }

    #[test]
    fn the_longest_checkpoints_fit_and_longer_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pin = pinned(folder.path(), 1);
        let longest = "c".repeat(PLACE_BYTES - "\n1\n\n".len() - 64);
        let longer = format!("{longest}c");
        let refused = pin.advance(ORIGIN, Some(&text(0)), &longer);
        assert!(matches!(refused, Err(NotAdvanced::Failed(_))));
        pin.advance(ORIGIN, Some(&text(0)), &longest).unwrap();
        assert_eq!(pin.read(ORIGIN).unwrap(), Some(longest));
    }
}
