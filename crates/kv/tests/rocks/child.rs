//! A second process: this test binary, started again for one of the tests that are its errands.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Names the data folder of an errand; without it an errand has nothing to do.
const FOLDER: &str = "CL_KV_TEST_FOLDER";

/// Starts the test with this name on a data folder, with its output in a pipe.
pub(crate) fn start(errand: &str, folder: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", errand, "--nocapture", "--quiet"])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The data folder, in a process that was started for an errand.
#[expect(
    clippy::disallowed_methods,
    reason = "a test binary has no command line of its own"
)]
pub(crate) fn errand_folder() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}
