//! Following a request until it is final.

use std::sync::Arc;
use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_host::life::Shutdown;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::Error;
use crate::service::{PolicyEngine, RequestStatus};
use crate::store::RequestKey;

/// How many calls may follow requests at a time.
const MAX_WATCHERS: usize = 1024;

/// How long one call may follow.
const MAX_WATCH: Duration = Duration::from_secs(600);

/// Time between two looks for what another replica, or the clock, has changed.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells the calls that follow requests that something has changed.
pub(crate) struct Changes {
    sender: watch::Sender<()>,
    watchers: Arc<Semaphore>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            sender: watch::Sender::new(()),
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS)),
        }
    }

    /// Something about some request has changed.
    pub(crate) fn announce(&self) {
        self.sender.send_replace(());
    }

    pub(crate) fn watcher(&self) -> Result<Watcher, Error> {
        let permit = Arc::clone(&self.watchers).try_acquire_owned();
        Ok(Watcher {
            changes: self.sender.subscribe(),
            ends: Deadline::after(MAX_WATCH),
            last: None,
            _permit: permit.map_err(|_| Error::TooManyWatchers)?,
        })
    }
}

/// One call that follows a request.
pub(crate) struct Watcher {
    changes: watch::Receiver<()>,
    ends: Deadline,
    last: Option<RequestStatus>,
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    /// The next status that differs from the one before; none once the request is final or the time
    /// is up.
    pub(crate) async fn next(
        &mut self,
        engine: &PolicyEngine,
        key: &RequestKey,
        shutdown: &Shutdown,
    ) -> Result<Option<RequestStatus>, Error> {
        if self.last.as_ref().is_some_and(RequestStatus::is_final) {
            return Ok(None);
        }
        loop {
            self.changes.mark_unchanged();
            let status = engine.request(key).await?;
            if self.last.as_ref() != Some(&status) {
                self.last = Some(status.clone());
                return Ok(Some(status));
            }
            let left = self.ends.remaining();
            if left.is_zero() || shutdown.is_requested() {
                return Ok(None);
            }
            tokio::select! {
                () = shutdown.requested() => return Ok(None),
                _ = self.changes.changed() => {}
                () = tokio::time::sleep(left.min(PAUSE)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_are_bounded_and_make_room() {
        let changes = Changes::new();
        let mut watchers: Vec<_> = (0..MAX_WATCHERS)
            .map(|_| changes.watcher().unwrap())
            .collect();
        assert!(matches!(changes.watcher(), Err(Error::TooManyWatchers)));
        watchers.pop();
        assert!(changes.watcher().is_ok());
    }
}
