//! Where the programs are.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// A folder of programs.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those in a folder, else those beside this program.
    pub(crate) fn of(folder: Option<&Path>) -> Result<Self, Error> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                let own = std::env::current_exe().map_err(Error::Runtime)?;
                own.parent().unwrap_or(Path::new(".")).to_owned()
            }
        };
        Ok(Self { folder })
    }

    pub(crate) fn find(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err(Error::NoProgram { path })
    }
}
