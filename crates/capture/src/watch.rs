//! Tells when something under a folder changes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// How long changes are gathered, since they come in bursts.
const BURST: Duration = Duration::from_millis(200);

/// A watch over a folder and all below it.
pub(crate) struct Watch {
    changed: Arc<Notify>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches from now on. Errors of the watch itself count as changes: what was missed is then
    /// found by looking.
    ///
    /// # Errors
    ///
    /// If the folder cannot be watched.
    pub(crate) fn start(path: &Path) -> notify::Result<Self> {
        let changed = Arc::new(Notify::new());
        let told = Arc::clone(&changed);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| is_reading(event.kind)) {
                return;
            }
            told.notify_one();
        })?;
        watcher.watch(path, RecursiveMode::Recursive)?;
        Ok(Self {
            changed,
            _watcher: watcher,
        })
    }

    /// Waits for the next change, and for the rest of its burst.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
        tokio::time::sleep(BURST).await;
    }
}

/// Whether files were only read, as this process does itself.
fn is_reading(kind: EventKind) -> bool {
    let is_written = kind == EventKind::Access(AccessKind::Close(AccessMode::Write));
    kind.is_access() && !is_written
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, ModifyKind};

    use super::*;

    #[test]
    fn only_reading_is_no_change() {
        let rows = [
            (EventKind::Access(AccessKind::Open(AccessMode::Read)), true),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), true),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Write)),
                false,
            ),
            (EventKind::Create(CreateKind::File), false),
            (EventKind::Modify(ModifyKind::Any), false),
            (EventKind::Any, false),
        ];
        for (kind, is_only_reading) in rows {
            assert_eq!(is_reading(kind), is_only_reading, "{kind:?}");
        }
    }
}
