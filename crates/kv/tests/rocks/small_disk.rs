//! A disk that tests can fill. Tests of services take this file too.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A small file system of its own, unmounted when dropped.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one, or says why this machine cannot.
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stderr);
                eprintln!("skipped: a small disk needs the right to mount: {reason}");
                None
            }
            Err(error) => {
                eprintln!("skipped: a small disk needs the mount command: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes the room that is left, in a file of its own.
    pub(crate) fn fill(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![b'x'; size];
            loop {
                match file.write_all(&block) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}
