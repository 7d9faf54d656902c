//! Group commit: one task takes what waits, decides all of it in order, and makes it durable with
//! one sync. Callers hear of it afterwards, and only then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_host::life::Shutdown;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use crate::core::command::{Answer, Command, Outcome, Rules, Written};
use crate::core::kept::Kept;
use crate::core::ledger::{Base, Ledger};
use crate::core::routing::Tenant;
use crate::core::trees::{Proofs, Tree};
use crate::error::Error;
use crate::proven::Proven;
use crate::store::{NotCommitted, Store};

/// How many commands may wait.
const MAX_WAITING: usize = 1024;

/// How many commands one batch makes durable; with the largest receipts it stays far below the
/// engine's limit.
const MAX_GROUP: usize = 128;

/// How often a group is decided anew because another replica was faster.
const ATTEMPTS: usize = 8;

type Reply = oneshot::Sender<Result<Answer, Error>>;

/// Where commands are handed in. Clones share the queue.
#[derive(Clone)]
pub struct Commits {
    queue: mpsc::Sender<(Command, Reply)>,
    writer: Arc<Writer>,
}

impl Commits {
    /// Whether a receipt of this tenant would be taken: one was a moment ago, or else something is
    /// written to see.
    pub async fn check(&self, tenant: Tenant) -> Result<(), Error> {
        let is_taking = !self.queue.is_closed() && self.queue.capacity() > 0;
        if is_taking && self.writer.proven.has(&tenant, self.writer.now_ms()) {
            return Ok(());
        }
        self.submit(Command::Probe(tenant)).await.map(|_| ())
    }

    /// Waits until the command's effect is durable, or it is refused.
    pub async fn submit(&self, command: Command) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        self.queue
            .try_send((command, reply))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Error::Busy,
                mpsc::error::TrySendError::Closed(_) => Error::Draining,
            })?;
        answer.await.unwrap_or(Err(Error::Draining))
    }
}

/// The one task that writes.
pub struct Committer {
    writer: Arc<Writer>,
    queue: mpsc::Receiver<(Command, Reply)>,
    sweep_interval: Duration,
}

/// What a group needs to be decided and written.
pub struct Writer {
    /// Where the log is.
    pub store: Arc<dyn Store>,
    /// The trees of the logs, and their pins.
    pub kept: Arc<Kept>,
    /// Who may write what.
    pub rules: Arc<Rules>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Commit ids.
    pub ids: Arc<dyn Ids>,
    /// What was written a moment ago.
    pub proven: Proven,
    /// What operators watch.
    pub metrics: Metrics,
}

/// What operators watch.
#[derive(Clone, Debug)]
pub struct Metrics {
    entries: Counter<u64>,
    group: Histogram<u64>,
    failures: Counter<u64>,
}

impl Metrics {
    /// The instruments of this process.
    pub fn new(meter: &Meter) -> Self {
        Self {
            entries: meter
                .u64_counter("receipt_entries")
                .with_description("Entries that became durable.")
                .build(),
            group: meter
                .u64_histogram("receipt_group_commands")
                .with_description("Commands that one commit made durable.")
                .with_boundaries(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
                .build(),
            failures: meter
                .u64_counter("receipt_commit_failures")
                .with_description(
                    "Commits that failed, and logs that could not be pinned or cosigned after one.",
                )
                .build(),
        }
    }
}

impl Committer {
    /// A committer and its queue.
    pub fn new(writer: Writer, sweep_interval: Duration) -> (Self, Commits) {
        let (sender, queue) = mpsc::channel(MAX_WAITING);
        let writer = Arc::new(writer);
        let commits = Commits {
            queue: sender,
            writer: Arc::clone(&writer),
        };
        let committer = Self {
            writer,
            queue,
            sweep_interval,
        };
        (committer, commits)
    }

    /// Commits until the end is asked for, and then what still waits.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut sweep = tokio::time::interval(self.sweep_interval);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut group = Vec::new();
            tokio::select! {
                taken = self.queue.recv_many(&mut group, MAX_GROUP) => if taken == 0 {
                    return;
                },
                _ = sweep.tick() => {}
                () = shutdown.requested(), if !self.queue.is_closed() => self.queue.close(),
            }
            self.commit(group).await;
            // Callers that have heard may call again: the next group is the larger for it.
            tokio::task::yield_now().await;
        }
    }

    /// Commits one group and answers its callers; an empty group looks for overdue intents only.
    async fn commit(&self, mut group: Vec<(Command, Reply)>) {
        // Whoever has gone repeats the call; while a log cannot go on, that may be many.
        group.retain(|(_, reply)| !reply.is_closed());
        let (commands, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let writer = Arc::clone(&self.writer);
        let count = commands.len();
        let answers = tokio::task::spawn_blocking(move || writer.commit(&commands)).await;
        let answers = answers.unwrap_or_else(|_| {
            // Whether the group is durable is not known, so nobody may be told that it is.
            vec![Err(Error::Internal("the committer panicked")); count]
        });
        let is_fault = |answer: &Result<_, Error>| answer.as_ref().is_err_and(Error::is_fault);
        if answers.iter().any(is_fault) {
            self.writer.proven.forget();
        }
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A caller that has gone finds out by repeating the call.
            let _gone = reply.send(answer);
        }
    }
}

