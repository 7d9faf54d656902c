//! What every command works with.

use std::path::PathBuf;
use std::sync::Arc;

use cl_host::clock::{Clock, SystemClock};
use cl_host::ids::{Ids, SystemIds};
use cl_model::time::UnixTime;

use crate::error::Error;
use crate::home::Home;
use crate::output::Output;

/// The home, time, identifiers and the way to answer.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) home: Home,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) output: Output,
}

impl Session {
    pub(crate) fn new(home: PathBuf, is_json: bool) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Self {
            home: Home::new(home),
            ids: Arc::new(SystemIds::new(Arc::clone(&clock))),
            clock,
            output: Output::new(is_json),
        }
    }

    pub(crate) fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }

    /// A fresh URN: the prefix and a UUIDv7.
    pub(crate) fn urn(&self, prefix: &str) -> Result<String, Error> {
        Ok(format!("{prefix}{}", self.ids.uuid()?))
    }

    /// The id of one operation in receipts.
    pub(crate) fn operation_id(&self) -> Result<String, Error> {
        self.urn("urn:cl:operation:")
    }
}
