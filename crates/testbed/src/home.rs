//! The home folder of a process.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::authority::Authority;

/// Writes a file that its owner alone may read.
pub fn write_secret(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// A home folder with the certificate of one process and room for its keys.
#[derive(Debug)]
pub struct Home(TempDir);

impl Home {
    /// That of the process with a SPIFFE path such as `vault/cl-vault`.
    pub fn new(authority: &Authority, path: &str) -> Self {
        Self::on(tempfile::tempdir().unwrap(), authority, path)
    }

    /// The same in a folder that is there.
    pub fn on(folder: TempDir, authority: &Authority, path: &str) -> Self {
        let home = Self(folder);
        for part in ["pki", "keys"] {
            fs::create_dir_all(home.join(part)).unwrap();
        }
        let name = path.rsplit('/').next().unwrap();
        authority.write(path, &home.join("pki"), name);
        home
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file of `keys/`.
    pub fn write_key(&self, name: &str, bytes: &[u8]) {
        write_secret(&self.join("keys").join(name), bytes);
    }

    /// Writes a file that is no secret.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.join(name), text).unwrap();
    }
}