const NO_LOG: Error = Error::Corrupt("an entry is in no log");

/// The logs that one group's answers are about.
type Logs<'a> = BTreeMap<Tenant, Result<Proofs<'a>, Error>>;

impl Writer {
    /// Decides a group and makes it durable: the answers, in order.
    ///
    /// If it cannot be made durable, every command of the group fails: also a refusal may rest on
    /// what an earlier command of the group would have written.
    pub fn commit(&self, commands: &[Command]) -> Vec<Result<Answer, Error>> {
        self.try_commit(commands).unwrap_or_else(|error| {
            self.metrics.failures.add(1, &[]);
            self.proven.forget();
            if commands.is_empty() {
                // Nobody waits for it, so nobody else would tell.
                tracing::warn!(%error, "overdue intents are not recorded");
            }
            commands.iter().map(|_| Err(error.clone())).collect()
        })
    }

    fn try_commit(&self, commands: &[Command]) -> Result<Vec<Result<Answer, Error>>, Error> {
        for _ in 0..ATTEMPTS {
            let (head, version) = self.store.head()?;
            let entries_before = head.entries;
            let base = Base {
                store: &*self.store,
                kept: &self.kept,
                rules: &self.rules,
                ids: &*self.ids,
            };
            let mut ledger = Ledger::new(base, head, self.now_ms());
            if let Err(error) = ledger.expire_due() {
                tracing::error!(%error, "an overdue intent cannot be recorded");
            }
            let outcomes: Vec<_> = commands.iter().map(|it| ledger.run(it)).collect();
            let mut written = ledger.into_written()?;
            if !written.is_needed {
                return Ok(self.answer(outcomes, &BTreeMap::new()));
            }
            if written.trees.is_empty() {
                // Nothing will be pinned, but an operation that begins now must not fail to be
                // recorded later.
                self.kept.pin().probe()?;
            }
            written.head.commit_id = self.commit_id()?;
            // The commit point. A crash before it leaves nothing of the group; after it, all of the
            // group is there although no caller has heard of it, and a repeat finds it.
            let committed = self.store.commit(version, &written.head, &written.changes);
            match committed {
                Ok(()) => {}
                Err(NotCommitted::Moved) => continue,
                Err(NotCommitted::Failed(error)) => self.confirm(&written, error)?,
            }
            self.metrics.group.record(commands.len() as u64, &[]);
            let added = written.head.entries - entries_before;
            self.metrics.entries.add(added, &[]);
            // Stored, then pinned and cosigned, then acknowledged. After a crash in between the store
            // is ahead of its pins; a repeat finds the entry, and is answered once the pin has it.
            // One log that cannot be covered holds up nobody else's.
            let grown = written.trees.into_iter().map(|(tenant, tree)| {
                let covered = self.covered(&tenant, tree);
                (tenant, covered)
            });
            let grown: BTreeMap<_, _> = grown.collect();
            if grown.values().all(Result::is_ok) {
                self.proven.note(grown.keys(), self.now_ms());
            } else {
                self.proven.forget();
            }
            return Ok(self.answer(outcomes, &grown));
        }
        Err(Error::Busy)
    }

    fn covered(&self, tenant: &Tenant, mut tree: Tree) -> Result<Tree, Error> {
        self.kept.keep(tenant, &tree);
        let covered = self.kept.cover_grown(&*self.store, tenant, &tree);
        let covered = covered.inspect_err(|_| self.metrics.failures.add(1, &[]))?;
        tree.cover(covered.ok_or(NO_LOG)?);
        Ok(tree)
    }

    /// Looks whether a commit that failed took effect after all. What can be read is durable.
    fn confirm(&self, written: &Written, error: Error) -> Result<(), Error> {
        let (head, _) = self.store.head()?;
        if head.commit_id == written.head.commit_id {
            return Ok(());
        }
        Err(error)
    }

    /// Adds its proof to each entry. An entry whose proof cannot be made, or is not pinned yet, is
    /// durable all the same; its caller repeats the call.
    fn answer(
        &self,
        outcomes: Vec<Result<Outcome, Error>>,
        grown: &BTreeMap<Tenant, Result<Tree, Error>>,
    ) -> Vec<Result<Answer, Error>> {
        let mut logs = Logs::new();
        let mut answer = |outcome| match outcome {
            Outcome::Entry(placed) => {
                let proofs = self.proofs(&mut logs, &placed.tenant, grown)?;
                let proof = proofs.prove(placed.sequence, &placed.entry)?;
                Ok(Answer::Entry(placed, proof))
            }
            Outcome::Intent(state, placed) => {
                if let Some(placed) = &placed {
                    self.proofs(&mut logs, &placed.tenant, grown)?;
                }
                Ok(Answer::Intent(state, placed))
            }
            Outcome::Erased(erased) => Ok(Answer::Erased(erased)),
            Outcome::Done => Ok(Answer::Done),
        };
        let outcomes = outcomes.into_iter();
        outcomes.map(|it| it.and_then(&mut answer)).collect()
    }

