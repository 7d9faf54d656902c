//! Telling everybody to end, and noticing who ended untold.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tonic::{Code, Status};

use crate::accept::Ending;
use crate::status;

/// Tells streams and tasks to end. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    ending: Ending,
}

impl Shutdown {
    /// Asks everybody to end.
    pub fn request(&self) {
        self.ending.soft.cancel();
    }

    /// Drops connections, handlers and tasks as they are.
    pub fn abort(&self) {
        self.ending.soft.cancel();
        self.ending.hard.cancel();
    }

    /// Waits until an end is asked for.
    pub async fn requested(&self) {
        self.ending.soft.cancelled().await;
    }

    /// Whether an end was asked for.
    pub fn is_requested(&self) -> bool {
        self.ending.soft.is_cancelled()
    }

    /// The token behind [`Shutdown::requested`].
    pub fn token(&self) -> CancellationToken {
        self.ending.soft.clone()
    }

    /// Ends an answer stream with `UNAVAILABLE` when an end is asked for. Every server stream needs
    /// this: drain waits for streams until its deadline.
    pub fn end_stream<S, T>(&self, stream: S) -> EndOnShutdown<T>
    where
        S: Stream<Item = Result<T, Status>> + Send + 'static,
    {
        EndOnShutdown {
            stream: Some(Box::pin(stream)),
            requested: Box::pin(self.token().cancelled_owned()),
        }
    }

    pub(super) fn ending(&self) -> Ending {
        self.ending.clone()
    }
}

type AnswerStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The stream that [`Shutdown::end_stream`] makes.
pub struct EndOnShutdown<T> {
    stream: Option<AnswerStream<T>>,
    requested: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<T> Stream for EndOnShutdown<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        // What is ready goes out first.
        if let Poll::Ready(item) = stream.as_mut().poll_next(cx) {
            return Poll::Ready(item);
        }
        if this.requested.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.stream = None;
        Poll::Ready(Some(Err(status::refusal(
            Code::Unavailable,
            status::SHUTTING_DOWN,
            "the server is shutting down",
        ))))
    }
}

impl<T> fmt::Debug for EndOnShutdown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndOnShutdown").finish_non_exhaustive()
    }
}

/// The long tasks of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: Shutdown,
    first_dead: Arc<watch::Sender<Option<&'static str>>>,
}

impl Tasks {
    /// Tasks that end with `shutdown`.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            tracker: TaskTracker::new(),
            shutdown,
            first_dead: Arc::new(watch::Sender::new(None)),
        }
    }

    /// Spawns a task that must live until [`Shutdown::requested`]; if it returns or panics before,
    /// the process ends. Drain waits for it; [`Shutdown::abort`] drops it.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(self.guarded(name, task));
    }

    /// `task` with the guard of [`Tasks::spawn`], but not waited for.
    pub(super) fn guarded<F>(
        &self,
        name: &'static str,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let guard = DeathGuard {
            name,
            shutdown: self.shutdown.clone(),
            first_dead: Arc::clone(&self.first_dead),
        };
        async move {
            let guard = guard;
            guard.shutdown.ending.hard.run_until_cancelled(task).await;
        }
    }

    /// Waits for a task that ended untold, and names it.
    pub(super) async fn died(&self) -> &'static str {
        let mut dead = self.first_dead.subscribe();
        match dead.wait_for(Option::is_some).await.map(|name| *name) {
            Ok(Some(name)) => name,
            // The sender lives as long as `self`, and `wait_for` saw a name.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    pub(super) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

struct DeathGuard {
    name: &'static str,
    shutdown: Shutdown,
    first_dead: Arc<watch::Sender<Option<&'static str>>>,
}

impl Drop for DeathGuard {
    fn drop(&mut self) {
        if self.shutdown.is_requested() {
            return;
        }
        tracing::error!(task = self.name, "task ended untold");
        self.first_dead.send_if_modified(|dead| {
            let first = dead.is_none();
            dead.get_or_insert(self.name);
            first
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_after_what_was_ready() {
        let shutdown = Shutdown::default();
        let ready = tokio_stream::iter([Ok(1), Ok(2)]);
        let mut stream = shutdown.end_stream(ready.chain(tokio_stream::pending()));
        shutdown.request();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert_eq!(stream.next().await.unwrap().unwrap(), 2);
        let last = timeout(Duration::from_secs(1), stream.next()).await;
        let status = last.unwrap().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(stream.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_returns_or_panics_is_named() {
        for panics in [false, true] {
            let tasks = Tasks::new(Shutdown::default());
            tasks.spawn("outbox", async move { assert!(!panics, "task panics") });
            assert_eq!(tasks.died().await, "outbox");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_when_told_is_no_death() {
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let own = shutdown.clone();
        tasks.spawn("outbox", async move { own.requested().await });
        tasks.spawn("stubborn", std::future::pending());
        shutdown.abort();
        tasks.ended().await;
        assert!(tasks.first_dead.borrow().is_none());
    }
}
