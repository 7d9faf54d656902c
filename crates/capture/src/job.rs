//! What a run is asked to capture.

use std::path::PathBuf;

use crate::source::Adapter;

/// What to capture, and for whom.
#[derive(Clone, Debug)]
pub struct Job {
    /// An mbox, a Maildir, a message, a calendar file, or a folder of them.
    pub path: PathBuf,
    /// What is looked for there.
    pub adapter: Adapter,
    /// The tenant of the subject.
    pub tenant: String,
    /// Whose context it is.
    pub subject_ref: String,
    /// The subject's addresses.
    pub owner_addresses: Vec<String>,
    /// A message beyond this is stored without being read.
    pub max_message_bytes: u64,
}