    /// What proves entries of a log: the tree that this group has grown, or the stored one. Nobody
    /// hears of an entry that no pin has.
    fn proofs<'l, 'a>(
        &'a self,
        logs: &'l mut Logs<'a>,
        tenant: &Tenant,
        grown: &BTreeMap<Tenant, Result<Tree, Error>>,
    ) -> Result<&'l mut Proofs<'a>, Error> {
        let prove = |tree: &Tree| tree.proofs(&*self.store, tenant);
        let log = logs
            .entry(tenant.clone())
            .or_insert_with(|| match grown.get(tenant) {
                Some(Ok(tree)) => Ok(prove(tree)),
                Some(Err(error)) => Err(error.clone()),
                None => {
                    let covered = self.kept.cover(&*self.store, tenant)?;
                    Ok(prove(&covered.ok_or(NO_LOG)?))
                }
            });
        log.as_mut().map_err(|error| error.clone())
    }

    fn commit_id(&self) -> Result<Vec<u8>, Error> {
        let mut id = vec![0; 16];
        self.ids
            .fill(&mut id)
            .map_err(|_| Error::Internal("no random bytes"))?;
        Ok(id)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now_unix_ms()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use cl_host::clock::ManualClock;
    use cl_host::ids::SeededIds;
    use cl_kv::{KeyEncryptionKey, MemoryEngine, Sealed};
    use cl_model::key::{Seed, SigningKey};
    use cl_model::scalar::KeyId;
    use ring::rand::SystemRandom;
    use tempfile::TempDir;
    use zeroize::Zeroizing;

    use super::*;
    use crate::core::trees::LogKey;
    use crate::core::writers::Writers;
    use crate::cosigning::Cosigning;
    use crate::pin::FolderPin;

    fn log_key() -> LogKey {
        let kid = KeyId::new("urn:cl:key:receipts:test").unwrap();
        let key = SigningKey::from_seed(kid, &Seed::new(&[7; 32]).unwrap()).unwrap();
        LogKey::new(key, "example.org")
    }

    fn probe() -> Command {
        Command::Probe(Tenant::parse("acme").unwrap())
    }

    fn writer(pins: &TempDir) -> Writer {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_900_000_000_000));
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1, Arc::clone(&clock)));
        let kek = KeyEncryptionKey::new(Zeroizing::new([1; 32]));
        let random = Arc::new(SystemRandom::new());
        let sealed = Sealed::open(MemoryEngine::new(), kek, random).unwrap();
        let pin = FolderPin::open(pins.path().to_owned()).unwrap();
        let own_id = "spiffe://example.org/exchange/cl-receipt-store";
        Writer {
            store: crate::open_store(sealed, &ids).unwrap(),
            kept: Arc::new(Kept::new(log_key(), Arc::new(pin), Cosigning::default())),
            rules: Arc::new(Rules {
                own_id: own_id.parse().unwrap(),
                writers: Writers::parse(br#"{"writers_version":1,"writers":{}}"#).unwrap(),
            }),
            clock,
            ids,
            proven: Proven::default(),
            metrics: Metrics::new(&opentelemetry::global::meter("test")),
        }
    }

    #[tokio::test]
    async fn refuses_what_it_has_no_room_for() {
        let pins = TempDir::new().unwrap();
        let (committer, commits) = Committer::new(writer(&pins), Duration::from_secs(1));
        for _ in 0..MAX_WAITING {
            let (reply, _) = oneshot::channel();
            commits.queue.try_send((probe(), reply)).unwrap();
        }
        let refused = commits.submit(probe()).await;
        assert!(matches!(refused, Err(Error::Busy)));
        drop(committer);
        let refused = commits.submit(probe()).await;
        assert!(matches!(refused, Err(Error::Draining)));
    }

    #[tokio::test]
    async fn commits_what_waits_before_it_ends() {
        let shutdown = Shutdown::default();
        let pins = TempDir::new().unwrap();
        let (committer, commits) = Committer::new(writer(&pins), Duration::from_secs(1));
        let waiting = commits.submit(probe());
        shutdown.request();
        let (answer, ()) = tokio::join!(waiting, committer.run(shutdown));
        assert!(matches!(answer, Ok(Answer::Done)));
        let refused = commits.submit(probe()).await;
        assert!(matches!(refused, Err(Error::Draining)));
    }
}
