//! The folder that a local deployment lives in: where everything is, and how it is written.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cl_host::files;
use cl_host::tls::TlsFiles;
use cl_model::json::{self, Limits};
use serde_json::Value;

use crate::error::Error;

/// Size limit of a JSON file: that of a policy snapshot.
const MAX_JSON_BYTES: u64 = 1024 * 1024;

/// The paths of a home.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Refuses a folder that `clctl init` did not make.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.authority().is_file() {
            return Ok(());
        }
        Err(Error::NoHome {
            path: self.root.clone(),
        })
    }

    /// Certificate, key and authorities of the owner with this name.
    pub(crate) fn tls_files(&self, owner: &str) -> TlsFiles {
        let pki = self.root.join("pki");
        TlsFiles {
            chain: pki.join(format!("{owner}.pem")),
            key: pki.join(format!("{owner}.key")),
            trust: self.authority(),
        }
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.root.join("pki/ca.pem")
    }

    pub(crate) fn authority_key(&self) -> PathBuf {
        self.root.join("pki/ca.key")
    }

    /// A key file: `decision.pem`, `alias.key`, `cl-gateway.kek`.
    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.root.join("keys").join(name)
    }

    /// The public keys of this deployment's signatures.
    pub(crate) fn trust(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    /// The public keys of the token issuer.
    pub(crate) fn jwks(&self) -> PathBuf {
        self.root.join("jwks.json")
    }

    /// Who issues tokens, and for whom.
    pub(crate) fn token_issuer(&self) -> PathBuf {
        self.root.join("token-issuer.json")
    }

    /// Who may write which receipts.
    pub(crate) fn receipt_writers(&self) -> PathBuf {
        self.root.join("receipt-writers.json")
    }

    /// Who may read which receipts.
    pub(crate) fn receipt_readers(&self) -> PathBuf {
        self.root.join("receipt-readers.json")
    }

    /// The first policy snapshot.
    pub(crate) fn default_policy(&self) -> PathBuf {
        self.root.join("policy/default.json")
    }

    /// A request to try: `request`, `request-mtls`.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.root.join("examples").join(format!("{name}.json"))
    }

    pub(crate) fn data(&self, process: &str) -> PathBuf {
        self.root.join("data").join(process)
    }

    pub(crate) fn log(&self, process: &str) -> PathBuf {
        self.root.join("logs").join(format!("{process}.log"))
    }

    /// Where the running processes are; exists while all of them are ready.
    pub(crate) fn endpoints(&self) -> PathBuf {
        self.root.join("run/endpoints.json")
    }

    /// Held by the one `clctl up` of this home.
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("run/lock")
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its owner only.
    Secret,
    /// Everyone who may enter the home.
    Public,
}

impl Access {
    fn permissions(self) -> Permissions {
        Permissions::from_mode(match self {
            Self::Secret => 0o600,
            Self::Public => 0o644,
        })
    }
}

/// Makes a folder, and those above it, that only the owner may enter. One that exists is left as
/// it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(write_error(path))
}

/// Writes a file that appears whole or not at all, in place of one that exists.
///
/// The bytes are on the disk before the name is; no moment has them readable by others.
pub(crate) fn write(path: &Path, bytes: &[u8], access: Access) -> Result<(), Error> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        // Its mode is 0600 from the start.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(access.permissions())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        fs::File::open(folder)?.sync_all()
    };
    written().map_err(write_error(path))
}

/// Reads a file of strict JSON.
pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    let bytes = files::load_public(path, MAX_JSON_BYTES)?;
    json::parse(&bytes, Limits::network(bytes.len())).map_err(|refusal| Error::Document {
        path: path.to_owned(),
        refusal,
    })
}

/// Reads a file of text in UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = files::load_public(path, MAX_JSON_BYTES)?;
    String::from_utf8(bytes).map_err(|_| Error::Malformed {
        path: path.to_owned(),
        expected: "text in UTF-8",
    })
}

/// Names the path in an error of the file system.
pub(crate) fn write_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_and_folders_have_their_modes() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        make_folder(&inner).unwrap();
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        assert_eq!(mode(&inner), 0o700);
        let (secret, public) = (inner.join("secret"), inner.join("public"));
        write(&secret, b"1", Access::Secret).unwrap();
        write(&public, b"2", Access::Public).unwrap();
        assert_eq!((mode(&secret), mode(&public)), (0o600, 0o644));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, b"long before", Access::Public).unwrap();
        write(&path, b"after", Access::Secret).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/file");
        let error = write(&path, b"", Access::Public).unwrap_err();
        assert!(error.to_string().contains("missing/file"), "{error}");
    }
}
