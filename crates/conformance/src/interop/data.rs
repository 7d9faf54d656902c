//! The published data: read once, every file checked against the manifest that names it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::canonical::hex_hash;
use super::failure::Failure;
use super::json;
use super::lookup;

pub(crate) const SPEC_VERSION: &str = "context-layer/0.2-draft";
pub(crate) const PROFILE: &str = "local-core/0.2-draft.1";

const MANIFEST: &str = "manifest.json";
const VECTOR_FOLDER: &str = "vectors";
const VECTOR_MANIFEST: &str = "vectors/manifest.json";
const CANONICALIZATION: &str = "vectors/canonicalization.json";
const POLICY: &str = "vectors/policy-cases.json";
const EXCHANGE: &str = "vectors/exchange-security.json";
const RECEIPT_MEMORY: &str = "vectors/receipt-memory-isolation.json";
const EXPECTATIONS: &str = "local-profile-expectations.json";
const FIXTURE_FOLDER: &str = "fixtures/";

/// Files of the published kit that hold prose or programs; a copy of the data may lack them.
const MAY_BE_ABSENT: [&str; 5] = [
    "LICENSE",
    "LICENSE-DOCS",
    "adapter-contract.md",
    "package.json",
    "run.mjs",
];
const MAY_BE_ABSENT_FOLDER: &str = "profiles/";

/// Never read: a folder with copied data has a description of its own under this name.
const NOT_COMPARED: &str = "README.md";

pub(crate) struct Data {
    pub(crate) manifest: Manifest,
    pub(crate) fixtures: BTreeMap<String, Value>,
    pub(crate) canonicalization: Value,
    pub(crate) policy: Value,
    pub(crate) exchange: Value,
    pub(crate) receipt_memory: Value,
    pub(crate) expectations: Value,
}

/// What is known about the data as a whole.
pub(crate) struct Manifest {
    pub(crate) kit_version: String,
    /// Nothing vouches for the manifest itself, so the report says which one was used.
    pub(crate) sha256: String,
    pub(crate) verified: usize,
    pub(crate) skipped: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidData {
    #[error("cannot read the data file {path}")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the data file {path} is missing")]
    Missing { path: String },
    #[error("the data file {path} does not have the SHA-256 that the manifest names")]
    HashMismatch { path: String },
    #[error("the data file {path} is not JSON")]
    NotJson {
        path: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("{path} is not a manifest of this kit")]
    Manifest {
        path: &'static str,
        #[source]
        source: Failure,
    },
    #[error("the manifest is for {found}, not for {expected}")]
    Unsupported {
        expected: &'static str,
        found: String,
    },
    #[error("the manifest names the path {path:?}, which is not plainly inside the folder")]
    UnsafePath { path: String },
    #[error("the manifest does not vouch for {path}")]
    NotNamed { path: String },
}

impl Data {
    pub(crate) fn load(folder: &Path) -> Result<Self, InvalidData> {
        let mut files = VerifiedFiles::load(folder)?;
        Ok(Self {
            fixtures: files.fixtures()?,
            canonicalization: files.take_json(CANONICALIZATION)?,
            policy: files.take_json(POLICY)?,
            exchange: files.take_json(EXCHANGE)?,
            receipt_memory: files.take_json(RECEIPT_MEMORY)?,
            expectations: files.take_json(EXPECTATIONS)?,
            manifest: files.manifest,
        })
    }
}

/// Contents whose hash a manifest confirmed.
struct VerifiedFiles {
    manifest: Manifest,
    contents: BTreeMap<String, Vec<u8>>,
}

impl VerifiedFiles {
    fn load(folder: &Path) -> Result<Self, InvalidData> {
        let bytes = read(&folder.join(MANIFEST))?.ok_or_else(|| InvalidData::Missing {
            path: MANIFEST.into(),
        })?;
        let manifest = parse(MANIFEST, &bytes)?;
        let kit_version = check_identity(&manifest)?;

        let mut files = Self {
            manifest: Manifest {
                kit_version,
                sha256: hex_hash(&bytes),
                verified: 0,
                skipped: Vec::new(),
            },
            contents: BTreeMap::new(),
        };
        for named in named_files(&manifest, MANIFEST)? {
            files.verify(folder, named)?;
        }
        files.verify_vectors()?;
        Ok(files)
    }

