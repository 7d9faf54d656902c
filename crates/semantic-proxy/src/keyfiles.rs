//! The proxy's secret, from a file that only it may read.

use std::path::PathBuf;

use cl_host::secrets::{InvalidKeys, check_distinct, load_raw, load_tls, seed};

use crate::core::names::Names;

/// Where each secret is.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// The transform key: 32 bytes.
    pub transform: PathBuf,
    /// The private key of the process's certificate; only compared with the other.
    pub tls: PathBuf,
}

impl KeyFiles {
    /// Loads the transform key, and refuses one that serves as the certificate's too.
    pub fn load(&self) -> Result<Names, InvalidKeys> {
        let transform = load_raw(&self.transform)?;
        let tls = load_tls(&self.tls)?;
        check_distinct(&[
            (self.transform.as_path(), transform.as_slice()),
            (self.tls.as_path(), tls.as_slice()),
        ])?;
        Ok(Names::new(&seed(&self.transform, transform.as_slice())?))
    }
}
