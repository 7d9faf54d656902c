//! Reading keys and certificates from files: bounded, and never a key that others can read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Size limit of a private key or another small secret.
pub const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Size limit of a certificate chain or a trust bundle.
pub const MAX_PUBLIC_BYTES: u64 = 1024 * 1024;

/// Why a file was not read. Names the path, never the content.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A folder, socket, device or pipe.
    #[error("{path} is not a regular file", path = path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner have access.
    #[error(
        "{path} has mode {mode:04o}: a private key must not be accessible to group or others (chmod 0600)",
        path = path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// More bytes than allowed.
    #[error("{path} is larger than {max_bytes} bytes", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max_bytes: u64,
    },
}

/// Reads a secret of at most `max_bytes`; refuses a file that group or others can access.
///
/// One exception, as PostgreSQL makes it, because Kubernetes mounts secrets that way when
/// `fsGroup` is set: a file owned by root may be readable by the group, if this process does not
/// run as root itself.
pub fn load_secret(path: &Path, max_bytes: u64) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let (file, metadata) = open(path)?;
    check_mode(path, &metadata)?;
    // Reserved at once: growing would leave unwiped copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(capacity(&metadata, max_bytes)));
    read_bounded(file, path, max_bytes, &mut bytes)?;
    Ok(bytes)
}

/// Reads a public file of at most `max_bytes`.
pub fn load_public(path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
    let (file, metadata) = open(path)?;
    let mut bytes = Vec::with_capacity(capacity(&metadata, max_bytes));
    read_bounded(file, path, max_bytes, &mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path) -> Result<(File, Metadata), FileError> {
    let io_error = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    // Looked at before it is opened: opening a named pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(io_error)?.is_file() {
        return Err(FileError::NotAFile {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    Ok((file, metadata))
}

fn capacity(metadata: &Metadata, max_bytes: u64) -> usize {
    usize::try_from(metadata.len().min(max_bytes).saturating_add(1)).unwrap_or(0)
}

fn read_bounded(
    file: File,
    path: &Path,
    max_bytes: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), FileError> {
    let read = file
        .take(max_bytes.saturating_add(1))
        .read_to_end(bytes)
        .map_err(|source| FileError::Io {
            path: path.to_owned(),
            source,
        })?;
    if u64::try_from(read).unwrap_or(u64::MAX) > max_bytes {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            max_bytes,
        });
    }
    Ok(())
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt;

    const GROUP_READ: u32 = 0o040;

    let mode = metadata.mode() & 0o7777;
    let mut exposed = mode & 0o077;
    if metadata.uid() == 0 && own_user().is_some_and(|user| user != 0) {
        exposed &= !GROUP_READ;
    }
    if exposed != 0 {
        return Err(FileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// The user this process runs as, where the system tells; unknown means the strict rule.
#[cfg(unix)]
fn own_user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata("/proc/self").ok().map(|own| own.uid())
}

#[cfg(not(unix))]
fn check_mode(_path: &Path, _metadata: &Metadata) -> Result<(), FileError> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file_with_mode(mode: u32, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret.key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn reads_a_secret_of_the_owner() {
        for mode in [0o600, 0o400] {
            let (_dir, path) = file_with_mode(mode, b"abc");
            assert_eq!(load_secret(&path, 3).unwrap().as_slice(), b"abc");
        }
    }

    #[test]
    fn refuses_a_secret_that_others_can_access() {
        for mode in [0o640, 0o604, 0o620, 0o601, 0o666] {
            let (_dir, path) = file_with_mode(mode, b"abc");
            let error = load_secret(&path, 3).unwrap_err();
            assert!(
                matches!(error, FileError::Exposed { .. }),
                "{mode:o}: {error}"
            );
            assert!(
                error.to_string().contains(&format!("{mode:04o}")),
                "{error}"
            );
            assert!(!error.to_string().contains("abc"));
        }
    }

    #[test]
    fn refuses_what_is_too_large_or_no_file() {
        let (dir, path) = file_with_mode(0o600, b"abcd");
        assert!(matches!(
            load_secret(&path, 3),
            Err(FileError::TooLarge { .. })
        ));
        assert!(matches!(
            load_public(&path, 3),
            Err(FileError::TooLarge { .. })
        ));
        assert_eq!(load_public(&path, 4).unwrap(), b"abcd");
        assert!(matches!(
            load_public(dir.path(), 9),
            Err(FileError::NotAFile { .. })
        ));
        let absent = dir.path().join("absent");
        assert!(matches!(load_secret(&absent, 9), Err(FileError::Io { .. })));
    }
}