    fn verify(&mut self, folder: &Path, named: NamedFile) -> Result<(), InvalidData> {
        let NamedFile { path, sha256 } = named;
        if path == NOT_COMPARED {
            self.manifest.skipped.push(path);
            return Ok(());
        }
        match read(&folder.join(&path))? {
            Some(bytes) if hex_hash(&bytes) == sha256 => {
                self.manifest.verified += 1;
                self.contents.insert(path, bytes);
                Ok(())
            }
            Some(_) => Err(InvalidData::HashMismatch { path }),
            None if may_be_absent(&path) => {
                self.manifest.skipped.push(path);
                Ok(())
            }
            None => Err(InvalidData::Missing { path }),
        }
    }

    /// The vectors have a second manifest of their own, with paths inside their folder.
    fn verify_vectors(&self) -> Result<(), InvalidData> {
        let manifest = parse(VECTOR_MANIFEST, self.bytes(VECTOR_MANIFEST)?)?;
        for NamedFile { path, sha256 } in named_files(&manifest, VECTOR_MANIFEST)? {
            let path = format!("{VECTOR_FOLDER}/{path}");
            if hex_hash(self.bytes(&path)?) != sha256 {
                return Err(InvalidData::HashMismatch { path });
            }
        }
        Ok(())
    }

    fn fixtures(&mut self) -> Result<BTreeMap<String, Value>, InvalidData> {
        let mut fixtures = BTreeMap::new();
        for (path, bytes) in &self.contents {
            if let Some(name) = path.strip_prefix(FIXTURE_FOLDER) {
                fixtures.insert(name.to_owned(), parse(path, bytes)?);
            }
        }
        Ok(fixtures)
    }

    fn take_json(&mut self, path: &str) -> Result<Value, InvalidData> {
        parse(path, self.bytes(path)?)
    }

    fn bytes(&self, path: &str) -> Result<&[u8], InvalidData> {
        self.contents
            .get(path)
            .map(Vec::as_slice)
            .ok_or_else(|| InvalidData::NotNamed { path: path.into() })
    }
}

struct NamedFile {
    path: String,
    sha256: String,
}

fn check_identity(manifest: &Value) -> Result<String, InvalidData> {
    let member = |pointer| {
        lookup::text(manifest, pointer).map_err(|source| InvalidData::Manifest {
            path: MANIFEST,
            source,
        })
    };
    for (pointer, expected) in [("/spec_version", SPEC_VERSION), ("/profile", PROFILE)] {
        let found = member(pointer)?;
        if found != expected {
            return Err(InvalidData::Unsupported {
                expected,
                found: found.into(),
            });
        }
    }
    Ok(member("/kit_version")?.into())
}

fn named_files(manifest: &Value, path: &'static str) -> Result<Vec<NamedFile>, InvalidData> {
    let invalid = |source| InvalidData::Manifest { path, source };
    let mut files = Vec::new();
    for entry in lookup::list(manifest, "/files").map_err(invalid)? {
        let path = lookup::text(entry, "/path").map_err(invalid)?;
        let sha256 = lookup::text(entry, "/sha256").map_err(invalid)?;
        let inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !inside {
            return Err(InvalidData::UnsafePath { path: path.into() });
        }
        files.push(NamedFile {
            path: path.into(),
            sha256: sha256.into(),
        });
    }
    Ok(files)
}

fn may_be_absent(path: &str) -> bool {
    MAY_BE_ABSENT.contains(&path) || path.starts_with(MAY_BE_ABSENT_FOLDER)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, InvalidData> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(InvalidData::Unreadable {
            path: path.into(),
            source,
        }),
    }
}

fn parse(path: &str, bytes: &[u8]) -> Result<Value, InvalidData> {
    json::parse(bytes).map_err(|source| InvalidData::NotJson {
        path: path.into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{Data, InvalidData};
    use crate::interop::canonical::hex_hash;

    const VECTORS: [&str; 4] = [
        "canonicalization.json",
        "policy-cases.json",
        "exchange-security.json",
        "receipt-memory-isolation.json",
    ];

    fn entry(folder: &Path, base: &str, path: &str) -> Value {
        let bytes = fs::read(folder.join(base).join(path)).unwrap();
        json!({"path": path, "sha256": hex_hash(&bytes)})
    }

    /// A folder of empty objects whose manifests are right.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("vectors")).unwrap();
        for name in VECTORS {
            fs::write(folder.path().join("vectors").join(name), "{}").unwrap();
        }
        fs::write(folder.path().join("local-profile-expectations.json"), "{}").unwrap();
        let vectors = VECTORS.map(|name| entry(folder.path(), "vectors", name));
        let text = json!({"files": vectors}).to_string();
        fs::write(folder.path().join("vectors/manifest.json"), text).unwrap();

        let mut files: Vec<_> = VECTORS
            .iter()
            .map(|name| entry(folder.path(), "", &format!("vectors/{name}")))
            .collect();
        files.push(entry(folder.path(), "", "vectors/manifest.json"));
        files.push(entry(folder.path(), "", "local-profile-expectations.json"));
        write_manifest(folder.path(), files);
        folder
    }

    fn write_manifest(folder: &Path, files: Vec<Value>) {
        let manifest = json!({
            "kit_version": "kit",
            "spec_version": super::SPEC_VERSION,
            "profile": super::PROFILE,
            "files": files,
        });
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    }

    fn add_to_manifest(folder: &Path, path: &str, sha256: &str) {
        let text = fs::read(folder.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&text).unwrap();
        let mut files = manifest["files"].as_array().unwrap().clone();
        files.push(json!({"path": path, "sha256": sha256}));
        write_manifest(folder, files);
    }

    fn error(folder: &Path) -> InvalidData {
        match Data::load(folder) {
            Ok(_) => panic!("the data was accepted"),
            Err(error) => error,
        }
    }

    #[test]
    fn loads_when_every_hash_matches() {
        let folder = folder();
        let data = Data::load(folder.path()).unwrap();
        assert_eq!(data.manifest.verified, 6);
        assert!(data.manifest.skipped.is_empty());
    }

    #[test]
    fn skips_prose_that_was_left_out() {
        let folder = folder();
        fs::write(folder.path().join("README.md"), "of this folder").unwrap();
        for path in ["README.md", "LICENSE", "profiles/local.md"] {
            add_to_manifest(folder.path(), path, "00");
        }
        let data = Data::load(folder.path()).unwrap();
        assert_eq!(
            data.manifest.skipped,
            ["README.md", "LICENSE", "profiles/local.md"]
        );
    }

    #[test]
    fn refuses_prose_that_is_present_but_changed() {
        let folder = folder();
        fs::write(folder.path().join("LICENSE"), "changed").unwrap();
        add_to_manifest(folder.path(), "LICENSE", "00");
        assert!(
            matches!(error(folder.path()), InvalidData::HashMismatch { path } if path == "LICENSE")
        );
    }

    #[test]
    fn refuses_a_changed_or_missing_data_file() {
        let folder = folder();
        let path = folder.path().join("vectors/policy-cases.json");
        fs::write(&path, "{} ").unwrap();
        assert!(matches!(
            error(folder.path()),
            InvalidData::HashMismatch { .. }
        ));
        fs::remove_file(&path).unwrap();
        assert!(matches!(error(folder.path()), InvalidData::Missing { .. }));
    }

    #[test]
    fn refuses_vectors_that_their_own_manifest_denies() {
        let folder = folder();
        let text = json!({"files": [{"path": "policy-cases.json", "sha256": "00"}]}).to_string();
        fs::write(folder.path().join("vectors/manifest.json"), text).unwrap();
        let manifest: Value =
            serde_json::from_slice(&fs::read(folder.path().join("manifest.json")).unwrap())
                .unwrap();
        let mut files = manifest["files"].as_array().unwrap().clone();
        files[4] = entry(folder.path(), "", "vectors/manifest.json");
        write_manifest(folder.path(), files);
        assert!(matches!(
            error(folder.path()),
            InvalidData::HashMismatch { .. }
        ));
    }

    #[test]
    fn refuses_files_that_no_manifest_names_and_paths_that_leave_the_folder() {
        let folder = folder();
        add_to_manifest(folder.path(), "../outside.json", "00");
        assert!(matches!(
            error(folder.path()),
            InvalidData::UnsafePath { .. }
        ));
        let named = entry(folder.path(), "", "vectors/manifest.json");
        write_manifest(folder.path(), vec![named]);
        assert!(matches!(error(folder.path()), InvalidData::NotNamed { .. }));
    }

    #[test]
    fn refuses_another_profile() {
        let folder = folder();
        let manifest =
            json!({"kit_version": "kit", "spec_version": "other", "profile": super::PROFILE});
        fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
        assert!(matches!(
            error(folder.path()),
            InvalidData::Unsupported { .. }
        ));
    }
}
